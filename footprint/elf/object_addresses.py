"""Addresses for an object file, which has none before linking: each of its sections gets its own.

A symbol of an object is a section and an offset in it. With the sections laid out one after the other, one number
stands for both, so the code that reads linked files by address can read objects too.
"""

from footprint.elf.image import Image
from footprint.elf.symbols import Symbol, read_symbol_table

__all__ = ("ObjectAddresses",)

# Small numbers are not addresses: they are addends of undefined symbols, for example.
_FIRST_VADDR = 1 << 16
_ALIGN_BYTES = 16


class ObjectAddresses:
    """The addresses of the sections of a file.

    Attributes:
        starts: By section index the address of a section of an object; 0 for sections that are not in memory. All are 0
            for a linked file, whose symbols already have addresses.
        commons: By linker name the address of a COMMON symbol of an object.
    """

    def __init__(self, image: Image) -> None:
        """Lay out the sections of a file."""
        starts, end = [0] * len(image.sections), _FIRST_VADDR
        self.commons: dict[str, int] = {}
        if image.is_relocatable:
            for section in image.sections:
                if section.is_in_memory:
                    starts[section.index] = end
                    end = _behind(end, section.size_bytes)
            for symbol in read_symbol_table(image).variables({}):
                self.commons[symbol.name] = end
                end = _behind(end, symbol.size_bytes)
        self.starts = tuple(starts)

    def vaddr(self, symbol: Symbol) -> int:
        """Return the address of a symbol; for a thread-local symbol of a linked file, the offset that it has."""
        return self.commons[symbol.name] if symbol.is_common else self.starts[symbol.section_index] + symbol.vaddr


def _behind(start: int, size_bytes: int) -> int:
    """Return the start of the next section: no two have the same address, not even empty ones."""
    return start + size_bytes // _ALIGN_BYTES * _ALIGN_BYTES + _ALIGN_BYTES
