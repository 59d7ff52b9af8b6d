"""The free chunks that keep the look of chunks in use: those of threads (tcache) and of fastbins, in lists."""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from footprint.members import NamedTuple
from footprint.process.glibc.words import ALIGNMENT, HeapRegion, MisfitError, ProcessWords

_FLAGS: Final = 7
_LOW_BYTE: Final = 0 if sys.byteorder == "little" else 1
_ALIGNED: Final = bytes(range(0, 256, ALIGNMENT))
_EXACT_COUNT: Final = 64  # lists of one size each; those of 2.42 behind them have ranges of sizes
_MOST_CACHED: Final = 1 << 18


class TcacheLayout(NamedTuple):
    """The lists of one thread: a count for each of them, then their first blocks."""

    list_count: int
    count_bytes: int

    def size_bytes(self, word_bytes: int) -> int:
        """Return the size of the structure."""
        return self.list_count * (self.count_bytes + word_bytes)

    def chunk_bytes(self, word_bytes: int) -> int:
        """Return the size of the chunk that it is in."""
        return self.size_bytes(word_bytes) + word_bytes + ALIGNMENT - 1 & -ALIGNMENT


TCACHE_OF_RANGES: Final = TcacheLayout(76, 2)
"""From 2.42 on: the last lists have ranges of sizes."""
TCACHES: Final = (TcacheLayout(64, 2), TCACHE_OF_RANGES, TcacheLayout(64, 1))
"""From 2.30 on, from 2.42 on, and before 2.30."""


class FreeList(NamedTuple):
    """A list of free chunks.

    Attributes:
        first_addr: The first chunk.
        size_bytes: The size of each; None where it differs.
        is_of_thread: Whether a thread keeps it. Such a list leads to blocks, one of a fastbin to chunks.
    """

    first_addr: int
    size_bytes: int | None
    is_of_thread: bool


def fastbin_lists(words: ProcessWords, first_addrs: Iterable[int]) -> list[FreeList]:
    """Return the lists of the fastbins of an arena."""
    step_bytes = words.header_bytes
    return [
        FreeList(addr, (place + 2) * step_bytes, is_of_thread=False) for place, addr in enumerate(first_addrs) if addr
    ]


def may_have_lists(layout: TcacheLayout, word_bytes: int, block: bytes) -> bool:
    """Return whether a block can be the lists of a thread, by the last digits of its addresses: it must be quick.

    A program may have a million blocks of this size. Lists that are all empty have no address to tell by.
    """
    if len(block) < layout.size_bytes(word_bytes):
        return True
    digits = block[layout.list_count * layout.count_bytes + _LOW_BYTE * (word_bytes - 1) :: word_bytes]
    return not digits.translate(None, _ALIGNED) and block.count(0) < len(block)


def tcache_lists(words: ProcessWords, layout: TcacheLayout, addr: int, *, may_be_empty: bool) -> list[FreeList] | None:
    """Return the lists of a thread, if the chunk at an address has such: None where counts and lists contradict.

    Empty lists look like any memory of zeros: they are believed only where `may_be_empty`.
    """
    word = words.layout.word_bytes
    counts_bytes = layout.list_count * layout.count_bytes
    data = words.memory.read(addr + words.header_bytes, layout.size_bytes(word))
    if len(data) < layout.size_bytes(word):
        return None
    firsts = words.of(data[counts_bytes:]).tolist()
    if any(first % ALIGNMENT for first in firsts) or not (may_be_empty or any(firsts)):
        return None
    size, bounds = layout.count_bytes, range(0, counts_bytes, layout.count_bytes)
    counts = [int.from_bytes(data[start : start + size], sys.byteorder) for start in bounds]
    if layout.list_count == _EXACT_COUNT:
        is_right = list(map(bool, counts)) == list(map(bool, firsts))
    else:
        # From 2.42 on they count what there is room for, which is the same in each empty list, and less in others.
        room = max(counts)
        is_empty = [not first for first in firsts]
        is_right = all(firsts) or [count == room for count in counts] == is_empty
    if not is_right:
        return None
    least_bytes = 4 * word
    return [
        FreeList(
            first - words.header_bytes,
            least_bytes + place * ALIGNMENT if place < _EXACT_COUNT else None,
            is_of_thread=True,
        )
        for place, first in enumerate(firsts)
        if first
    ]


def with_cached(
    words: ProcessWords, regions: Sequence[HeapRegion], lists: Iterable[FreeList]
) -> tuple[list[HeapRegion], bool]:
    """Add the chunks of lists to the regions that they lie in, which are ascending; return also whether that is all."""
    return _Follower(words, regions).follow(lists)


class _Follower:
    """Follows lists through the regions."""

    def __init__(self, words: ProcessWords, regions: Sequence[HeapRegion]) -> None:
        self._words = words
        self._regions = regions
        self._starts = [region.start_addr for region in regions]
        self._chunks: list[dict[int, tuple[int, bool]]] = [{} for _ in regions]

    def follow(self, lists: Iterable[FreeList]) -> tuple[list[HeapRegion], bool]:
        left = _MOST_CACHED
        for free_list in lists:
            at = free_list.first_addr
            while left and at:
                left -= 1
                at = self._add(at, free_list)
        with_lists = [_with_chunks(region, chunks) for region, chunks in zip(self._regions, self._chunks, strict=True)]
        return with_lists, left > 0

    def _add(self, at: int, free_list: FreeList) -> int:
        """Add a chunk, if it is one of the list; return the next, or 0."""
        place = self._place(at)
        if place is None or at in self._chunks[place]:
            return 0
        try:
            _, size, next_addr = self._words.read(at, 3)
        except MisfitError:
            return 0
        region, size_bytes = self._regions[place], size & ~_FLAGS
        least_bytes = 4 * self._words.layout.word_bytes
        is_right = size_bytes == free_list.size_bytes if free_list.size_bytes is not None else size_bytes >= least_bytes
        # An odd place is inside of a chunk of a bin: this one was merged into it meanwhile.
        if not is_right or bisect_right(region.binned, at) % 2 or at + size_bytes > region.top_addr:
            return 0
        self._chunks[place][at] = size_bytes, free_list.is_of_thread
        # Since 2.32 an address is mixed with that of its own place (safe linking).
        for addr in (next_addr ^ (at + self._words.header_bytes >> 12), next_addr):
            if not addr:
                return 0
            chunk = addr - self._words.header_bytes if free_list.is_of_thread else addr
            if self._place(chunk) is not None:
                return chunk
        return 0

    def _place(self, at: int) -> int | None:
        """Return the number of the region in which a chunk can be at an address."""
        if (at + self._words.header_bytes) % ALIGNMENT:
            return None
        place = bisect_right(self._starts, at) - 1
        is_inside = place >= 0 and self._regions[place].first_addr <= at < self._regions[place].top_addr
        return place if is_inside else None


def _with_chunks(region: HeapRegion, chunks: dict[int, tuple[int, bool]]) -> HeapRegion:
    """Add free chunks to a region; of two that overlap one is from another moment."""
    fast, cached, past = array("Q"), array("Q"), 0
    for at in sorted(chunks):
        if at >= past:
            size_bytes, is_of_thread = chunks[at]
            past = at + size_bytes
            (cached if is_of_thread else fast).extend((at, past))
    live_count = max(0, region.live_count - (len(fast) + len(cached)) // 2)
    return region._replace(fast=fast, cached=cached, live_count=live_count)
