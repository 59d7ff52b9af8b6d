"""Where the variables of object files are declared: their relocations say it, by sections and offsets."""

from collections.abc import Sequence
from typing import Any

import pytest

from footprint.dwarf.declarations import Declarations, declarations_by_name, read_declarations
from footprint.dwarf.places import VariablePlaces
from footprint.dwarf.units import DebugInfo
from footprint.elf.abi import STT_TLS
from footprint.elf.image import read_image
from footprint.elf.symbols import read_symbol_table, section_bases
from footprint.errors import InputError
from tests.dwarfwriter import (
    AT_ADDR_BASE,
    AT_BYTE_SIZE,
    AT_CONST_VALUE,
    AT_LOCATION,
    AT_NAME,
    AT_TYPE,
    BLOCK1,
    DATA1,
    EXPRLOC,
    REF4,
    SEC_OFFSET,
    STRING,
    STRP,
    TAG_BASE_TYPE,
    TAG_COMPILE_UNIT,
    TAG_VARIABLE,
    Addr,
    Attribute,
    Die,
    Operand,
    Ref,
    Tls,
    Unit,
    Value,
    object_sections,
    sections,
)
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    EM_386,
    EM_AARCH64,
    EM_ARM,
    EM_MIPS,
    EM_PPC,
    EM_PPC64,
    EM_RISCV,
    EM_S390,
    EM_X86_64,
    ET_REL,
    RW,
    SHN_COMMON,
    SHT_NOBITS,
    SHT_RELA,
    STB_LOCAL,
    STT_SECTION,
    TLS,
    At,
    ElfFile,
    Rel,
    Section,
    Sym,
    patch,
    write,
)

# By machine: relocations of an address, and of an offset of thread-local storage, with its bias.
TYPES = {
    EM_386: (1, 32, 0),
    EM_ARM: (2, 106, 0),
    EM_X86_64: (1, 17, 0),
    EM_AARCH64: (257, 1029, 0),
    EM_PPC: (1, 78, 0x8000),
    EM_PPC64: (38, 78, 0x8000),
    EM_S390: (22, 53, 0),
    EM_RISCV: (2, 9, 0x800),
}
WITHOUT_ADDENDS = {EM_386, EM_ARM, EM_MIPS}
MEMORY = [
    Section(".data", flags=RW, data=bytes(64)),
    Section(".bss", SHT_NOBITS, RW, size=64),
    Section(".tbss", SHT_NOBITS, TLS, size=32),
]
# Sections have symbols of their own, which relocations refer to.
OF_SECTIONS = [Sym(f"({one.name})", At(one.name), 0, STT_SECTION, STB_LOCAL) for one in MEMORY]
SYMBOLS = [
    Sym("in_data", At(".data", 16), 4),
    Sym("in_bss", At(".bss", 16), 4),
    Sym("of_thread", At(".tbss", 16), 4, STT_TLS),
]
DATA, BSS, THREAD = 0x1010, 0x2010, 0x3010
INT = Die(TAG_BASE_TYPE, [(AT_NAME, STRING, "int"), (AT_BYTE_SIZE, DATA1, 4)], label="int")


def variable(name: str, location: Value) -> Die:
    return Die(TAG_VARIABLE, [(AT_NAME, STRP, name), (AT_TYPE, REF4, Ref("int")), (AT_LOCATION, EXPRLOC, location)])


def unit(*entries: Die, more: Sequence[Attribute] = (), addresses: Sequence[int] = ()) -> Unit:
    return Unit(Die(TAG_COMPILE_UNIT, [(AT_NAME, STRP, "a.c"), *more], [INT, *entries]), addresses=addresses)


ENTRIES = variable("in_data", Addr(DATA)), variable("in_bss", Addr(BSS)), variable("of_thread", Tls(THREAD))


def of_section(bias: int) -> Any:  # noqa: ANN401 # what `object_sections` takes
    """Return a function that says 0x2010 as 16 bytes from the beginning of the second section."""

    def symbol(operand: Operand) -> tuple[str, int]:
        return f"({MEMORY[operand.value // 0x1000 - 1].name})", operand.value % 0x1000 + bias * operand.is_tls

    return symbol


