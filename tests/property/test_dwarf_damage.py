"""Hostile debug information gives declarations, a note or one clear error, quickly, and never another exception."""

import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.dwarf import DebugInfo, Declarations, declarations_by_name, read_declarations
from footprint.dwarf.encoding import AbbreviationTables
from footprint.dwarf.places import VariablePlace, VariablePlaces
from footprint.dwarf.sections import DebugSection
from footprint.elf import read_image
from footprint.errors import InputError
from tests.dwarfwriter import (
    AT_ABSTRACT_ORIGIN,
    AT_ADDR_BASE,
    AT_BYTE_SIZE,
    AT_COMP_DIR,
    AT_COUNT,
    AT_DECL_FILE,
    AT_DECL_LINE,
    AT_LOCATION,
    AT_NAME,
    AT_SPECIFICATION,
    AT_STMT_LIST,
    AT_TYPE,
    BLOCK1,
    DATA1,
    DATA4,
    EXPRLOC,
    IMPLICIT_CONST,
    REF4,
    SEC_OFFSET,
    STRING,
    STRP,
    TAG_ARRAY,
    TAG_BASE_TYPE,
    TAG_COMPILE_UNIT,
    TAG_CONST,
    TAG_MEMBER,
    TAG_STRUCTURE,
    TAG_SUBPROGRAM,
    TAG_SUBRANGE,
    TAG_VARIABLE,
    UDATA,
    Addr,
    Attribute,
    Die,
    Ref,
    Tls,
    Unit,
    object_sections,
    sections,
    uleb,
)
from tests.elfkinds import KINDS
from tests.elfwriter import (
    EM_386,
    EM_PPC,
    EM_S390,
    EM_X86_64,
    ET_REL,
    RW,
    SHN_COMMON,
    STB_LOCAL,
    STT_SECTION,
    At,
    ElfFile,
    Section,
    Sym,
    peek,
    write,
)
from tests.examples import examples

PLACES = [0x4000 + 16 * number for number in range(6)]
MOST_SECONDS = 2.0


def unit(version: int) -> Unit:
    form = EXPRLOC if version >= 4 else BLOCK1
    line = (AT_DECL_LINE, IMPLICIT_CONST, 3) if version >= 5 else (AT_DECL_LINE, UDATA, 300)
    of_int = AT_TYPE, REF4, Ref("int")
    entries = [
        Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int"),
        Die(TAG_CONST, [of_int], label="const"),
        Die(TAG_ARRAY, [(AT_TYPE, REF4, Ref("const"))], [Die(TAG_SUBRANGE, [(AT_COUNT, DATA1, 9)])], "array"),
        Die(TAG_STRUCTURE, [(AT_NAME, STRING, "S")], [Die(TAG_MEMBER, [(AT_NAME, STRP, "m"), of_int], label="m")]),
        Die(
            TAG_VARIABLE,
            [(AT_NAME, STRP, "a"), line, (AT_DECL_FILE, DATA1, 1), of_int, (AT_LOCATION, form, Addr(PLACES[0]))],
        ),
        Die(
            TAG_VARIABLE, [(AT_NAME, STRING, "bc"), (AT_TYPE, REF4, Ref("array")), (AT_LOCATION, form, Addr(PLACES[1]))]
        ),
        Die(TAG_VARIABLE, [(AT_SPECIFICATION, REF4, Ref("m")), line, (AT_LOCATION, form, Addr(PLACES[2]))]),
        Die(TAG_VARIABLE, [(AT_NAME, STRP, "t"), of_int, (AT_LOCATION, form, Tls(PLACES[3]))]),
        Die(
            TAG_SUBPROGRAM,
            [(AT_NAME, STRING, "f")],
            [Die(TAG_VARIABLE, [(AT_ABSTRACT_ORIGIN, REF4, Ref("m")), (AT_LOCATION, form, Addr(PLACES[4]))])],
        ),
    ]
    root: list[Attribute] = [
        (AT_NAME, STRP, "a.c"),
        (AT_COMP_DIR, STRING, "/src"),
        (AT_STMT_LIST, SEC_OFFSET if version > 3 else DATA4, 0),
    ]
    if version >= 5:
        root.append((AT_ADDR_BASE, SEC_OFFSET, 8))
        entries.append(Die(TAG_VARIABLE, [(AT_NAME, STRP, "x"), of_int, (AT_LOCATION, form, b"\xa1\x01")]))
    addresses = [1, PLACES[5]] if version >= 5 else []
    return Unit(Die(TAG_COMPILE_UNIT, root, entries), version, files=[("a.c", 0), ("a.c", 0)], addresses=addresses)


def file(kind: dict[str, Any], version: int) -> bytes:
    debug = sections([unit(version)], order=kind["order"], bits=kind["bits"])
    return write(ElfFile(sections=[*debug, Section(".data", flags=RW, data=bytes(8))], **kind))


