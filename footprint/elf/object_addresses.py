"""Addresses for an object file, which has none before it is linked: each of its sections is given one of its own.

What an object says of a variable is a section and an offset in it. Laid out one behind the other, sections make one
number of both, so that what reads linked files by addresses reads objects, too.
"""

from footprint.elf.image import Image
from footprint.elf.symbols import Symbol, read_symbol_table

__all__ = ("ObjectAddresses",)

# Small numbers, such as the addends of what is not defined in the file, are no addresses.
_FIRST_VADDR = 1 << 16
_ALIGN_BYTES = 16


class ObjectAddresses:
    """Where the sections of a file stand.

    Attributes:
        starts: By section index, where a section of an object begins; 0 for what the loader never sees. All are 0 in a
            linked file, whose symbols have addresses already.
        commons: By linker name, where a common symbol of an object begins.
    """

    def __init__(self, image: Image) -> None:
        """Lay out a file.

        Raises:
            InputError: Where the symbols of an object are damaged.
        """
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
        """Give the address of a symbol of the file; of a thread-local one of a linked file the offset that it has."""
        return self.commons[symbol.name] if symbol.is_common else self.starts[symbol.section_index] + symbol.vaddr


def _behind(start: int, size_bytes: int) -> int:
    """Give where the next one begins: no two have an address in common, and be they empty."""
    return start + size_bytes // _ALIGN_BYTES * _ALIGN_BYTES + _ALIGN_BYTES
