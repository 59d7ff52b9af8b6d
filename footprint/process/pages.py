"""The pages of a mapping that only this process holds, as ranges, from the page bits of the kernel.

PAGEMAP_SCAN (Linux 6.7) skips pages that are not present. The bits of `/proc/PID/pagemap` show which pages are
anonymous and mapped once. A process may read both for processes of its own user.

Captures hold them as text: for each examined mapping its first address, then one line per range.

    7f53a4c00000
    7f53a4c00000-7f53a4c21000
    7f53a4c30000-7f53a4c31000 swapped

Ranges are half-open and ascending. All numbers are hexadecimal.

The memory of a live process is read where its pages are: the kernel would make one that is not there (untouched, or
swapped out) to read it, so the page bits are asked first.

Source: Documentation/admin-guide/mm/pagemap.rst and fs/proc/task_mmu.c of Linux 6.18; proc_pid_mem(5).
"""

import errno
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from struct import Struct
from typing import Final, Self

from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern
from footprint.process.mappings import Counters, Mapping, MemoryMap

# _IOWR('f', 16, struct pm_scan_arg)
_PAGEMAP_SCAN: Final = 0xC0606610
_SCAN_ARGUMENT: Final = Struct("12Q")
_REGION_COUNT: Final = 4096
_FILE, _PRESENT, _SWAPPED = 4, 8, 16
_ENTRY_BYTES: Final = 8
_PAGES_A_READ: Final = 1 << 16
# To read across a hole of this many pages is quicker than another call.
_HOLE_PAGES: Final = 1024
# Bits in the high byte of a pagemap entry: 63 present, 62 swapped, 61 file or shared, 58 guard, 56 mapped once. The
# zero page is present and never "mapped once"; a guard page is "swapped" with bit 58.
_HIGH_BYTE: Final = 7 if array("H", [1]).tobytes()[0] else 0
_SWAP_ENTRY: Final = (1 << 55) - 1
_SWAPPED_ENTRY: Final = 1 << 63 | 1 << 62 | 1 << 58
_IS_SWAPPED: Final = 1 << 62
_LINE: Final = lazy_pattern(rb"([0-9a-f]{1,16})(?:-([0-9a-f]{1,16})( swapped)?)?")
_LONGEST_LINE_BYTES: Final = 41
_PRESENT_BYTES: Final = bytes(0xFF if byte & 0x80 else 0 for byte in range(256))
_MOST_PAGES_A_SKIP: Final = 1 << 15
_MOST_PAGES_SKIPPED: Final = 1 << 24  # 64 GiB: reading their bits takes a tenth of a second


class PageRange(NamedTuple):
    """Contiguous pages that only this process holds, resident or swapped; half-open."""

    start_addr: int
    end_addr: int
    is_swapped: bool = False


def _bytes_where(has: int, has_not: int) -> bytes:
    return b"".join(re.escape(bytes([byte])) for byte in range(256) if byte & has == has and not byte & has_not)


_PRIVATE: Final = re.compile(b"[" + _bytes_where(0x81, 0x60) + b"]+", re.DOTALL)
_IN_MEMORY: Final = lazy_pattern(b"[" + _bytes_where(0x80, 0) + b"]+", re.DOTALL)
_SWAPPED_OUT: Final = lazy_pattern(b"[" + _bytes_where(0x40, 0x84) + b"]+", re.DOTALL)


