"""The variables of an ELF file with the source files that they came from, as its symbol table names them (STT_FILE).

Copies that have one name stay apart, and constants are included, unlike in `footprint.elf.contents`.

Source: System V ABI, chapter 4 (Symbol Table): local symbols follow the STT_FILE symbol of their source file.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Final

from footprint.elf import abi
from footprint.elf.functions import Functions
from footprint.elf.image import Image, Section
from footprint.elf.names import normalised
from footprint.elf.notes import DebugImage, matched_sections
from footprint.elf.symbols import SectionBase, Symbol, SymbolEntry, SymbolTable, read_symbol_table, section_bases

# What the compiler writes instead of a source file after link-time optimisation (GCC, LLVM): several files are merged.
_MERGED_FILES: Final = frozenset({"", "<artificial>", "ld-temp.o"})
# `_GLOBAL__sub_I_main`, and with a priority `_GLOBAL__sub_I.00101_x` or `_GLOBAL__I_000101`.
_INITIALISERS: Final = (b"_GLOBAL__sub_I", b"_GLOBAL__I_", b"_GLOBAL__I.")


class Statics:
    """The variables of a file.

    Attributes:
        image: The file.
        statics: All variables, in the order of the table; where several have one address, the first.
        units: The names of the source files, without folders: several may have one name.
        is_stripped: Whether there is no symbol table but the dynamic one.
        debug: The file that the symbols are from, where it is another.
    """

    def __init__(
        self,
        image: Image,
        table: SymbolTable,
        sections: Iterable[tuple[int, Section]],
        debug: DebugImage | None = None,
    ) -> None:
        """Read the variables of a table in the sections of the file, which have their numbers in the table."""
        self.image = image
        self.is_stripped = table.section is None or table.section.type != abi.SHT_SYMTAB
        self.debug = debug
        self._table = table
        self._known_functions: dict[int, Sequence[tuple[str, int]]] = {}
        self.statics, self.units = self._read([section for section in sections if section[1].size_bytes])

    def symbol_at(self, vaddr: int) -> tuple[str, int] | None:
        """Return the name of the function or variable that holds a vaddr, and the offset in it; None without one."""
        index = self._index_at(vaddr)
        return None if index is None else (self._table.name(index), vaddr - self._table.vaddrs[index])

    def extent_at(self, vaddr: int) -> tuple[int, int] | None:
        """Return the vaddr and size of the function or variable that holds a vaddr; None without one."""
        index = self._index_at(vaddr)
        return None if index is None else (self._table.vaddrs[index], self._table.sizes[index])

    def _index_at(self, vaddr: int) -> int | None:
        vaddrs, indexes = self._places
        place = bisect_right(vaddrs, vaddr) - 1
        if place < 0:
            return None
        index, start = indexes[place], vaddrs[place]
        return index if vaddr == start or vaddr < start + self._table.sizes[index] else None

    @cached_property
    def functions(self) -> Functions:
        """The functions of the same table."""
        return Functions(self._table)

    def functions_of(self, unit: int) -> Sequence[tuple[str, int]]:
        """Return the local functions of a source file, each with its vaddr, by their names without suffixes."""
        if unit not in self._known_functions:
            name_at, functions = self._table.names.at, self._functions_of_units.get(unit, ())
            self._known_functions[unit] = sorted([(normalised(name_at(start)), vaddr) for start, vaddr in functions])
        return self._known_functions[unit]

    @cached_property
    def _functions_of_units(self) -> dict[int, list[tuple[int, int]]]:
        """The local functions of each source file: the offset of the name, and the vaddr."""
        table, functions, unit, number = self._table, dict[int, list[tuple[int, int]]](), None, 0
        indexes = table.of_types({abi.STT_FUNC, abi.STT_FILE})
        local_count = 0 if table.section is None else table.section.info
        for index, entry in zip(indexes, table.entries(indexes), strict=True):
            if index >= local_count:
                break
            if entry[1] & 15 == abi.STT_FUNC:
                if unit is not None:
                    functions.setdefault(unit, []).append((entry[0], entry[4]))
                continue
            unit = None if table.names.at(entry[0]) in _MERGED_FILES else number
            number += unit is not None
        return functions

    @property
    def initialisers(self) -> tuple[int, int]:
        """The number of the functions that initialise variables at start, and the size of their code."""
        functions = self.initialiser_functions
        return len(functions), sum(function.size_bytes for function, _ in functions.values())

    @cached_property
    def initialiser_functions(self) -> dict[int, tuple[Symbol, int | None]]:
        """The functions that the compiler made of initialisers that are not constant: one for each source file.

        They stand by vaddr, each with the number of its source file, where the table names it.
        """
        table = self._table
        starts = frozenset[int]().union(*map(table.names.offsets_of, _INITIALISERS))
        prefixed: set[int] = set()
        if starts:
            functions = table.of_types({abi.STT_FUNC})
            is_prefixed = map(starts.__contains__, map(table.name_offsets.__getitem__, functions))
            prefixed.update(compress(functions, is_prefixed))
        by_vaddr: dict[int, tuple[Symbol, int | None]] = {}
        unit, count = None, 0
        for index in sorted({*prefixed, *(table.of_types({abi.STT_FILE}) if prefixed else ())}):
            entry = table.entry(index)
            if index not in prefixed:
                is_one_file = table.names.at(entry[0]) not in _MERGED_FILES
                unit, count = (count, count + 1) if is_one_file else (None, count)
            elif ".cold" not in table.name(index):
                by_vaddr[entry[4]] = table.symbol(entry)._replace(vaddr=entry[4]), unit
        return by_vaddr

    def variable_at(self, vaddr: int) -> Symbol | None:
        """Return the variable that holds a vaddr; None without one."""
        vaddrs, variables = self._variables
        place = bisect_right(vaddrs, vaddr) - 1
        if place < 0 or vaddr >= vaddrs[place] + variables[place].size_bytes:
            return None
        return variables[place]

    @cached_property
    def _variables(self) -> tuple[list[int], list[Symbol]]:
        ordered = sorted((static for static in self.statics if not static.is_tls), key=lambda static: static.vaddr)
        return [static.vaddr for static in ordered], ordered

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """The vaddrs of all functions and variables, ascending, and the table index of each."""
        vaddrs = self._table.vaddrs
        indexes = sorted(self._table.of_types({abi.STT_OBJECT, abi.STT_FUNC}), key=vaddrs.__getitem__)
        vaddrs_found = list(map(vaddrs.__getitem__, indexes))
        first = bisect_right(vaddrs_found, 0)
        return vaddrs_found[first:], indexes[first:]

    def _read(self, sections: Iterable[tuple[int, Section]]) -> tuple[tuple[Symbol, ...], tuple[str, ...]]:
        units: list[str] = []
        return tuple(self._table.symbols(self._entries(section_bases(self.image, sections), units))), tuple(units)

    def _entries(
        self, bases: Mapping[int, SectionBase], units: list[str]
    ) -> Iterator[tuple[SymbolEntry, SectionBase, int | None]]:
        """Yield the entries of variables, each with its section and the number of its source file in `units`."""
        table, unit, seen = self._table, None, set[int]()
        local_count = 0 if table.section is None else table.section.info
        indexes = table.of_types({abi.STT_OBJECT, abi.STT_TLS, abi.STT_FILE})
        if len(table) < 2 * len(indexes) < 1 << 16 and table.names.size_bytes < 1 << 22:  # else it takes much memory
            table.names.learn_all()
        for index, entry in zip(indexes, table.entries(indexes), strict=True):
            st_name, info, _, st_shndx, value, size_bytes = entry
            if info & 15 == abi.STT_FILE:
                name = table.names.at(st_name)
                is_one_file = name not in _MERGED_FILES
                unit = len(units) if is_one_file else None
                units.extend([name] if is_one_file else [])
                continue
            base = bases.get(table.section_index(index, st_shndx))
            place = value << 16 | st_shndx
            # Identical code folding leaves several names at one address: that is one copy.
            if base is not None and size_bytes and place not in seen:
                seen.add(place)
                has_unit = info >> 4 == abi.STB_LOCAL and index < local_count
                yield entry, base, unit if has_unit else None


def local_units(image: Image) -> tuple[tuple[str, ...], dict[int, "array[int]"]]:
    """Return the source files that a symbol table names, and by section the offsets of local variables with theirs.

    An offset and the number of the source file are one integer, `offset << 24 | unit`: a table may have a million.
    """
    table, units, unit = read_symbol_table(image), list[str](), -1
    if not table.of_types({abi.STT_FILE}) or table.section is None:
        return (), {}
    bases = section_bases(image, [(s.index, s) for s in image.sections if s.is_in_memory and s.size_bytes])
    units_of_section: dict[int, array[int]] = {base.section_index: array("Q") for base in bases.values()}
    indexes = table.of_types({abi.STT_OBJECT, abi.STT_TLS, abi.STT_FILE})
    del indexes[bisect_left(indexes, table.section.info) :]
    for index, (st_name, info, _, st_shndx, value, size_bytes) in zip(indexes, table.entries(indexes), strict=True):
        if info & 15 == abi.STT_FILE:
            name = table.names.at(st_name)
            unit = -1 if name in _MERGED_FILES else len(units)
            units += [name] if unit >= 0 else []
        elif unit >= 0 and size_bytes and info >> 4 == abi.STB_LOCAL:
            base = bases.get(table.section_index(index, st_shndx))
            start = 0 if base is None else base.tls_vaddr if info & 15 == abi.STT_TLS else base.vaddr
            if base is not None and 0 <= value - start < 1 << 40 and unit < 1 << 24:
                units_of_section[base.section_index].append(value - start << 24 | unit)
    del indexes
    return tuple(units), {section: array("Q", sorted(places)) for section, places in units_of_section.items()}


def read_statics(image: Image, debug: DebugImage | None = None) -> Statics:
    """Read the variables of a linked file from its symbol table, else from its dynamic one, which has no source files.

    Args:
        image: The file.
        debug: The file with the symbols that were stripped from it. Symbols in sections that have another address there
            are left out.
    """
    if debug is None or not debug.is_whole:
        sections = [(section.index, section) for section in image.sections if section.is_in_memory]
        return Statics(image, read_symbol_table(image), sections)
    return Statics(image, read_symbol_table(debug.image), matched_sections(image, debug.image).items(), debug)
