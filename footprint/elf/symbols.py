"""The symbols of one ELF file: one type, and one reader of symbol tables.

A program of 100,000 symbols has a few thousand variables. So one column of the table, the low bytes of st_shndx or
st_info, selects the entries of interest, and only these are decoded.

Source: System V ABI, chapter 4 (Symbol Table); Thread-Local Storage 0.21 for what st_value means in STT_TLS.
"""

import sys
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, compress, count, repeat
from operator import add, mul, sub
from struct import Struct
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import words
from footprint.elf.image import Buffer, Image, Section, StringTable, release_pages
from footprint.errors import InputError
from footprint.members import NamedTuple, records

NO_NAMES: Final = StringTable(b"\0", "", 0, "symbol names")
"""The names of a table whose names are not of interest."""
_MANY_ENTRIES: Final = 1 << 16
_NO_VARIABLES: Final = frozenset({abi.STT_SECTION, abi.STT_FILE})


_COMMON_SECTIONS: Final = frozenset({0xFFF2, 0xFF02})  # SHN_COMMON, SHN_X86_64_LCOMMON
COMMON: Final = -1
"""The section index of a COMMON symbol: the linker still has to place it."""


class Symbol(NamedTuple):
    """A name for a range of memory: one entry of a symbol table, or several entries that name the same bytes.

    Attributes:
        name: The linker name; bytes that are not UTF-8 as surrogates. Of several names the global one, then the
            shortest.
        vaddr: st_value: the vaddr in a linked file; for a thread-local symbol the offset in the block of a thread; in a
            relocatable object the offset in its section; for a COMMON symbol the alignment.
        size_bytes: st_size; 0 where the assembler did not set it.
        type: STT_*.
        binding: STB_*.
        section_index: The section that defines it, with extension numbering resolved; `COMMON` for a COMMON symbol;
            0 where its section is not of interest.
        offset: Where it starts in its section, in bytes.
        aliases: The other names of the same bytes.
        unit: The number of its source file; None where the table does not name one, or where it was not asked for.
    """

    name: str
    vaddr: int
    size_bytes: int
    type: int
    binding: int
    section_index: int = 0
    offset: int = 0
    aliases: tuple[str, ...] = ()
    unit: int | None = None

    @property
    def is_common(self) -> bool:
        """Whether the linker still has to give it a place (COMMON)."""
        return self.section_index == COMMON

    @property
    def is_local(self) -> bool:
        """Whether only its own source file can refer to it (STB_LOCAL)."""
        return self.binding == abi.STB_LOCAL

    @property
    def is_tls(self) -> bool:
        """Whether each thread has its own copy (STT_TLS)."""
        return self.type == abi.STT_TLS


_KindFacts = tuple[int, int, int, int]
"""Type, binding, section, and what to subtract from st_value to get the offset in the section."""
_UNKNOWN: Final = (-1, -1, -1, -1)
SymbolEntry = tuple[int, int, int, int, int, int]
"""An entry as it stands in the file: (st_name, st_info, st_other, st_shndx, st_value, st_size)."""

_ENTRIES: Final = {
    (is_64, is_little): Struct(("<" if is_little else ">") + ("IBBHQQ" if is_64 else "IIIBBH"))
    for is_64 in (False, True)
    for is_little in (False, True)
}


