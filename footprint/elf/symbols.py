"""The symbols of one ELF file: names for addresses, and nothing about what those addresses cost.

`.symtab` is read where it is there, else `.dynsym`. Functions, files and sections are passed over quickly: a program of
100,000 symbols has a few thousand variables, and only those are decoded.

Source: System V ABI, chapter 4 (Symbol Table); Thread-Local Storage 0.21 for what st_value means in STT_TLS.
"""

import re
from typing import Final, NamedTuple

from footprint.elf.image import SHT_DYNSYM, SHT_SYMTAB, SHT_SYMTAB_SHNDX, Buffer, Image, Section, StringTable
from footprint.errors import InputError

__all__ = ("COMMON_SECTIONS", "Symbol", "SymbolTable", "entries_and_names", "read_variables")

STT_FUNC: Final = 2
STT_SECTION: Final = 3
STT_FILE: Final = 4
STT_TLS: Final = 6
_NO_VARIABLES: Final = frozenset({STT_SECTION, STT_FILE})

STB_GLOBAL: Final = 1
STB_WEAK: Final = 2
STB_GNU_UNIQUE: Final = 10

SHN_UNDEF: Final = 0
SHN_LORESERVE: Final = 0xFF00
SHN_XINDEX: Final = 0xFFFF
COMMON_SECTIONS: Final = frozenset({0xFFF2, 0xFF02})  # SHN_COMMON, SHN_X86_64_LCOMMON


class Symbol(NamedTuple):
    """One entry of a symbol table that lies in memory.

    Attributes:
        name: The linker name; bytes that are not UTF-8 as surrogates.
        value: st_value: a vaddr; for a thread-local the offset in the thread's block; in a relocatable object the
            offset in its section; for a COMMON symbol its alignment.
        size_bytes: st_size; 0 where the assembler was not told.
        type: STT_*.
        binding: STB_*.
        section_index: The section it is defined in, extension numbering resolved; 0 for COMMON.
        is_common: Whether the linker has still to give it a place (COMMON).
    """

    name: str
    value: int
    size_bytes: int
    type: int
    binding: int
    section_index: int
    is_common: bool = False


class SymbolTable(NamedTuple):
    """The variables that the best symbol table of a file names.

    Attributes:
        source: `.symtab`, `.dynsym`, or None where the file has neither.
        entry_count: Entries of the table, functions and all.
        symbols: Those in the sections that were asked for, in the order of the table.
    """

    source: str | None
    entry_count: int
    symbols: tuple[Symbol, ...]


def read_variables(image: Image, section_indexes: frozenset[int]) -> SymbolTable:
    """Read the symbols that lie in the given sections, and COMMON ones; sections and files as symbols are left out.

    Raises:
        InputError: Where the table is damaged: an entry size that is none, names beyond their table, a cut.
    """
    table = next((s for s in image.sections if s.type == SHT_SYMTAB and s.size_bytes), None) or next(
        (s for s in image.sections if s.type == SHT_DYNSYM and s.size_bytes), None
    )
    if table is None:
        return SymbolTable(None, 0, ())
    entries, names = entries_and_names(image, table)
    count = len(entries) // image.symbol_bytes
    wide = _wide_indexes(image, table)
    wanted = section_indexes | (COMMON_SECTIONS if image.is_relocatable else frozenset()) | {SHN_XINDEX}
    places = _candidates(image, entries, wanted)
    symbols = []
    new = tuple.__new__  # makes a named tuple in half the time that its own constructor takes
    for index, fields in zip(places, image.symbols_at(entries, places), strict=True):
        name, info, _, section_index, value, size_bytes = fields
        is_common = False
        if section_index >= SHN_LORESERVE:
            # Reserved numbers mean something else, also in a file with so many sections.
            is_common = image.is_relocatable and section_index in COMMON_SECTIONS
            is_wide = section_index == SHN_XINDEX and (index + 1) * 4 <= len(wide)
            section_index = image.word_at(wide, index) if is_wide else SHN_UNDEF
        symbol_type = info & 15
        if (is_common or section_index in section_indexes) and symbol_type not in _NO_VARIABLES:
            symbols.append(
                new(Symbol, (names.at(name), value, size_bytes, symbol_type, info >> 4, section_index, is_common))
            )
    return SymbolTable(".symtab" if table.type == SHT_SYMTAB else ".dynsym", count, tuple(symbols))


def entries_and_names(image: Image, table: Section) -> tuple[Buffer, StringTable]:
    """Give the whole entries of a symbol table, and where their names are.

    Raises:
        InputError: Where the table is damaged: an entry size that is none, no strings, a cut.
    """
    if table.entry_bytes != image.symbol_bytes:
        cause = f"its symbols are {table.entry_bytes} bytes long, the class has {image.symbol_bytes}"
        raise InputError(image.file, f"section {table.index}: {cause}", table.offset)
    if not 0 < table.link < len(image.sections):
        raise InputError(image.file, f"section {table.index}: sh_link {table.link} is no section", table.offset)
    raw = image.section_bytes(table)
    strings = image.sections[table.link]
    names = StringTable(image.section_bytes(strings), image.file, strings.offset, "symbol names")
    return raw[: len(raw) // image.symbol_bytes * image.symbol_bytes], names


def _candidates(image: Image, entries: Buffer, wanted: frozenset[int]) -> list[int]:
    """Give the places of the symbols whose section may be wanted: all of those, and a few others.

    Most symbols are functions. The low bytes of all st_shndx, as one string, pass over them at the speed of a regular
    expression instead of a loop.
    """
    low_bytes = bytes(entries[image.symbol_section_offset :: image.symbol_bytes])
    wanted_bytes = {index & 255 for index in wanted}
    marks = low_bytes.translate(bytes(byte in wanted_bytes for byte in range(256)))
    return [match.start() for match in re.finditer(b"\1", marks)]


def _wide_indexes(image: Image, table: Section) -> Buffer:
    """Give the section numbers of a table whose file has more than 65,279 sections; else nothing."""
    extension = next((s for s in image.sections if s.type == SHT_SYMTAB_SHNDX and s.link == table.index), None)
    return b"" if extension is None else image.section_bytes(extension)