def elf(*units: Unit, kind: dict[str, Any] | None = None, symbols: Sequence[Sym] = SYMBOLS) -> bytes:
    kind = kind or {"machine": EM_X86_64}
    address, tls, bias = TYPES[kind["machine"]]
    debug = object_sections(
        units,
        of_section(bias),
        (address, tls),
        order=kind.get("order", "little"),
        bits=kind.get("bits", 64),
        has_addends=kind["machine"] not in WITHOUT_ADDENDS,
    )
    return write(ElfFile(type=ET_REL, sections=[*MEMORY, *debug], symbols=[*OF_SECTIONS, *symbols], **kind))


def read(data: bytes) -> tuple[Declarations, dict[str, str]]:
    """Return the answer for all variables that the symbols name, and how the declarations call each."""
    image = read_image(data, "a.o")
    places = VariablePlaces(image)
    in_memory = section_bases(image, [(section.index, section) for section in image.sections if section.is_in_memory])
    symbols = read_symbol_table(image).variables(in_memory)
    found = read_declarations(image, map(places.of, symbols))
    named = {symbol.name: found.by_place.get(places.of(symbol), ()) for symbol in symbols}
    return found, {name: str(one.name) for name, here in named.items() for one in here}


@in_all_classes_and_orders
def test_variables_at_one_offset_of_several_sections_are_told_apart(kind: dict[str, Any]) -> None:
    found, named = read(elf(unit(*ENTRIES), kind=kind))
    assert named == {"in_data": "in_data", "in_bss": "in_bss", "of_thread": "of_thread"}
    assert found.notes == ()


@pytest.mark.parametrize("machine", TYPES)
def test_each_machine_has_its_own_types_of_relocations(machine: int) -> None:
    bits = 32 if machine in {EM_386, EM_ARM, EM_PPC} else 64
    _, named = read(elf(unit(*ENTRIES), kind={"machine": machine, "bits": bits}))
    assert named == {"in_data": "in_data", "in_bss": "in_bss", "of_thread": "of_thread"}


def test_addresses_by_index_are_relocated() -> None:
    indexed = variable("in_data", b"\xa1\0"), variable("in_bss", b"\xa1\1")
    base: Attribute = AT_ADDR_BASE, SEC_OFFSET, 8
    _, named = read(elf(unit(*indexed, more=[base], addresses=[DATA, BSS])))
    assert named == {"in_data": "in_data", "in_bss": "in_bss"}


def test_a_common_symbol_has_no_section_and_is_found_all_the_same() -> None:
    common = Sym("shared", 8, 40, section=SHN_COMMON), Sym("other", 8, 4, section=SHN_COMMON)
    debug = object_sections([unit(variable("shared", Addr(0)))], lambda _: ("shared", 0), (1, 17))
    data = write(ElfFile(type=ET_REL, sections=[*MEMORY, *debug], symbols=[*common, *SYMBOLS]))
    assert read(data)[1] == {"shared": "shared"}


def test_what_is_defined_elsewhere_is_at_no_address() -> None:
    symbols = [*SYMBOLS, Sym("elsewhere", 0, 4, section=0)]
    debug = object_sections([unit(variable("elsewhere", Addr(0)))], lambda _: ("elsewhere", 16), (1, 17))
    data = write(ElfFile(type=ET_REL, sections=[*MEMORY, *debug], symbols=symbols))
    assert read(data)[0].by_place == {}


def raw(section: Section) -> bytes:
    assert isinstance(section.data, bytes)
    return section.data


