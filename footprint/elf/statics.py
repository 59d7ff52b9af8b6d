"""The variables of an ELF file with the source files they came from, as its symbol table tells (STT_FILE).

Unlike `footprint.elf.symbols` this keeps copies apart that have one name, and reads constants too.

Source: System V ABI, chapter 4 (Symbol Table): local symbols follow the STT_FILE symbol of their source file.
"""

from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple

from footprint.elf.debugfiles import DebugImage, matched_sections
from footprint.elf.dynamic import words
from footprint.elf.image import SHT_DYNSYM, SHT_SYMTAB, Buffer, Image, StringTable
from footprint.elf.symbols import STT_FILE, STT_FUNC, STT_TLS
from footprint.errors import InputError

__all__ = ("NO_INITIALISERS", "Function", "Initialisers", "Static", "Statics", "read_statics")

STT_OBJECT: Final = 1
STT_GNU_IFUNC: Final = 10
STB_LOCAL: Final = 0

# What stands for the source file behind link-time optimisation, of GCC and of LLVM: all of them at once.
_OF_MANY: Final = frozenset({"", "<artificial>", "ld-temp.o"})
# `_GLOBAL__sub_I_main`, and with a priority `_GLOBAL__sub_I.00101_x` or `_GLOBAL__I_000101`.
_INITIALISERS: Final = (b"_GLOBAL__sub_I", b"_GLOBAL__I_", b"_GLOBAL__I.")


class Static(NamedTuple):
    """A variable or constant.

    Attributes:
        name: The linker name.
        vaddr: Where it is; for a thread-local its offset in the thread's block.
        size_bytes: Its size, never 0.
        section_index: The section that it is in.
        is_tls: Whether each thread has its own.
        is_local: Whether only its own source file knows it.
        unit: The number of its source file; None where the table does not tell.
    """

    name: str
    vaddr: int
    size_bytes: int
    section_index: int
    is_tls: bool
    is_local: bool
    unit: int | None


class Function(NamedTuple):
    """A function."""

    name: str
    vaddr: int
    size_bytes: int


class Initialisers(NamedTuple):
    """The functions that make variables of source files at start: how many, and how much code they are."""

    function_count: int
    code_bytes: int


NO_INITIALISERS: Final = Initialisers(0, 0)


class Statics:
    """The variables of a file.

    Attributes:
        image: The file.
        statics: All variables, in the order of the table; of those at one address the first.
        units: The names of the source files, without folders: several may have one name.
        is_stripped: Whether there is no symbol table but the dynamic one.
        debug: The file that the symbols are from, where it is another.
    """

    def __init__(
        self,
        image: Image,
        statics: tuple[Static, ...],
        units: tuple[str, ...],
        entries: "_Entries",
        *,
        is_stripped: bool,
        debug: DebugImage | None = None,
    ) -> None:
        self.image = image
        self.statics = statics
        self.units = units
        self.is_stripped = is_stripped
        self.debug = debug
        self._entries = entries

    def symbol_at(self, vaddr: int) -> tuple[str, int] | None:
        """Give the function or variable that holds a vaddr, and how far into it that is; None where none does."""
        vaddrs, indexes = self._places
        entries = self._entries
        place = bisect_right(vaddrs, vaddr) - 1
        if place < 0:
            return None
        index, start = indexes[place], vaddrs[place]
        is_inside = vaddr == start or vaddr < start + entries.sizes[index]
        return (entries.name_at(entries.offsets[index]), vaddr - start) if is_inside else None

    @cached_property
    def functions(self) -> tuple["Function", ...]:
        """The functions that have a size, ascending; of those at one address one."""
        entries = self._entries
        found = {
            entries.values[index]: Function(
                entries.name_at(entries.offsets[index]), entries.values[index], entries.sizes[index]
            )
            for index in entries.of_types({STT_FUNC, STT_GNU_IFUNC})
            if entries.sizes[index] and entries.values[index]
        }
        return tuple([found[vaddr] for vaddr in sorted(found)])

    @property
    def initialisers(self) -> Initialisers:
        """What the compiler has made of initialisers that are no constants: a function a source file."""
        entries = self._entries
        sizes = {
            entries.values[index]: entries.sizes[index]
            for index in entries.of_types({STT_FUNC})
            if entries.has_prefix(entries.offsets[index], _INITIALISERS)
        }
        return Initialisers(len(sizes), sum(sizes.values()))

    def function_at(self, vaddr: int) -> "Function | None":
        """Give the function that an address lies in."""
        functions = self.functions
        index = bisect_right(functions, vaddr, key=lambda one: one.vaddr) - 1
        function = functions[index] if index >= 0 else None
        return function if function is not None and vaddr < function.vaddr + function.size_bytes else None

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """The vaddrs of all functions and variables, ascending, and the index of each: few names are asked for."""
        values = self._entries.values
        found = sorted((values[index], index) for index in self._entries.of_types({STT_OBJECT, STT_FUNC}))
        return [vaddr for vaddr, _ in found if vaddr], [index for vaddr, index in found if vaddr]