@cache
def has_exclusive_bit() -> bool:
    """Return whether the page bits of this kernel show which pages are mapped once (Linux 4.2): try our own page."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    written = array("B", bytes(2 * page_bytes))
    page = written.buffer_info()[0] // page_bytes + 1
    try:
        descriptor = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        entry = os.pread(descriptor, _ENTRY_BYTES, page * _ENTRY_BYTES)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(_PRIVATE.fullmatch(entry[_HIGH_BYTE::_ENTRY_BYTES]))


class PageReader:
    """Reads the page bits of one process through its directory in /proc; a context manager.

    Raises:
        OSError: Where pagemap cannot be opened.
    """

    def __init__(self, folder: int, page_bytes: int) -> None:
        self._descriptor = os.open("pagemap", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        self._page_bytes = page_bytes
        self._regions = array("Q", bytes(24 * _REGION_COUNT))
        self._can_scan = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, mapping: Mapping) -> tuple[PageRange, ...]:
        """Find the anonymous pages of a mapping that only this process holds, in ascending order.

        The cost is linear in the present pages; without PAGEMAP_SCAN, in the size of the mapping.

        Raises:
            OSError: Where reading fails: the process has ended (ESRCH), or we may not read it.
        """
        # Search swapped pages only where the counters show some: Linux 6.13 and 6.14 show guard pages as swapped. Of
        # those that others have, too, the bits do not tell which these are.
        has_swap = bool(mapping.counters.get("Swap")) and mapping.counters.swap_share_bytes() is None
        ranges: list[PageRange] = []
        for start, end in self._spans(mapping.start_addr, mapping.end_addr):
            for first_addr, bits in self._high_bytes(start, end):
                runs = self._runs(_PRIVATE, bits, first_addr, is_swapped=False)
                if has_swap:
                    runs = sorted(runs + self._runs(_SWAPPED_OUT, bits, first_addr, is_swapped=True))
                if runs and ranges and ranges[-1].end_addr == runs[0].start_addr:
                    # Join a range that was read in two pieces.
                    before, here = ranges[-1], runs[0]
                    if before.is_swapped is here.is_swapped:
                        ranges.pop()
                        runs[0] = PageRange(before.start_addr, here.end_addr, here.is_swapped)
                ranges += runs
        return tuple(ranges)

    def read_swap_entries(self, mapping: Mapping) -> Iterator[int]:
        """Yield type and offset of each swapped page; only root sees them, others see 0.

        Raises:
            OSError: As `read` does.
        """
        first, past = mapping.start_addr // self._page_bytes, mapping.end_addr // self._page_bytes
        while first < past:
            count = min(past - first, _PAGES_A_READ)
            entries = array("Q", os.pread(self._descriptor, count * _ENTRY_BYTES, first * _ENTRY_BYTES))
            if not entries:
                return
            yield from [entry & _SWAP_ENTRY for entry in entries if entry & _SWAPPED_ENTRY == _IS_SWAPPED]
            first += len(entries)

    def read_present(self, mapping: Mapping) -> tuple[PageRange, ...]:
        """Find the present pages of a mapping, shared or not; the cost is linear in its size.

        Raises:
            OSError: As `read` does.
        """
        ranges: list[PageRange] = []
        for first_addr, bits in self._high_bytes(mapping.start_addr, mapping.end_addr):
            runs = self._runs(_IN_MEMORY, bits, first_addr, is_swapped=False)
            if runs and ranges and ranges[-1].end_addr == runs[0].start_addr:
                runs[0] = PageRange(ranges.pop().start_addr, runs[0].end_addr)
            ranges += runs
        return tuple(ranges)

    def read_all(self, mappings: Iterable[Mapping]) -> Iterator[tuple[Mapping, tuple[PageRange, ...]]]:
        """Read many mappings, in ascending order.

        No bits are read where the counters suffice, and small neighbouring mappings are read together.

        Raises:
            OSError: As `read` does.
        """
        wholes: dict[int, int] = {}
        for near in self._neighbours(mappings):
            start = near[0].start_addr
            bits: bytes | None = b"" if len(near) == 1 else None
            for mapping in near:
                counters = mapping.counters
                if id(counters) not in wholes:
                    wholes[id(counters)] = _private_where_whole(counters)
                if wholes[id(counters)] == mapping.end_addr - mapping.start_addr:
                    yield mapping, (PageRange(mapping.start_addr, mapping.end_addr),)
                    continue
                if bits is None:
                    bits = b"".join([high for _, high in self._high_bytes(start, near[-1].end_addr)])
                here = bits[
                    (mapping.start_addr - start) // self._page_bytes : (mapping.end_addr - start) // self._page_bytes
                ]
                if len(here) * self._page_bytes < mapping.size_bytes or mapping.counters.get("Swap"):
                    yield mapping, self.read(mapping)
                else:
                    yield mapping, tuple(self._runs(_PRIVATE, here, mapping.start_addr, is_swapped=False))

    def _neighbours(self, mappings: Iterable[Mapping]) -> Iterator[list[Mapping]]:
        """Group mappings for one read: small mappings with small gaps between them."""
        hole_bytes, most_bytes = _HOLE_PAGES * self._page_bytes, _PAGES_A_READ * self._page_bytes
        near: list[Mapping] = []
        for mapping in mappings:
            is_near = (
                near
                and 0 <= mapping.start_addr - near[-1].end_addr <= hole_bytes
                and mapping.end_addr - mapping.start_addr <= hole_bytes
                and mapping.end_addr - near[0].start_addr <= most_bytes
            )
            if near and not is_near:
                yield near
                near = []
            near.append(mapping)
        if near:
            yield near

    def _runs(self, pattern: re.Pattern[bytes], bits: bytes, first_addr: int, *, is_swapped: bool) -> list[PageRange]:
        page_bytes = self._page_bytes
        return [
            PageRange(first_addr + start * page_bytes, first_addr + past * page_bytes, is_swapped)
            for start, past in [run.span() for run in pattern.finditer(bits)]
        ]

    def _spans(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        """Return the address ranges to read."""
        if self._can_scan:
            try:
                return self._scanned(start, end)
            except OSError as error:
                if error.errno not in {errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP}:
                    raise
                # Before Linux 6.7.
                self._can_scan = False
        return [(start, end)]

    def _scanned(self, start: int, end: int) -> list[tuple[int, int]]:
        """Ask the kernel for the ranges of anonymous or swapped pages; small holes are included."""
        hole_bytes = _HOLE_PAGES * self._page_bytes
        spans: list[tuple[int, int]] = []
        at = start
        while at < end:
            wanted = (_FILE, _FILE, _PRESENT | _SWAPPED, _PRESENT | _SWAPPED)
            address = self._regions.buffer_info()[0]
            argument = bytearray(_SCAN_ARGUMENT.pack(96, 0, at, end, 0, address, _REGION_COUNT, 0, *wanted))
            count = ioctl(self._descriptor, _PAGEMAP_SCAN, argument)
            # `walk_end` is not used: with more than 512 regions the kernel sets it to the end of an inner step.
            begin, at = at, self._regions[3 * count - 2] if count == _REGION_COUNT else end
            if count == _REGION_COUNT and at - begin <= count * hole_bytes:
                # The regions are dense: read the whole range.
                spans.append((begin, at))
                continue
            for place in range(0, 3 * count, 3):
                first, past = self._regions[place], self._regions[place + 1]
                if spans and first - spans[-1][1] <= hole_bytes:
                    spans[-1] = (spans[-1][0], past)
                else:
                    spans.append((first, past))
        return spans

    def _high_bytes(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Read the high bytes of the entries between two addresses, in pieces, each with its first address."""
        first, past = start // self._page_bytes, end // self._page_bytes
        while first < past:
            count = min(past - first, _PAGES_A_READ)
            entries = os.pread(self._descriptor, count * _ENTRY_BYTES, first * _ENTRY_BYTES)
            if not entries:
                return
            yield first * self._page_bytes, entries[_HIGH_BYTE::_ENTRY_BYTES]
            first += len(entries) // _ENTRY_BYTES


