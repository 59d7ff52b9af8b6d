"""The tables of a section that units refer to by their offsets: abbreviations, names of source files."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from footprint.dwarf.sections import DebugSection
from footprint.errors import InputError

__all__ = ("Tables",)

T = TypeVar("T")

_SMALL_BYTES: Final = 1 << 16
_MOST_READS: Final = 6
_READS_FOR_FORGOTTEN: Final = 3


class Tables(Generic[T]):
    """The tables of a section, each read on first use.

    Tables may share their bytes, so the number of bytes that are read is limited. The newest tables are kept, up to a
    number of entries; a forgotten one is read again within the limit.
    """

    def __init__(self, section: DebugSection, most_kept: int) -> None:
        self.section = section
        self._most_kept = most_kept
        # Each table with the number of its entries.
        self._known: dict[int, tuple[T, int]] = {}
        self._damaged: dict[int, InputError] = {}
        self._kept_count = 0
        self._left_bytes = _SMALL_BYTES + section.size_bytes * _MOST_READS

    def at(self, offset: int, read: "Callable[[Tables[T], int], tuple[T, int]]") -> T:
        """Return the table at an offset; `read` reads it, and returns it with the number of its entries."""
        known = self._known.get(offset)
        if known is None:
            if offset in self._damaged:
                raise self._damaged[offset].with_traceback(None)
            try:
                known = read(self, offset)
            except InputError as error:
                self._damaged[offset] = error
                raise
            self._keep(offset, known)
        return known[0]

    def spend(self, size_bytes: int, offset: int) -> None:
        """Count bytes that are read for the table at an offset."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise self.section.damage("tables overlap too much", offset)

    def _keep(self, offset: int, new: tuple[T, int]) -> None:
        self._kept_count += new[1]
        while self._known and self._kept_count > self._most_kept:
            if self._left_bytes < self.section.size_bytes * _READS_FOR_FORGOTTEN:
                break
            self._kept_count -= self._known.pop(next(iter(self._known)))[1]
        self._known[offset] = new
