"""The places of variables: what a linked file calls their addresses, and the same for object files.

An object has no addresses before linking. Its sections are laid out one after the other, so the code that reads linked
files by address can read objects too.
"""

from footprint.elf import abi
from footprint.elf.image import Image, Section
from footprint.elf.symbols import Symbol, read_symbol_table
from footprint.members import NamedTuple

# Small numbers are not addresses: they are addends of undefined symbols, for example.
_FIRST_VADDR = 1 << 16
_ALIGN_BYTES = 16


class VariablePlace(NamedTuple):
    """The place of a variable: its vaddr, or for a thread-local variable its offset in the block of each thread."""

    value: int
    is_tls: bool


class VariablePlaces:
    """The places of the variables of a file.

    Attributes:
        starts: By section index the place of its first byte; in an object 0 for sections that are not in memory.
        commons: By linker name the place of a COMMON symbol of an object.
    """

    def __init__(self, image: Image) -> None:
        self._sections = image.sections
        self.commons: dict[str, int] = {}
        if not image.is_relocatable:
            tls = image.segment(abi.PT_TLS)
            tls_vaddr = tls.vaddr if tls else 0
            self.starts = [part.vaddr - tls_vaddr if part.is_tls else part.vaddr for part in image.sections]
            return
        self.starts, end = [0] * len(image.sections), _FIRST_VADDR
        for section in image.sections:
            if section.is_in_memory:
                self.starts[section.index] = end
                end = _behind(end, section.size_bytes)
        for symbol in read_symbol_table(image).variables({}):
            self.commons[symbol.name] = end
            end = _behind(end, symbol.size_bytes)

    def at(self, section: Section, offset: int) -> VariablePlace:
        """Return the place of an offset in a section."""
        return VariablePlace(self.starts[section.index] + offset, section.is_tls)

    def of(self, symbol: Symbol) -> VariablePlace:
        """Return the place of a symbol."""
        if symbol.is_common:
            return VariablePlace(self.commons[symbol.name], symbol.is_tls)
        return self.at(self._sections[symbol.section_index], symbol.offset)


def _behind(start: int, size_bytes: int) -> int:
    """Return the start of the next section: no two have the same address, not even empty ones."""
    return start + size_bytes // _ALIGN_BYTES * _ALIGN_BYTES + _ALIGN_BYTES
