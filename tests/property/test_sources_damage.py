"""Damaged debug information, in the file or its debug file, costs lines and never the symbols."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import footprint
from footprint.elf.symbols import Symbol
from footprint.verbs.symbols.call import FileSymbols
from tests.dwarfwriter import (
    AT_BYTE_SIZE,
    AT_COMP_DIR,
    AT_DECL_FILE,
    AT_DECL_LINE,
    AT_LOCATION,
    AT_NAME,
    AT_STMT_LIST,
    AT_TYPE,
    DATA1,
    EXPRLOC,
    REF4,
    SEC_OFFSET,
    STRING,
    STRP,
    TAG_BASE_TYPE,
    TAG_COMPILE_UNIT,
    TAG_SUBPROGRAM,
    TAG_VARIABLE,
    Addr,
    Attribute,
    Die,
    Ref,
    Unit,
    sections,
)
from tests.elfwriter import RW, SHT_NOBITS, STB_LOCAL, At, ElfFile, Section, Sym, peek, write
from tests.examples import examples

DATA = [Section(".data", flags=RW, data=bytes(64)), Section(".bss", SHT_NOBITS, RW, size=64)]
SYMBOLS = [Sym("table", At(".data"), 4), Sym("calls.0", At(".bss"), 4, binding=STB_LOCAL)]
LAYOUT = write(ElfFile(sections=DATA, symbols=SYMBOLS))


def variable(name: str, vaddr: int, line: int) -> Die:
    place: list[Attribute] = [(AT_DECL_FILE, DATA1, 1), (AT_DECL_LINE, DATA1, line), (AT_TYPE, REF4, Ref("int"))]
    return Die(TAG_VARIABLE, [(AT_NAME, STRP, name), *place, (AT_LOCATION, EXPRLOC, Addr(vaddr))])


def told() -> bytes:
    root: list[Attribute] = [(AT_NAME, STRP, "a.c"), (AT_COMP_DIR, STRING, "/src"), (AT_STMT_LIST, SEC_OFFSET, 0)]
    bss = peek(LAYOUT, "sh_addr", ".bss")
    entries = [
        Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int"),
        variable("table", peek(LAYOUT, "sh_addr", ".data"), 3),
        Die(TAG_SUBPROGRAM, [(AT_NAME, STRP, "f")], [variable("calls", bss, 7), variable("nameless", bss + 32, 8)]),
    ]
    debug = sections([Unit(Die(TAG_COMPILE_UNIT, root, entries), files=[("a.c", 0), ("a.c", 0)])])
    return write(ElfFile(sections=[*DATA, *debug], symbols=SYMBOLS))


WHOLE = told()
DEBUG = [(peek(WHOLE, "sh_offset", name), peek(WHOLE, "sh_size", name)) for name in (".debug_info", ".debug_abbrev")]


def symbols_of(symbols: FileSymbols) -> set[tuple[str, int]]:
    return {(one.name, one.size_bytes) for section in symbols.files[0].sections for one in section.variables}


def test_what_is_damaged_here_is_whole_without_damage(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(WHOLE)
    found = footprint.symbols(str(tmp_path / "program"), source=True)
    assert symbols_of(found) == {("table", 4), ("calls.0", 4), ("nameless", 4)}
    assert found.notes == ()


@examples(200)
@given(
    st.lists(st.tuples(st.sampled_from(DEBUG), st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_damage_to_debug_information_leaves_every_symbol_and_every_byte(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[tuple[int, int], int, int]]
) -> None:
    data = bytearray(WHOLE)
    for (offset, size_bytes), place, byte in damage:
        data[offset + place % size_bytes] = byte
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data)
    found = footprint.symbols(str(path), source=True)
    assert symbols_of(found) >= {("table", 4), ("calls.0", 4)}
    for section in found.files[0].sections:
        owned = sum(piece.end - piece.start for piece in section.ranges.pieces if isinstance(piece.owner, Symbol))
        assert owned + sum(section.residue_bytes.values()) == section.size_bytes