FILES = {(name, version): file(kind, version) for name, kind in KINDS.items() for version in (2, 4, 5)}
DEBUG = ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_addr"


def places(data: bytes) -> list[int]:
    """Return the places of all bytes of the debug sections, and of their headers in the table of sections."""
    found: list[int] = []
    for number in range(1, peek(data, "e_shnum")):
        start, size = peek(data, "sh_offset", number), peek(data, "sh_size", number)
        if not peek(data, "sh_flags", number):
            found += range(start, start + size)
        header = peek(data, "e_shoff") + number * peek(data, "e_shentsize")
        found += range(header, header + peek(data, "e_shentsize"))
    return found


SPOTS = {key: places(data) for key, data in FILES.items()}


def check(error: InputError) -> None:
    assert error.file == "a file"
    assert error.cause


def both(values: Sequence[int]) -> list[VariablePlace]:
    return [VariablePlace(value, is_tls) for value in values for is_tls in (False, True)]


def facts(data: bytes) -> Declarations | None:
    """Return what is declared, or None where the file is refused; any other exception is a failed test."""
    start = time.process_time()
    try:
        image = read_image(data, "a file")
        declarations_by_name(DebugInfo(image), ["a", "m", "bc"])
        is_object = image.is_relocatable and len(image.sections) > 1
        here = [VariablePlaces(image).starts[1] + place - PLACES[0] for place in PLACES] if is_object else PLACES
        found = read_declarations(image, both(here), with_functions=True)
    except InputError as error:
        check(error)
        return None
    finally:
        assert time.process_time() - start < MOST_SECONDS
    for declarations in found.by_place.values():
        assert len(set(declarations)) == len(declarations) > 0
        assert all(one.type_name is None or len(one.type_name) <= 256 for one in declarations)
    return found


@pytest.mark.parametrize("key", FILES, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_sound_file_declares_all(key: tuple[str, int]) -> None:
    found = facts(FILES[key])
    assert found is not None
    assert found.notes == ()
    assert [*found.by_place] == [(place, place == PLACES[3]) for place in PLACES[: 6 if key[1] == 5 else 5]]


@examples(600)
@given(st.data())
def test_changed_bytes_give_an_answer_or_one_error(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([*FILES]))
    changed = bytearray(FILES[key])
    spots = SPOTS[key]
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(spots) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    ):
        changed[spots[place]] = byte
    facts(bytes(changed))


@pytest.mark.parametrize("key", [("64-bit-little-endian", 5), ("32-bit-big-endian", 4)])
@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
def test_each_byte_may_become_another(key: tuple[str, int], byte: int) -> None:
    sound = FILES[key]
    for place in SPOTS[key]:
        facts(sound[:place] + bytes([byte]) + sound[place + 1 :])


@pytest.mark.parametrize("section", DEBUG)
def test_a_cut_section_gives_an_answer_or_one_error(section: str) -> None:
    units = [unit(5)]
    whole = next(one for one in sections(units) if one.name == section)
    for size in range(len(whole.data)):
        cut = [Section(one.name, data=one.data[:size]) if one.name == section else one for one in sections(units)]
        facts(write(ElfFile(sections=cut)))


# --- what is there a million times, or says so ------------------------------------------------------------------------

MANY = 1_000_000
PLACE = PLACES[0]
A_VARIABLE = b"\x02\x09\x03" + PLACE.to_bytes(8, "little")
ABBREVIATIONS = b"\x01\x11\x01\0\0" + b"\x02\x34\0\x02\x18\0\0" + b"\0"  # a unit, and a variable with an address


def old_unit(body: bytes, table: int = 0) -> bytes:
    return struct.pack("<IHIB", 7 + len(body), 4, table, 8) + body


def hostile(**contents: bytes) -> bytes:
    debug = [Section(f".{name}", data=data) for name, data in contents.items()]
    return write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8)), *debug]))


def with_line_table(table: bytes) -> bytes:
    body = b"\x01\x01\x01\xfb\x0e\x01" + table  # no opcodes
    head = struct.pack("<HBBI", 5, 8, 0, len(body))
    debug = [one for one in sections([unit(5)]) if one.name != ".debug_line"]
    lines = Section(".debug_line", data=struct.pack("<I", len(head + body)) + head + body)
    return write(ElfFile(sections=[*debug, lines]))


