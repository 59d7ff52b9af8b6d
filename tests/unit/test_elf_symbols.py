"""Symbol tables: which one is read, which of its entries are variables, and how damage in it is told."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from footprint.elf.image import read_image
from footprint.elf.symbols import Symbol, SymbolTable, read_symbol_table, section_bases
from footprint.errors import InputError
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    ET_REL,
    RW,
    RX,
    SHN_ABS,
    SHN_COMMON,
    SHN_XINDEX,
    SHT_NOBITS,
    STB_GLOBAL,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STB_WEAK,
    STT_COMMON,
    STT_FILE,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_SECTION,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    patch,
    peek,
    write,
)

SHN_X86_64_LCOMMON = 0xFF02

DATA = Section(".data", flags=RW, data=bytes(64), addr=0x2000)
BSS = Section(".bss", SHT_NOBITS, RW, size=64)
ONE_VARIABLE = write(ElfFile(sections=[DATA], symbols=[Sym("table", At(".data"), 16)]))


def read(file: ElfFile | bytes) -> SymbolTable:
    return read_symbol_table(read_image(file if isinstance(file, bytes) else write(file), "libdemo.so"))


def variables(file: ElfFile | bytes, *sections: str) -> list[Symbol]:
    """Read the symbols of the sections that are named, or of .data."""
    table, wanted = read(file), sections or (".data",)
    image = table.image
    return table.variables(section_bases(image, [(one.index, one) for one in image.sections if one.name in wanted]))


def names(file: ElfFile | bytes, *sections: str) -> list[str]:
    return [symbol.name for symbol in variables(file, *sections)]


def refused(file: ElfFile | bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        variables(file)
    assert caught.value.file == "libdemo.so"
    return caught.value


# --- which table ------------------------------------------------------------------------------------------------------

BOTH_TABLES = ElfFile(
    sections=[DATA],
    symbols=[Sym("exported", At(".data"), 8), Sym("static", At(".data", 8), 8, binding=STB_LOCAL)],
    dynamic_symbols=[Sym("exported", At(".data"), 8)],
)


def test_symtab_is_preferred_as_it_names_static_variables_too() -> None:
    table = read(BOTH_TABLES)
    assert (table.source, len(table)) == (".symtab", 3)
    assert {*names(BOTH_TABLES)} == {"exported", "static"}


def test_a_stripped_file_has_dynsym() -> None:
    stripped = replace(BOTH_TABLES, symbols=[])
    table = read(stripped)
    assert (table.source, len(table)) == (".dynsym", 2)
    assert names(stripped) == ["exported"]


def test_an_empty_symtab_is_none() -> None:
    assert read(patch(write(BOTH_TABLES), "sh_size", 0, ".symtab")).source == ".dynsym"


def test_a_file_without_either_names_nothing() -> None:
    table = read(ElfFile(sections=[DATA]))
    assert (table.source, len(table), table.variables({})) == (None, 0, [])


# --- which entries ----------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
def test_every_field_of_a_symbol_is_read_in_all_classes_and_byte_orders(kind: dict[str, Any]) -> None:
    symbol = Sym("table", 0x2010, 0x20, STT_OBJECT, STB_WEAK, section=".data")
    (found,) = variables(ElfFile(**kind, sections=[DATA], symbols=[symbol]))
    assert found == Symbol("table", 0x2010, 0x20, STT_OBJECT, STB_WEAK, section_index=1, offset=0x10)


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        pytest.param(
            [Sym("a_long_name", At(".data"), 8), Sym(3, At(".data", 8), 8), Sym(8, At(".data", 16), 8)],
            ["a_long_name", "long_name", "name"],
            id="names may share their tails",
        ),
        pytest.param([Sym("", At(".data"), 8)], [""], id="a symbol may have no name"),
        pytest.param(
            [Sym(name, At(".data"), 1) for name in ("c", "a", "b")],
            ["c", "a", "b"],
            id="symbols come in the order of the table",
        ),
    ],
)
def test_names_are_those_of_the_table_in_its_order(symbols: list[Sym], expected: list[str]) -> None:
    assert names(ElfFile(sections=[DATA], symbols=symbols)) == expected


@pytest.mark.parametrize("binding", [STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE])
@pytest.mark.parametrize("symbol_type", [STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_TLS, 10, 15])
def test_a_symbol_of_any_type_and_binding_may_name_a_variable(symbol_type: int, binding: int) -> None:
    symbol = Sym("table", 0x2000, 8, symbol_type, binding, section=".data")
    (found,) = variables(ElfFile(sections=[DATA], symbols=[symbol]))
    assert (found.type, found.binding) == (symbol_type, binding)


@pytest.mark.parametrize("symbol_type", [STT_SECTION, STT_FILE])
def test_sections_and_files_as_symbols_are_left_out(symbol_type: int) -> None:
    assert names(ElfFile(sections=[DATA], symbols=[Sym("it", At(".data"), 64, symbol_type, STB_LOCAL)])) == []


@in_all_classes_and_orders
def test_only_symbols_of_the_wanted_sections_are_given(kind: dict[str, Any]) -> None:
    elsewhere = [
        Sym("function", At(".text"), 8, STT_FUNC),
        Sym("undefined", 0, 8),
        Sym("absolute", 0x2000, 8, section=SHN_ABS),
    ]
    sections = [DATA, BSS, Section(".text", flags=RX, data=bytes(16))]
    file = ElfFile(**kind, sections=sections, symbols=[*elsewhere, Sym("zeros", At(".bss"), 8), Sym("x", At(".data"))])
    assert names(file, ".bss") == ["zeros"]
    assert names(file, ".bss", ".data") == ["zeros", "x"]
    assert names(file, ".nothing") == []


def test_a_section_number_that_differs_in_its_high_byte_alone_is_another_section() -> None:
    sections = [
        DATA,
        *[Section(".bss.filler", SHT_NOBITS, RW, size=4)] * 255,
        Section(".bss.257", SHT_NOBITS, RW, size=4),
    ]
    file = ElfFile(
        type=ET_REL, sections=sections, symbols=[Sym("in_1", At(".data"), 4), Sym("in_257", At(".bss.257"), 4)]
    )
    assert names(file, ".data") == ["in_1"]
    assert names(file, ".bss.257") == ["in_257"]


def test_the_value_of_a_thread_local_symbol_is_its_offset_in_the_block_of_a_thread() -> None:
    sections = [Section(".tdata", flags=TLS, data=bytes(24)), Section(".tbss", SHT_NOBITS, TLS, size=64)]
    (found,) = variables(ElfFile(sections=sections, symbols=[Sym("per_thread", At(".tbss", 8), 8, STT_TLS)]), ".tbss")
    assert (found.vaddr, found.offset, found.type) == (24 + 8, 8, STT_TLS)


def test_the_names_of_functions_are_not_looked_at() -> None:
    sections = [DATA, Section(".text", flags=RX, data=bytes(16))]
    function = Sym(0xFFFFFF, At(".text"), 8, STT_FUNC)
    assert names(ElfFile(sections=sections, symbols=[function, Sym("table", At(".data"), 8)])) == ["table"]


# --- COMMON -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", [SHN_COMMON, SHN_X86_64_LCOMMON])
@in_all_classes_and_orders
def test_in_an_object_the_value_of_a_common_symbol_is_its_alignment(kind: dict[str, Any], section: int) -> None:
    (found,) = variables(ElfFile(**kind, type=ET_REL, symbols=[Sym("tentative", 32, 100, section=section)]))
    assert (found.name, found.vaddr, found.size_bytes, found.is_common) == ("tentative", 32, 100, True)


def test_in_a_linked_file_nothing_is_common() -> None:
    assert names(ElfFile(sections=[DATA], symbols=[Sym("tentative", 32, 100, section=SHN_COMMON)])) == []


# --- more sections than 16 bits can count -----------------------------------------------------------------------------


@in_all_classes_and_orders
def test_a_section_number_may_stand_in_a_table_of_its_own(kind: dict[str, Any]) -> None:
    symbols = [Sym("table", At(".data"), 8), Sym("zeros", At(".bss"), 8)]
    file = write(ElfFile(**kind, sections=[DATA, BSS], symbols=symbols, extended=True))
    assert [(variable.name, variable.section_index) for variable in variables(file, ".data", ".bss")] == [
        ("table", 1),
        ("zeros", 2),
    ]
    assert names(file, ".bss") == ["zeros"]


def test_a_symbol_whose_section_number_stands_nowhere_is_left_out() -> None:
    symbols = [Sym("lost", 0, 8, section=SHN_XINDEX), Sym("table", At(".data"), 8)]
    assert names(ElfFile(sections=[DATA], symbols=symbols)) == ["table"]


def test_a_table_of_section_numbers_may_end_early() -> None:
    symbols = [Sym("first", At(".data"), 8), Sym("second", At(".data", 8), 8)]
    file = write(ElfFile(sections=[DATA], symbols=symbols, extended=True))
    assert names(patch(file, "sh_size", 4 + 4 + 3, ".symtab_shndx")) == ["first"]


def test_a_table_of_section_numbers_beyond_the_end_of_the_file_is_refused() -> None:
    file = write(ElfFile(sections=[DATA], symbols=[Sym("table", At(".data"), 8)], extended=True))
    error = refused(patch(file, "sh_size", 1 << 40, ".symtab_shndx"))
    assert error.offset == peek(file, "sh_offset", ".symtab_shndx")


@cache
def with_sections_numbered_like_reserved_numbers() -> bytes:
    """Return an object whose sections also have the numbers 0xff02, 0xfff1 and 0xfff2, which mean something else."""
    sections = [Section(".bss.filler", SHT_NOBITS, RW, size=4)] * 0xFFF2
    for number in (SHN_X86_64_LCOMMON, SHN_ABS, SHN_COMMON):
        sections[number - 1] = Section(f".bss.{number:x}", SHT_NOBITS, RW, size=4)
    symbols = [
        Sym("in_ff02", At(".bss.ff02"), 4),
        Sym("in_fff2", At(".bss.fff2"), 4),
        Sym("absolute", 0, 4, section=SHN_ABS),
        Sym("tentative", 4, 4, section=SHN_COMMON),
    ]
    return write(ElfFile(type=ET_REL, sections=sections, symbols=symbols))


@pytest.mark.parametrize("number", ["ff02", "fff2"])
def test_a_symbol_in_a_section_that_is_numbered_like_common_is_not_common(number: str) -> None:
    found = {each.name: each for each in variables(with_sections_numbered_like_reserved_numbers(), f".bss.{number}")}
    assert found.keys() == {f"in_{number}", "tentative"}
    assert found["tentative"].is_common
    assert not found[f"in_{number}"].is_common
    assert found[f"in_{number}"].section_index == int(number, 16)


def test_an_absolute_symbol_is_not_in_the_section_that_is_numbered_like_absolute() -> None:
    assert names(with_sections_numbered_like_reserved_numbers(), ".bss.fff1") == ["tentative"]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 127, 128, 129, 511, 512, 513, 100_000])
def test_a_name_is_as_long_as_it_is(length: int) -> None:
    symbols = [Sym("n" * length, At(".data"), 8), Sym("behind it", At(".data"), 8)]
    assert names(ElfFile(sections=[DATA], symbols=symbols)) == ["n" * length, "behind it"]


def test_a_name_need_not_be_text() -> None:
    (name,) = names(ElfFile(sections=[DATA], symbols=[Sym("caf\udce9", At(".data"), 8)]))
    assert name.encode("utf-8", "surrogateescape") == b"caf\xe9"


def test_ten_thousand_copies_of_one_variable_share_one_name() -> None:
    name = "_ZN7classadL12NULL_XACTIONE"
    copies = [Sym(name, 0x2000 + 4 * number, 4, binding=STB_LOCAL, section=".data") for number in range(10_000)]
    data = replace(DATA, data=bytes(4 * len(copies)))
    assert names(ElfFile(sections=[data], symbols=copies)) == [name] * 10_000


def test_names_that_overlap_beyond_reason_are_refused() -> None:
    long_name = "n" * 10_000
    symbols = [Sym(1 + number, At(".data"), 1) for number in range(1000)]
    file = write(ElfFile(sections=[DATA], symbols=[*symbols, Sym(long_name, At(".data"), 1)]))
    error = refused(file)
    assert error.cause.endswith("overlap too much")
    assert error.offset == peek(file, "sh_offset", ".strtab")


def test_a_name_outside_its_table_is_refused() -> None:
    file = write(ElfFile(sections=[DATA], symbols=[Sym(0x1000, At(".data"), 8)]))
    error = refused(file)
    assert "outside" in error.cause
    assert error.offset == peek(file, "sh_offset", ".strtab")


@pytest.mark.parametrize("length", [5, 128, 5000])
def test_a_name_without_end_is_refused_where_it_begins(length: int) -> None:
    file = write(ElfFile(sections=[DATA], symbols=[Sym("n" * length, At(".data"), 8)]))
    error = refused(patch(file, "sh_size", 1 + length, ".strtab"))
    assert error.cause.endswith("has no end")
    assert error.offset == peek(file, "sh_offset", ".strtab") + 1


def test_a_symbol_without_a_name_needs_no_string_table() -> None:
    file = write(ElfFile(sections=[DATA], symbols=[Sym("", At(".data"), 8)]))
    assert names(patch(file, "sh_size", 0, ".strtab")) == [""]


# --- damage in the table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [
        ("sh_entsize", 0, "section 2: its symbols are 0 bytes long, the class has 24"),
        ("sh_entsize", 16, "section 2: its symbols are 16 bytes long, the class has 24"),
        ("sh_link", 0, "section 2: sh_link 0 is not a section"),
        ("sh_link", 99, "section 2: sh_link 99 is not a section"),
        ("sh_size", 1 << 63, f"section 2 of {1 << 63} bytes reaches beyond the end of the file"),
    ],
)
def test_a_damaged_symbol_table_is_refused_where_it_begins(field: str, value: int, cause: str) -> None:
    error = refused(patch(ONE_VARIABLE, field, value, ".symtab"))
    assert (error.cause, error.offset) == (cause, peek(ONE_VARIABLE, "sh_offset", ".symtab"))


def test_a_string_table_beyond_the_end_of_the_file_is_refused() -> None:
    error = refused(patch(ONE_VARIABLE, "sh_offset", 1 << 62, ".strtab"))
    assert (error.cause, error.offset) == ("section 3 of 7 bytes reaches beyond the end of the file", 1 << 62)


def test_a_piece_of_a_symbol_at_the_end_of_the_table_is_none() -> None:
    cut = patch(ONE_VARIABLE, "sh_size", 2 * 24 - 1, ".symtab")
    assert (len(read(cut)), names(cut)) == (1, [])