class _Entries:
    """A symbol table by columns: st_name, st_value, st_size, and the word that the small fields fill."""

    def __init__(self, image: Image, table: Buffer, names: StringTable) -> None:
        halves = words(image, table, 4)
        if image.is_64:
            wide = words(image, table, 8)
            self.offsets, self.kinds = halves[0::6], halves[1::6]
            self.values, self.sizes = wide[1::3], wide[2::3]
        else:
            self.offsets, self.values, self.sizes, self.kinds = (halves[column::4] for column in range(4))
        self._is_little = image.is_little
        self.name_at = names.at
        self.has_prefix = names.has_prefix

    def fields(self, kind: int) -> tuple[int, int, int]:
        """Give (st_info, st_other, st_shndx) of the word that they fill."""
        if self._is_little:
            return kind & 0xFF, kind >> 8 & 0xFF, kind >> 16
        return kind >> 24, kind >> 16 & 0xFF, kind & 0xFFFF

    def of_types(self, types: set[int]) -> list[int]:
        """Give the indexes of the symbols of some types."""
        wanted = {kind for kind in set(self.kinds) if self.fields(kind)[0] & 15 in types}
        return [index for index, kind in enumerate(self.kinds) if kind in wanted]


def read_statics(image: Image, debug: DebugImage | None = None) -> Statics:
    """Read the variables of a linked file: of its symbol table, else of its dynamic one, which has no source files.

    Args:
        image: The file.
        debug: The symbols that were stripped from it; those in sections that it has elsewhere are left out.

    Raises:
        InputError: Where the table is damaged.
    """
    if debug is not None and debug.is_whole:
        sections = {number: section.index for number, section in matched_sections(image, debug.image).items()}
        return _read_statics(image, debug, debug.image, sections)
    return _read_statics(image, None, image, {one.index: one.index for one in image.sections if one.is_in_memory})


def _read_statics(of: Image, debug: DebugImage | None, image: Image, sections: Mapping[int, int]) -> Statics:
    """Read the symbols of an image; `sections` are those of the file by the numbers that they have there."""
    tables = {one.type: one for one in reversed(image.sections) if one.size_bytes}
    table = tables.get(SHT_SYMTAB) or tables.get(SHT_DYNSYM)
    if table is None:
        nothing = _Entries(image, b"", StringTable(b"\0", image.file, 0, "symbol names"))
        return Statics(of, (), (), nothing, is_stripped=True)
    if table.entry_bytes != image.symbol_bytes or not 0 < table.link < len(image.sections):
        raise InputError(image.file, f"section {table.index} is no symbol table", table.offset)
    raw = image.section_bytes(table)
    strings = image.sections[table.link]
    names = StringTable(image.section_bytes(strings), image.file, strings.offset, "symbol names")
    entries = _Entries(image, raw[: len(raw) // image.symbol_bytes * image.symbol_bytes], names)
    in_memory = {number: index for number, index in sections.items() if of.sections[index].size_bytes}
    found: list[Static] = []
    units: list[str] = []
    unit: int | None = None
    seen: set[tuple[int, int]] = set()
    for index in entries.of_types({STT_OBJECT, STT_TLS, STT_FILE}):
        info, _, section_index = entries.fields(entries.kinds[index])
        if info & 15 == STT_FILE:
            name = entries.name_at(entries.offsets[index])
            is_told = name not in _OF_MANY
            unit = len(units) if is_told else None
            units.extend([name] if is_told else [])
            continue
        size_bytes = entries.sizes[index]
        place = (section_index, entries.values[index])
        # Identical code folding leaves several names at one address: that is one copy.
        if size_bytes and section_index in in_memory and place not in seen:
            seen.add(place)
            is_local = info >> 4 == STB_LOCAL
            found.append(
                Static(
                    entries.name_at(entries.offsets[index]),
                    entries.values[index],
                    size_bytes,
                    in_memory[section_index],
                    info & 15 == STT_TLS,
                    is_local,
                    unit if is_local and index < table.info else None,
                )
            )
    return Statics(of, tuple(found), tuple(units), entries, is_stripped=table.type == SHT_DYNSYM, debug=debug)
