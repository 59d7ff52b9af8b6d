"""Hostile debug information gives declarations, a note or one clear error, quickly, and never another exception."""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.dwarf.declarations import Declarations, declarations_by_name, read_declarations
from footprint.dwarf.encoding import abbreviation_tables
from footprint.dwarf.places import VariablePlace, VariablePlaces
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import DebugInfo
from footprint.elf.image import read_image
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
from tests.workcount import Work, assert_linear, warm_up, work_of

PLACES = [0x4000 + 16 * number for number in range(6)]
MOST_WORK = 2
"""So many times the work of a sound file is that of a damaged one at most."""


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
    result: list[int] = []
    for number in range(1, peek(data, "e_shnum")):
        start, size = peek(data, "sh_offset", number), peek(data, "sh_size", number)
        if not peek(data, "sh_flags", number):
            result += range(start, start + size)
        header = peek(data, "e_shoff") + number * peek(data, "e_shentsize")
        result += range(header, header + peek(data, "e_shentsize"))
    return result


SPOTS = {key: places(data) for key, data in FILES.items()}


def check(error: InputError) -> None:
    assert error.file == "a file"
    assert error.cause


def both(values: Sequence[int]) -> list[VariablePlace]:
    return [VariablePlace(value, is_tls) for value in values for is_tls in (False, True)]


def facts(data: bytes) -> Declarations | None:
    """Return what is declared, or None where the file is refused; any other exception is a failed test."""
    try:
        image = read_image(data, "a file")
        declarations_by_name(DebugInfo(image), ["a", "m", "bc"])
        is_object = image.is_relocatable and len(image.sections) > 1
        here = [VariablePlaces(image).starts[1] + place - PLACES[0] for place in PLACES] if is_object else PLACES
        result = read_declarations(image, both(here), with_functions=True)
    except InputError as error:
        check(error)
        return None
    for declarations in result.by_place.values():
        assert len(set(declarations)) == len(declarations) > 0
        assert all(declaration.type_name is None or len(declaration.type_name) <= 256 for declaration in declarations)
    return result


@cache
def work_of_sound(key: tuple[str, int]) -> Work:
    warm_up(lambda: facts(FILES[key]))
    return work_of(lambda: facts(FILES[key]))


def counted_facts(data: bytes, sound: tuple[str, int]) -> None:
    work, least = work_of(lambda: facts(data)), work_of_sound(sound)
    assert work.line_count <= MOST_WORK * least.line_count
    assert work.step_count <= MOST_WORK * least.step_count


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
    counted_facts(bytes(changed), key)


BYTES = 0x00, 0x7F, 0x80, 0xFF


@pytest.mark.parametrize("key", [("64-bit-little-endian", 5), ("32-bit-big-endian", 4)])
@pytest.mark.parametrize("byte", BYTES)
def test_each_byte_may_become_another(key: tuple[str, int], byte: int) -> None:
    sound, counted_at = FILES[key], 4 * BYTES.index(byte)  # counting takes ten times as long
    for number, place in enumerate(SPOTS[key]):
        changed = sound[:place] + bytes([byte]) + sound[place + 1 :]
        if number % 16 == counted_at:
            counted_facts(changed, key)
        else:
            facts(changed)


@pytest.mark.parametrize("section", DEBUG)
def test_a_cut_section_gives_an_answer_or_one_error(section: str) -> None:
    units = [unit(5)]
    whole = next(one for one in sections(units) if one.name == section)
    for size in range(len(whole.data)):
        cut = [Section(one.name, data=one.data[:size]) if one.name == section else one for one in sections(units)]
        facts(write(ElfFile(sections=cut)))


# --- what is there many times, or says so -----------------------------------------------------------------------------

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
    debug = [section for section in sections([unit(5)]) if section.name != ".debug_line"]
    lines = Section(".debug_line", data=struct.pack("<I", len(head + body)) + head + body)
    return write(ElfFile(sections=[*debug, lines]))


def numbered(count: int) -> bytes:
    """Return a table of so many abbreviations of variables."""
    return b"".join(uleb(number) + b"\x34\0\x02\x18\0\0" for number in range(1, count)) + b"\0"


HOSTILE: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "many units": (5_000, lambda count: hostile(debug_info=old_unit(b"\1") * count, debug_abbrev=ABBREVIATIONS)),
    "a unit longer than the section": (
        1 << 29,
        lambda size: hostile(
            debug_info=struct.pack("<IHIB", size, 4, 0, 8) + b"\1" + A_VARIABLE, debug_abbrev=ABBREVIATIONS
        ),
    ),
    "a unit of 64 bits longer than any file": (
        1 << 61,
        lambda size: hostile(debug_info=struct.pack("<IQHQB", 0xFFFFFFFF, size, 4, 0, 8), debug_abbrev=ABBREVIATIONS),
    ),
    "abbreviations without end": (
        50_000,
        lambda count: hostile(
            debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=b"\x01\x34\0" + b"\3\x08" * count
        ),
    ),
    "numbers of abbreviations without end": (
        100_000,
        lambda size: hostile(debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=b"\x80" * size),
    ),
    "many abbreviations": (
        3_000,
        lambda count: hostile(debug_info=old_unit(b"\1" + A_VARIABLE) * 1000, debug_abbrev=numbered(count)),
    ),
    "tables that overlap": (
        400,
        lambda count: hostile(
            debug_info=b"".join(old_unit(b"\1" + A_VARIABLE, 7 * number) for number in range(count)),
            debug_abbrev=b"\x02\x34\0\x02\x18\0\0" * (2 * count),
        ),
    ),
    "many shapes for many candidates": (
        200,
        lambda count: hostile(
            debug_info=old_unit(b"\1" + A_VARIABLE * 3) * count,
            debug_abbrev=b"".join(
                uleb(number) + b"\x34\0" + b"\x03\x0f" * (number % 200) + b"\x02\x18\0\0" for number in range(1, count)
            ),
        ),
    ),
    "a number without end": (
        100_000,
        lambda size: hostile(debug_info=old_unit(b"\1" + b"\x80" * size), debug_abbrev=ABBREVIATIONS),
    ),
    "long names before candidates": (
        500,
        lambda count: hostile(
            debug_info=old_unit(b"\1" + (b"a" * 250 + b"\0" + A_VARIABLE[1:]) * count),
            debug_abbrev=b"\x01\x11\x01\0\0\x02\x34\0\x03\x08\x02\x18\0\0\0",
        ),
    ),
    "more directories than bytes": (
        1 << 60,
        lambda count: with_line_table(b"\x01\x01\x08" + uleb(count) + bytes(200)),
    ),
    "files of no bytes": (10**9, lambda count: with_line_table(b"\x01\x01\x19" + uleb(count) + bytes(200))),
    "many directories": (
        20_000,
        lambda count: with_line_table(b"\x01\x01\x0e" + uleb(count) + bytes(4 * count)),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_there_many_times_or_says_so_costs_no_more_than_what_is_there(name: str) -> None:
    size, make = HOSTILE[name]
    assert_linear(make, facts, size)


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
        abbreviation_tables(DebugSection("a file", ".debug_abbrev", bytes(8), "little"))(1 << 63)


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
