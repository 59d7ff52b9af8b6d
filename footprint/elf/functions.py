"""The functions of one ELF file: find the one that an address lies in, or the one with a name.

Names are decoded on request: a file has a hundred thousand functions, and profiles name a few hundred.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import Final

from footprint.elf import abi
from footprint.elf.image import Image
from footprint.elf.symbols import Symbol, SymbolTable, read_symbol_table

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
        self._mask = ~1 if table.image.machine == abi.EM_ARM else ~0
        kinds = table.kinds
        undefined = {kind for kind in set(kinds) if _section_index(table, kind) == abi.SHN_UNDEF}
        indexes = [index for index in table.of_types(_FUNCTION_TYPES) if kinds[index] not in undefined]
        vaddr_of = table.vaddrs.__getitem__ if self._mask == ~0 else self._vaddr
        self._indexes = sorted(indexes, key=vaddr_of)
        self._vaddrs = list(map(vaddr_of, self._indexes))

    @property
    def starts(self) -> Collection[int]:
        """Their first vaddrs."""
        return frozenset(self._vaddrs)

    def _vaddr(self, index: int) -> int:
        return self._table.vaddrs[index] & self._mask

    def _of_one_place(self, first: int) -> list[int]:
        """Return the indexes of the names of the place that begins at a position, the best name first."""
        past = bisect_right(self._vaddrs, self._vaddrs[first], first)
        return sorted(self._indexes[first:past], key=self._rank)

    def _rank(self, index: int) -> tuple[bool, int, int, int, int]:
        """Return where a name stands among those of its place: one with a size first, then by its binding."""
        name, info, _, _, _, size_bytes = self._table.entry(index)
        return not size_bytes, _BINDING_RANKS.get(info >> 4, 2), size_bytes, name, index

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._indexes)

    def __iter__(self) -> Iterator[Symbol]:
        """Return all of them."""
        first = 0
        while first < len(self._indexes):
            same = self._of_one_place(first)
            first += len(same)
            yield from map(self._symbol, same)

    def extents(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name, the vaddr and the size of each, in a quarter of the time that their symbols take."""
        names = self._table.names.all_at(map(self._table.name_offsets.__getitem__, self._indexes))
        return zip(names, self._vaddrs, map(self._table.sizes.__getitem__, self._indexes), strict=True)

    def at(self, vaddr: int) -> Symbol | None:
        """Return the function that an address lies in; of its names a global one, else any."""
        last = bisect_right(self._vaddrs, vaddr) - 1
        if last < 0:
            return None
        start = self._vaddrs[last]
        index = self._of_one_place(bisect_left(self._vaddrs, start))[0]
        # A label without a size reaches to the next one.
        size_bytes = self._table.sizes[index]
        if size_bytes and vaddr >= start + size_bytes:
            return None
        return self._symbol(index)

    def next_start(self, vaddr: int) -> int | None:
        """Return the first vaddr of the next function behind a vaddr."""
        number = bisect_right(self._vaddrs, vaddr)
        return self._vaddrs[number] if number < len(self._vaddrs) else None

    def _symbol(self, index: int) -> Symbol:
        return self._table.symbol(self._table.entry(index))._replace(vaddr=self._vaddr(index))


def _section_index(table: SymbolTable, kind: int) -> int:
    """Return st_shndx, the last two bytes of a kind as they are in the file."""
    return kind >> 16 if table.image.is_little else kind & 0xFFFF


def read_functions(image: Image) -> Functions:
    """Read the functions that the best symbol table of a file defines."""
    return Functions(read_symbol_table(image))