def test_texts_and_tables_of_joined_sections_are_relocated() -> None:
    """Type units make several sections .debug_info; what `ld -r` joins does not begin where its symbol says."""
    first = {one.name: one for one in object_sections([unit(*ENTRIES[:1])], of_section(0), (1, 17))}
    second = {one.name: one for one in object_sections([unit(*ENTRIES[1:2])], of_section(0), (1, 17))}
    table = second[".rela.debug_info"].data
    more = [
        # Where its abbreviations stand, and the names of the unit and of the variable.
        Rel(8, 10, "(abbreviations)", 0),
        Rel(13, 10, "(texts)", 1),
        Rel(raw(second[".debug_info"]).index(b"\x09\x03") - 8, 10, "(texts)", 5),
    ]
    merged = [
        *MEMORY,
        first[".debug_info"],
        first[".rela.debug_info"],
        *(Section(name, data=raw(first[name]) + raw(second[name])) for name in (".debug_abbrev", ".debug_str")),
    ]
    again = len(merged) + 1
    merged += [
        second[".debug_info"],
        Section(".rela.again", SHT_RELA, data=[*table, *more], info=again),
    ]
    places = [
        Sym("(abbreviations)", At(".debug_abbrev", len(raw(first[".debug_abbrev"]))), 0, 0, STB_LOCAL),
        Sym("(texts)", At(".debug_str", len(raw(first[".debug_str"]))), 0, 0, STB_LOCAL),
    ]
    data = write(ElfFile(type=ET_REL, sections=merged, symbols=[*OF_SECTIONS, *places, *SYMBOLS]))
    assert read(data)[1] == {"in_data": "in_data", "in_bss": "in_bss"}


def test_a_constant_of_an_object_is_found_by_its_name() -> None:
    constant = Die(
        TAG_VARIABLE, [(AT_NAME, STRP, "ratio"), (AT_TYPE, REF4, Ref("int")), (AT_CONST_VALUE, BLOCK1, bytes(4))]
    )
    assert [*declarations_by_name(DebugInfo(read_image(elf(unit(constant)), "a.o")), ["ratio"])] == ["ratio"]


def test_a_linked_file_keeps_its_addresses() -> None:
    image = read_image(write(ElfFile(sections=MEMORY, symbols=SYMBOLS)), "program")
    in_memory = section_bases(image, [(section.index, section) for section in image.sections if section.is_in_memory])
    symbols = read_symbol_table(image).variables(in_memory)
    assert [VariablePlaces(image).of(symbol) for symbol in symbols] == [
        (symbol.vaddr, symbol.is_tls) for symbol in symbols
    ]


def test_empty_sections_of_an_object_have_addresses_of_their_own() -> None:
    empty = [Section(f".bss.{number}", SHT_NOBITS, RW) for number in range(3)]
    starts = VariablePlaces(read_image(write(ElfFile(type=ET_REL, sections=empty)), "a.o")).starts
    assert len({*starts[1:4]}) == 3


# --- damage -----------------------------------------------------------------------------------------------------------


def test_an_unknown_type_of_relocation_is_said() -> None:
    debug = object_sections([unit(*ENTRIES)], of_section(0), (99, 99))
    found, named = read(write(ElfFile(type=ET_REL, sections=[*MEMORY, *debug], symbols=[*OF_SECTIONS, *SYMBOLS])))
    assert named == {}
    (note,) = found.notes
    assert (note.slug, "type 99" in note.detail) == ("debug-info-unsupported", True)


@pytest.mark.parametrize(
    ("relocations", "cause"),
    [
        ([Rel(1 << 40, 1, "(.data)", 0)], "outside of the section"),
        ([Rel(0, 1, 999, 0)], "no symbol 999"),
        ([Rel(0, 1, "(.data)", 0)] * 1000, "more relocations than bytes"),
    ],
)
def test_damaged_relocations_are_one_error(relocations: Sequence[Rel], cause: str) -> None:
    debug = [*sections([unit(*ENTRIES)]), Section(".rela.debug_info", SHT_RELA, data=relocations, info=".debug_info")]
    data = write(ElfFile(type=ET_REL, sections=[*MEMORY, *debug], symbols=[*OF_SECTIONS, *SYMBOLS]))
    with pytest.raises(InputError, match=cause):
        read(data)


def test_relocations_without_symbols_are_one_error() -> None:
    data = patch(elf(unit(*ENTRIES)), "sh_link", 10_000, ".rela.debug_info")
    with pytest.raises(InputError, match="sh_link 10000"):
        read(data)