def numbered(count: int) -> bytes:
    """Return a table of so many abbreviations of variables."""
    return b"".join(uleb(number) + b"\x34\0\x02\x18\0\0" for number in range(1, count)) + b"\0"


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a million units": lambda: hostile(debug_info=old_unit(b"\1") * MANY, debug_abbrev=ABBREVIATIONS),
    "a unit longer than the section": lambda: hostile(
        debug_info=struct.pack("<IHIB", 1 << 31, 4, 0, 8) + b"\1" + A_VARIABLE, debug_abbrev=ABBREVIATIONS
    ),
    "a unit of 64 bits longer than any file": lambda: hostile(
        debug_info=struct.pack("<IQHQB", 0xFFFFFFFF, (1 << 64) - 1, 4, 0, 8), debug_abbrev=ABBREVIATIONS
    ),
    "abbreviations without end": lambda: hostile(
        debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=b"\x01\x34\0" + b"\3\x08" * (4 << 20)
    ),
    "numbers of abbreviations without end": lambda: hostile(
        debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=b"\x80" * (8 << 20)
    ),
    "a million abbreviations": lambda: hostile(
        debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=numbered(MANY)
    ),
    "tables that overlap": lambda: hostile(
        debug_info=b"".join(old_unit(b"\1" + A_VARIABLE, 7 * number) for number in range(10_000)),
        debug_abbrev=b"\x02\x34\0\x02\x18\0\0" * 20_000,
    ),
    "many shapes for many candidates": lambda: hostile(
        debug_info=old_unit(b"\1" + A_VARIABLE * 3) * 5000,
        debug_abbrev=b"".join(
            uleb(number) + b"\x34\0" + b"\x03\x0f" * (number % 200) + b"\x02\x18\0\0" for number in range(1, 3000)
        ),
    ),
    "a number without end": lambda: hostile(
        debug_info=old_unit(b"\1" + b"\x80" * (8 << 20)), debug_abbrev=ABBREVIATIONS
    ),
    "long names before candidates": lambda: hostile(
        debug_info=old_unit(b"\1" + (b"a" * 250 + b"\0" + A_VARIABLE[1:]) * 20_000),
        debug_abbrev=b"\x01\x11\x01\0\0\x02\x34\0\x03\x08\x02\x18\0\0\0",
    ),
    "more directories than bytes": lambda: with_line_table(b"\x01\x01\x08" + uleb(1 << 62) + bytes(200)),
    "files of no bytes": lambda: with_line_table(b"\x01\x01\x19" + uleb(10**9) + bytes(200)),
    "four million directories": lambda: with_line_table(b"\x01\x01\x0e" + uleb(4 * MANY) + bytes(16 << 20)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_claims_to_be_huge_is_answered_soon(name: str) -> None:
    facts(HOSTILE[name]())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@examples(100)
@given(st.data())
def test_changed_bytes_of_an_object_give_an_answer_or_one_error(kind: dict[str, Any], data: st.DataObject) -> None:
    changed = bytearray(OBJECTS[kind["machine"]])
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(changed) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    ):
        changed[place] = byte
    facts(bytes(changed))


def test_a_relocation_at_an_offset_that_no_index_can_hold_is_refused() -> None:
    changed = bytearray(OBJECTS[EM_S390])
    changed[680] = 128
    assert facts(bytes(changed)) is None


def test_abbreviations_at_an_offset_that_no_index_can_hold_are_refused() -> None:
    with pytest.raises(InputError, match="no abbreviations"):
        AbbreviationTables(DebugSection("a file", ".debug_abbrev", bytes(8), "little")).table(1 << 63)


@pytest.mark.parametrize("offset", [-8, 1 << 64])
def test_a_thread_local_at_an_offset_that_no_block_can_have_is_not_declared(offset: int) -> None:
    image = read_image(FILES["64-bit-little-endian", 5], "a file")
    assert read_declarations(image, both([offset])).by_place == {}


def object_file(kind: dict[str, Any]) -> bytes:
    debug = object_sections(
        [unit(4)],
        lambda one: ("(.data)", one.value - PLACE),
        {EM_386: (1, 32), EM_PPC: (1, 78), EM_X86_64: (1, 17), EM_S390: (22, 53)}[kind["machine"]],
        order=kind["order"],
        bits=kind["bits"],
        has_addends=kind["machine"] != EM_386,
    )
    memory = [Section(".data", flags=RW, data=bytes(256))]
    symbols = [Sym("(.data)", At(".data"), 0, STT_SECTION, STB_LOCAL), Sym("shared", 8, 16, section=SHN_COMMON)]
    return write(ElfFile(type=ET_REL, sections=[*memory, *debug], symbols=symbols, **kind))


OBJECTS = {kind["machine"]: object_file(kind) for kind in KINDS.values()}


@pytest.mark.parametrize("machine", OBJECTS)
def test_a_sound_object_declares_all(machine: int) -> None:
    found = facts(OBJECTS[machine])
    assert found is not None
    assert (found.notes, sum(not one.is_tls for one in found.by_place)) == ((), 4)