def _private_where_whole(counters: Counters) -> int:
    """Return the bytes of a mapping whose present pages are all anonymous and mapped once, by its counters; else -1."""
    once_bytes = (counters.get("Private_Dirty") or 0) + (counters.get("Private_Clean") or 0)
    return once_bytes if counters.get("Anonymous") == once_bytes == counters.get("Rss") else -1


def has_parts_of_huge_pages(mapping: Mapping) -> bool:
    """Return whether a mapping may have pages of huge pages that are no longer mapped as a whole."""
    count = mapping.counters.get
    # What is left of a mapping may be too small for huge pages; then it was advised to have them (`hg`).
    is_eligible = count("THPeligible") or "hg" in (mapping.vm_flags or "").split()
    return bool(is_eligible) and (count("Anonymous") or 0) > (count("AnonHugePages") or 0)


def ranges_bytes(ranges: Iterable[PageRange]) -> int:
    """Add up the sizes of ranges."""
    return sum(span.end_addr - span.start_addr for span in ranges)


Pages = dict[int, tuple[PageRange, ...]]


def page_lines(pages: Pages) -> Iterator[bytes]:
    """Format page ranges."""
    for start_addr, ranges in pages.items():
        yield b"%x\n" % start_addr
        for span in ranges:
            yield b"%x-%x%s\n" % (span.start_addr, span.end_addr, b" swapped" if span.is_swapped else b"")


def read_page_lines(pieces: Iterable[bytes], memory: MemoryMap, page_bytes: int, source: str, name: str) -> Pages:
    """Read page ranges. Each must consist of whole pages of its mapping, and begin behind the range before it.

    Args:
        pieces: The text, in pieces.
        memory: The mappings that the ranges belong to.
        page_bytes: The size of a page.
        source: The file that holds the text, for messages.
        name: The name of the text within that file.

    Raises:
        InputError: Where the text has another form, or contradicts the mappings.
    """
    ends = {mapping.start_addr: mapping.end_addr for mapping in memory.mappings}
    # Earlier versions listed swapped pages that others have, too.
    shared = {mapping.start_addr for mapping in memory.mappings if mapping.counters.swap_share_bytes() is not None}
    pages: dict[int, list[PageRange]] = {}
    ranges: list[PageRange] = []
    least = end = 0
    has_shared = False
    for number, line in enumerate(_lines(pieces), 1):
        line_match = _LINE.fullmatch(line)
        if line_match is None:
            raise InputError(source, f"{name}, line {number} is neither a mapping nor a page range")
        start = int(line_match[1], 16)
        if line_match[2] is None:
            if start not in ends or start in pages:
                raise InputError(
                    source, f"{name}, line {number}: no mapping starts at {start:#x}, or it is listed twice"
                )
            least, end, ranges, has_shared = start, ends[start], pages.setdefault(start, []), start in shared
            continue
        past = int(line_match[2], 16)
        if not least <= start < past <= end or start % page_bytes or past % page_bytes:
            raise InputError(
                source, f"{name}, line {number}: not whole pages of its mapping, or not in ascending order"
            )
        if not (has_shared and line_match[3]):
            ranges.append(PageRange(start, past, line_match[3] is not None))
        least = past
    return {start: tuple(page_ranges) for start, page_ranges in pages.items()}


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_LINE_BYTES:
            break
    if rest:
        yield rest


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
        return entries[_HIGH_BYTE::_ENTRY_BYTES].translate(_PRESENT_BYTES)
