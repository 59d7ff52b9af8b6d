"""The memory of a live process, as far as it is there: reading it changes nothing.

The kernel would make a page that is not there (untouched, or swapped out) to read it. So the page bits are asked first.

Source: proc_pid_mem(5), Documentation/admin-guide/mm/pagemap.rst.
"""

import os
import sys
from array import array
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Self

from footprint.process.mappings import Mapping

_ENTRY_BYTES: Final = 8
_HIGH_BYTE: Final = 7 if array("H", [1]).tobytes()[0] else 0
_PRESENT: Final = bytes(0xFF if byte & 0x80 else 0 for byte in range(256))
_MOST_PAGES_A_SKIP: Final = 1 << 15
_MOST_PAGES_SKIPPED: Final = 1 << 24  # 64 GiB: reading their bits takes a tenth of a second
_FIRST_64_BIT_ADDR: Final = 1 << 32


def word_bytes_of(mappings: Iterable[Mapping]) -> int:
    """Return the size of a pointer of a process, by where its memory is."""
    is_64 = any(mapping.start_addr >= _FIRST_64_BIT_ADDR and mapping.name != "[vsyscall]" for mapping in mappings)
    return 8 if is_64 else 4


def auxiliary_vector(data: bytes) -> dict[int, int]:
    """Return the entries of an auxiliary vector by their key, as `/proc/PID/auxv` has them (getauxval(3))."""
    # In 32 bits a value stands where the upper half of the first key would be.
    is_64 = int.from_bytes(data[:8], sys.byteorder) < 1 << 32
    entry_bytes = 16 if is_64 else 8
    words = memoryview(data[: len(data) // entry_bytes * entry_bytes]).cast("Q" if is_64 else "I").tolist()
    return dict(zip(words[::2], words[1::2], strict=True))


class ProcessMemory:
    """Reads the memory of one process through its directory in /proc; a context manager.

    Raises:
        OSError: Where we may not read it: that takes the rights of a debugger (ptrace_scope, CAP_SYS_PTRACE).
    """

    def __init__(self, folder: int, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._pages_to_skip = _MOST_PAGES_SKIPPED
        self._memory = os.open("mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        try:
            self._bits = os.open("pagemap", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            os.close(self._memory)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._memory)
        os.close(self._bits)

    def read(self, addr: int, size_bytes: int) -> bytes:
        """Return the bytes from an address on: fewer than asked for where a page behind is not in memory."""
        first = addr // self._page_bytes
        present = self._present(first, -(-(addr + size_bytes) // self._page_bytes) - first)
        past = present.find(0)
        if past >= 0:
            size_bytes = min(size_bytes, (first + past) * self._page_bytes - addr)
        if size_bytes > 0 and present:
            with suppress(OSError):
                return os.pread(self._memory, size_bytes, addr)
        return b""

    def skip(self, addr: int, end_addr: int) -> int:
        """Return the first address from `addr` on whose page is in memory, or `end_addr`.

        Holes of many GiB are looked through up to a number of pages; what is behind them is not found.
        """
        page_bytes = self._page_bytes
        first, past, count = addr // page_bytes, -(-end_addr // page_bytes), 1
        while first < past and self._pages_to_skip > 0:
            # The next page is there most often; behind a large hole, look far.
            present = self._present(first, min(past - first, count))
            count = min(8 * count, _MOST_PAGES_A_SKIP)
            place = present.find(0xFF)
            if place >= 0:
                return min(max(addr, (first + place) * page_bytes), end_addr)
            if not present:
                break
            first += len(present)
            self._pages_to_skip -= len(present)
        return end_addr

    def _present(self, first: int, count: int) -> bytes:
        """Return a byte for each of some pages: 0 where it is not in memory, else 255."""
        try:
            entries = os.pread(self._bits, count * _ENTRY_BYTES, first * _ENTRY_BYTES)
        except (OSError, OverflowError):
            return b""
        return entries[_HIGH_BYTE::_ENTRY_BYTES].translate(_PRESENT)
