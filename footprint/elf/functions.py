"""The functions of one ELF file: which one an address lies in, and where one of a name is.

Names are decoded when they are asked for: of a hundred thousand functions, profiles name a few hundred.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from footprint.elf.image import SHT_DYNSYM, SHT_SYMTAB, Buffer, Image, Section, StringTable
from footprint.elf.symbols import entries_and_names

__all__ = ("Function", "Functions", "read_functions")

STT_FUNC: Final = 2
STT_GNU_IFUNC: Final = 10
SHN_UNDEF: Final = 0
EM_ARM: Final = 40
_NO_NAMES: Final = StringTable(b"", "", 0, "symbol names")


class Function(NamedTuple):
    """One function; the size is 0 where the assembler was not told."""

    name: str
    vaddr: int
    size_bytes: int


class Functions:
    """The functions that a symbol table defines, in the order of their addresses.

    Args:
        entries: For each its vaddr, its size, how good a name it has where several have one place, and st_name.
        names: The names.
        source: `.symtab` or `.dynsym`; None where the file has neither.
    """

    def __init__(self, entries: list[tuple[int, int, int, int]], names: StringTable, source: str | None) -> None:
        self.source = source
        self._entries = sorted(entries)
        self._names = names
        # Of several names of one place the best: one with a size, then by its binding.
        best: dict[int, tuple[int, int, int, int]] = {}
        for entry in self._entries:
            known = best.get(entry[0])
            if known is None or (not entry[1], entry[2]) < (not known[1], known[2]):
                best[entry[0]] = entry
        self._best = list(best.values())
        self._vaddrs = list(best)

    def __len__(self) -> int:
        """Give the number of names."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Function]:
        """Give all of them.

        Raises:
            InputError: Where a name lies outside of its table.
        """
        return (Function(self._names.at(name), vaddr, size_bytes) for vaddr, size_bytes, _, name in self._entries)

    def at(self, vaddr: int) -> Function | None:
        """Give the function that an address lies in; of several names of it one that is global, else any.

        Raises:
            InputError: Where its name lies outside of its table.
        """
        last = bisect_right(self._vaddrs, vaddr) - 1
        if last < 0:
            return None
        start, size_bytes, _, name = self._best[last]
        # A label without a size reaches to the next one.
        if size_bytes and vaddr >= start + size_bytes:
            return None
        return Function(self._names.at(name), start, size_bytes)


def read_functions(image: Image) -> Functions:
    """Read the functions that the best symbol table of a file defines.

    Raises:
        InputError: Where the table is damaged: an entry size that is none, a cut.
    """
    table = _table(image, SHT_SYMTAB) or _table(image, SHT_DYNSYM)
    if table is None:
        return Functions([], _NO_NAMES, None)
    symbols, names = entries_and_names(image, table)
    # Bit 0 of an address on ARM tells the instruction set.
    mask = ~1 if image.machine == EM_ARM else ~0
    entries = [
        (value & mask, size_bytes, _rank(info >> 4), name)
        for name, info, _, section_index, value, size_bytes in image.symbols_at(symbols, _places(image, symbols))
        if section_index != SHN_UNDEF
    ]
    return Functions(entries, names, ".symtab" if table.type == SHT_SYMTAB else ".dynsym")


def _table(image: Image, kind: int) -> Section | None:
    return next((one for one in image.sections if one.type == kind and one.size_bytes and one.has_file_bytes), None)


def _rank(binding: int) -> int:
    """Order names of one place: a global one before a weak one before a local one."""
    return {1: 0, 2: 1}.get(binding, 2)


def _places(image: Image, symbols: Buffer) -> list[int]:
    """Give the places of the symbols that are functions, found in a string of all types rather than by a loop."""
    kinds = bytes(symbols[image.symbol_type_offset :: image.symbol_bytes])
    marks = kinds.translate(bytes(byte & 15 in {STT_FUNC, STT_GNU_IFUNC} for byte in range(256)))
    return [match.start() for match in re.finditer(b"\1", marks)]
