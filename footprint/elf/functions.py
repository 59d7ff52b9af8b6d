"""The functions of one ELF file: find the one that an address lies in, or the one with a name.

Names are decoded on request: a file has a hundred thousand functions, and profiles name a few hundred.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Image
from footprint.elf.symbols import Symbol, SymbolTable, read_symbol_table

__all__ = ("Functions", "read_functions")

_FUNCTION_TYPES: Final = frozenset({abi.STT_FUNC, abi.STT_GNU_IFUNC})
# Of several names of one place a global one is shown before a weak one, and that before a local one.
_BINDING_RANKS: Final = {abi.STB_GLOBAL: 0, abi.STB_WEAK: 1}


class Functions:
    """The functions that a symbol table defines, in the order of their addresses.

    Attributes:
        source: The table: `.symtab` or `.dynsym`; None where the file has neither.
    """

    def __init__(self, table: SymbolTable) -> None:
        """Find the functions of a table."""
        self.source = table.source
        self._table = table
        # Bit 0 of an address on ARM selects the instruction set.
        mask = ~1 if table.image.machine == abi.EM_ARM else ~0
        indexes = table.of_types(_FUNCTION_TYPES)
        self._entries = sorted(
            [
                (vaddr & mask, size_bytes, _BINDING_RANKS.get(info >> 4, 2), name, index)
                for index, (name, info, _, section_index, vaddr, size_bytes) in zip(
                    indexes, table.entries(indexes), strict=True
                )
                if section_index != abi.SHN_UNDEF
            ]
        )
        # Of several names of one place the best: one with a size, then by its binding.
        best: dict[int, tuple[int, int, int, int, int]] = {}
        for entry in self._entries:
            known = best.get(entry[0])
            if known is None or (not entry[1], entry[2]) < (not known[1], known[2]):
                best[entry[0]] = entry
        self._best = list(best.values())
        self._vaddrs = list(best)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Symbol]:
        """Return all of them."""
        return (self._symbol(vaddr, index) for vaddr, *_, index in self._entries)

    def at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address lies in; of its names a global one, else any."""
        last = bisect_right(self._vaddrs, vaddr) - 1
        if last < 0:
            return None
        start, size_bytes, *_, index = self._best[last]
        # A label without a size reaches to the next one.
        if size_bytes and vaddr >= start + size_bytes:
            return None
        return self._symbol(start, index)

    def _symbol(self, vaddr: int, index: int) -> Symbol:
        return self._table.symbol(self._table.entry(index))._replace(vaddr=vaddr)


def read_functions(image: Image) -> Functions:
    """Read the functions that the best symbol table of a file defines."""
    return Functions(read_symbol_table(image))