class SymbolTable:
    """The entries of a symbol table.

    Attributes:
        image: The file that has the table.
        names: The names; st_name of an entry is an offset into them.
        section: The section header of the table; None where it was found by its vaddr, or where there is none.
    """

    def __init__(
        self, image: Image, entries: Buffer, names: StringTable, section: Section | None = None, wide: Buffer = b""
    ) -> None:
        """Take the whole entries of a table; `wide` has section numbers that do not fit st_shndx (SHT_SYMTAB_SHNDX)."""
        self.image = image
        self.names = names
        self.section = section
        self._entries = entries
        self._wide = wide
        self._format = _ENTRIES[image.is_64, image.is_little]

    def __len__(self) -> int:
        """Return the number of entries, functions included."""
        return len(self._entries) // self.image.symbol_bytes

    @property
    def source(self) -> str | None:
        """The name of the table, `.symtab` or `.dynsym`; None where the file has neither."""
        if self.section is None:
            return None
        return ".symtab" if self.section.type == abi.SHT_SYMTAB else ".dynsym"

    @cached_property
    def name_offsets(self) -> "array[int]":
        """st_name of each entry."""
        return self._column(0, 4)

    @cached_property
    def vaddrs(self) -> "array[int]":
        """st_value of each entry."""
        return self._column(8, 8) if self.image.is_64 else self._column(4, 4)

    @cached_property
    def sizes(self) -> "array[int]":
        """st_size of each entry."""
        return self._column(16, 8) if self.image.is_64 else self._column(8, 4)

    @cached_property
    def kinds(self) -> "array[int]":
        """The word that st_info, st_other and st_shndx of each entry fill; entries of one kind have the same."""
        return self._column(4 if self.image.is_64 else 12, 4)

    def _column(self, offset: int, word_bytes: int) -> "array[int]":
        return words(self.image, self._cells(offset, word_bytes).tobytes(), word_bytes)

    def _cells(self, offset: int, word_bytes: int) -> "memoryview[int]":
        """Return a column in this machine's byte order, without copying it."""
        columns = memoryview(self._entries).cast("I" if word_bytes == 4 else "Q")
        return columns[offset // word_bytes :: self.image.symbol_bytes // word_bytes]

    def entry(self, index: int) -> SymbolEntry:
        """Return an entry."""
        fields: SymbolEntry = self._format.unpack_from(self._entries, index * self._format.size)
        if self.image.is_64:
            return fields
        name, value, size_bytes, info, other, section_index = fields
        return name, info, other, section_index, value, size_bytes

    def entries(self, indexes: Iterable[int]) -> Iterator[SymbolEntry]:
        """Yield some entries: together they would take more memory than the symbols that are made of them."""
        if not self.image.is_64:
            return map(self.entry, indexes)
        return map(self._format.unpack_from, repeat(self._entries), map(mul, indexes, repeat(self._format.size)))

    def of_types(self, types: Container[int]) -> list[int]:
        """Return the indexes of the entries of some types (STT_*)."""
        return _indexes(self._infos, [byte & 15 in types for byte in range(256)])

    @cached_property
    def _infos(self) -> bytes:
        """st_info of each entry."""
        return self._byte_column(4 if self.image.is_64 else 12)

    def _byte_column(self, offset: int) -> bytes:
        """Return a byte of each entry: a step of a view takes ten times as long as a step of a copy."""
        entry_bytes, part_bytes = self.image.symbol_bytes, self.image.symbol_bytes << 12
        parts = range(0, len(self._entries), part_bytes)
        return b"".join([bytes(self._entries[at : at + part_bytes])[offset::entry_bytes] for at in parts])

    def in_sections(self, indexes: Iterable[int]) -> list[int]:
        """Return the indexes of the entries whose section may be one of some: all of those, and a few others."""
        low_byte_offset = (6 if self.image.is_64 else 14) + (not self.image.is_little)
        low_bytes = {index & 255 for index in indexes}
        return _indexes(self._byte_column(low_byte_offset), [byte in low_bytes for byte in range(256)])

    def section_index(self, index: int, st_shndx: int) -> int:
        """Return the section that defines an entry: `COMMON`, or 0 for none and for a reserved number."""
        if st_shndx < abi.SHN_LORESERVE:
            return st_shndx
        if st_shndx == abi.SHN_XINDEX:
            wide = words(self.image, self._wide[index * 4 : index * 4 + 4], 4)
            return wide[0] if wide else abi.SHN_UNDEF
        return COMMON if self.image.is_relocatable and st_shndx in _COMMON_SECTIONS else abi.SHN_UNDEF

    def name(self, index: int) -> str:
        """Return the name of an entry."""
        return self.names.at(self.entry(index)[0])

    def symbol(self, entry: SymbolEntry) -> Symbol:
        """Return the symbol of an entry, without its section and source file."""
        name, info, _, _, vaddr, size_bytes = entry
        return Symbol(self.names.at(name), vaddr, size_bytes, info & 15, info >> 4)

    def symbols(self, entries: "Iterable[tuple[SymbolEntry, SectionBase, int | None]]") -> list[Symbol]:
        """Return the symbols of entries, each with its section and the number of its source file."""
        return records(Symbol, self._rows(entries))

    def _rows(self, entries: "Iterable[tuple[SymbolEntry, SectionBase, int | None]]") -> Iterator[tuple[object, ...]]:
        name_at, tls_kind = self.names.at, abi.STT_TLS
        for (name, info, _, _, vaddr, size_bytes), (section_index, base, tls_base), unit in entries:
            kind = info & 15
            offset = vaddr - (tls_base if kind == tls_kind else base)
            yield name_at(name), vaddr, size_bytes, kind, info >> 4, section_index, offset, (), unit

    def variables(self, bases: "Mapping[int, SectionBase]") -> list[Symbol]:
        """Return the symbols in some sections, and COMMON symbols, in the order of the table; no sections and files."""
        commons = _COMMON_SECTIONS if self.image.is_relocatable else ()
        indexes = self.in_sections({*bases, *commons, abi.SHN_XINDEX})
        is_native = self.image.is_64 and self.image.is_little and sys.byteorder == "little"
        if is_native and len(indexes) > _MANY_ENTRIES and (symbols := self._of_kinds(bases)) is not None:
            return symbols
        return records(Symbol, self._variable_rows(indexes, {**bases, COMMON: _COMMON_BASE}))

    def _variable_rows(self, indexes: list[int], bases: "Mapping[int, SectionBase]") -> Iterator[tuple[object, ...]]:
        name_at = self.names.at
        facts_by_kind: dict[int, _KindFacts | None] = {}
        for index, (name, kind, vaddr, size_bytes) in zip(indexes, self._with_kinds(indexes), strict=True):
            facts = facts_by_kind.get(kind, _UNKNOWN)
            if facts is _UNKNOWN:
                facts = self._facts_of_kind(index, kind, bases)
                if fields_of_kind(self.image, kind)[2] != abi.SHN_XINDEX:
                    facts_by_kind[kind] = facts
            if facts is not None:
                type_, binding, section_index, start = facts
                yield name_at(name), vaddr, size_bytes, type_, binding, section_index, vaddr - start, (), None

    def _with_kinds(self, indexes: Iterable[int]) -> "Iterator[tuple[int, int, int, int]]":
        """Yield st_name, the word of `kinds`, st_value and st_size of some entries."""
        order = "<" if self.image.is_little else ">"
        entry = Struct(order + ("IIQQ" if self.image.is_64 else "IIII"))
        fields = map(entry.unpack_from, repeat(self._entries), map(mul, indexes, repeat(entry.size)))
        return fields if self.image.is_64 else ((name, kind, vaddr, size) for name, vaddr, size, kind in fields)

    def _facts_of_kind(self, index: int, kind: int, bases: "Mapping[int, SectionBase]") -> "_KindFacts | None":
        """Return what entries of a kind have in common; None where they are no variables in one of some sections."""
        st_info, _, number = fields_of_kind(self.image, kind)
        base = bases.get(self.section_index(index, number))
        type_ = st_info & 15
        if base is None or type_ in _NO_VARIABLES:
            return None
        return type_, st_info >> 4, base.section_index, base.tls_vaddr if type_ == abi.STT_TLS else base.vaddr

    def _of_kinds(self, bases: "Mapping[int, SectionBase]") -> list[Symbol] | None:
        """Return the same symbols by columns, without a step of Python for each; None for extension numbering.

        It is for tables of 64 bits in this machine's byte order.
        """
        all_kinds = self._cells(4, 4)
        numbers = {kind: kind >> 16 for kind in set(all_kinds)}
        if abi.SHN_XINDEX in numbers.values():
            return None
        bases_by_kind: dict[int, tuple[int, int, SectionBase]] = {}
        for kind, number in numbers.items():
            st_info = kind & 0xFF
            section = self.section_index(0, number)
            base = _COMMON_BASE if section == COMMON else bases.get(section)
            if base is not None and st_info & 15 not in _NO_VARIABLES:
                bases_by_kind[kind] = st_info & 15, st_info >> 4, base
        is_wanted = bytes(map(bases_by_kind.__contains__, all_kinds))
        vaddrs = array("Q", compress(self._cells(8, 8), is_wanted))
        # Neighbours in memory are made one after the other: whoever goes through them then reads on in the cache.
        order = array("I", sorted(range(len(vaddrs)), key=vaddrs.__getitem__))

        def chosen(code: str, offset: int, word_bytes: int) -> "array[int]":
            cells = array(code, compress(self._cells(offset, word_bytes), is_wanted))
            return array(code, map(cells.__getitem__, order))

        kinds = chosen("I", 4, 4)

        def column(values: dict[int, int]) -> Iterator[int]:
            return map(values.__getitem__, kinds)

        starts = {
            kind: base.tls_vaddr if type_ == abi.STT_TLS else base.vaddr
            for kind, (type_, _, base) in bases_by_kind.items()
        }
        ordered = list(map(vaddrs.__getitem__, order))
        columns = (
            self.names.all_at(chosen("I", 0, 4)),
            ordered,
            chosen("Q", 16, 8),
            column({kind: type_ for kind, (type_, _, _) in bases_by_kind.items()}),
            column({kind: binding for kind, (_, binding, _) in bases_by_kind.items()}),
            column({kind: base.section_index for kind, (_, _, base) in bases_by_kind.items()}),
            map(sub, ordered, column(starts)),
        )
        symbols = records(Symbol, zip(*columns, repeat(()), repeat(None)))
        release_pages(self._entries)
        return symbols


def fields_of_kind(image: Image, kind: int) -> tuple[int, int, int]:
    """Return st_info, st_other and st_shndx, given the word that they fill."""
    if image.is_little:
        return kind & 0xFF, kind >> 8 & 0xFF, kind >> 16
    return kind >> 24, kind >> 16 & 0xFF, kind & 0xFFFF


def _indexes(column: bytes, is_wanted: Iterable[bool]) -> list[int]:
    """Return the indexes of the bytes that are wanted; `is_wanted` has an entry for each value of a byte."""
    # What lies between these takes no step: most tables have a few among many.
    *between, _ = column.translate(bytes(is_wanted)).split(b"\1")
    return list(map(add, accumulate(map(len, between)), count()))


class SectionBase(NamedTuple):
    """A section, and what to subtract from st_value to get the offset in it: for ordinary and for TLS symbols."""

    section_index: int
    vaddr: int
    tls_vaddr: int


_COMMON_BASE: Final = SectionBase(COMMON, 0, 0)


def read_symbol_table(image: Image) -> SymbolTable:
    """Read the best symbol table of a file: `.symtab`, else `.dynsym`. A file without either has an empty one."""
    tables = {s.type: s for s in reversed(image.sections) if s.size_bytes}
    section = tables.get(abi.SHT_SYMTAB) or tables.get(abi.SHT_DYNSYM)
    if section is None:
        return SymbolTable(image, b"", NO_NAMES)
    return symbol_table_in(image, section)


def symbol_table_in(image: Image, section: Section) -> SymbolTable:
    """Read the symbol table that a section holds."""
    if section.entry_bytes != image.symbol_bytes:
        cause = f"its symbols are {section.entry_bytes} bytes long, the class has {image.symbol_bytes}"
        raise InputError(image.file, f"section {section.index}: {cause}", section.offset)
    if not 0 < section.link < len(image.sections):
        raise InputError(
            image.file, f"section {section.index}: sh_link {section.link} is not a section", section.offset
        )
    raw = image.section_bytes(section)
    strings = image.sections[section.link]
    names = StringTable(image.section_bytes(strings), image.file, strings.offset, "symbol names")
    wide = next((s for s in image.sections if s.type == abi.SHT_SYMTAB_SHNDX and s.link == section.index), None)
    whole_bytes = len(raw) // image.symbol_bytes * image.symbol_bytes
    return SymbolTable(image, raw[:whole_bytes], names, section, b"" if wide is None else image.section_bytes(wide))


def section_bases(image: Image, sections: Iterable[tuple[int, Section]]) -> dict[int, SectionBase]:
    """Return the bases of sections by their numbers in the symbol table: a debug file may count differently."""
    if image.is_relocatable:
        return {number: SectionBase(section.index, 0, 0) for number, section in sections}
    tls = image.segment(abi.PT_TLS)
    return {
        number: SectionBase(section.index, section.vaddr, section.vaddr - (tls.vaddr if tls else section.vaddr))
        for number, section in sections
    }
