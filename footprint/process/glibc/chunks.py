"""The chunks of a heap, one behind the other, and the lists of those that are free.

Free chunks of threads (tcache) and of fastbins keep the look of chunks in use.

The pieces of the main arena, where its memory is not one: another caller moved the break, or it cannot rise.

malloc closes a piece with two chunks without contents, and nothing leads to the next one. Behind a break that another
caller moved it begins at any address. What is mapped instead, where the break cannot rise, begins with a page. A piece
is believed where its chunks lead to such an end, or to the last chunk of the arena.

Source: sysmalloc in malloc/malloc.c of glibc 2.26 to 2.43.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from footprint.members import NamedTuple
from footprint.process.glibc.arenas import HeapSpan
from footprint.process.glibc.words import ALIGNMENT, HeapRegion, MisfitError, ProcessWords

_FLAGS: Final = 7
_LOW_BYTE: Final = 0 if sys.byteorder == "little" else 1
_ALIGNED: Final = bytes(range(0, 256, ALIGNMENT))
_EXACT_COUNT: Final = 64  # lists of one size each; those of 2.42 behind them have ranges of sizes
_MOST_CACHED: Final = 1 << 18
_MOST_SEARCHED_BYTES: Final = 1 << 28
_MOST_HOPS: Final = 1 << 12
_MOST_CANDIDATES: Final = 1 << 12
_LEAST_ROW: Final = 16
_LEAST_INNER: Final = 2
_PREVIOUS_IN_USE: Final = 1
_LEAST_WINDOW_BYTES: Final = 1 << 12
_WINDOW_BYTES: Final = 1 << 17
_MOST_TCACHES: Final = 1 << 14
_MOST_PLAIN: Final = 1 << 12


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


def page_starts(words: ProcessWords, start: int, end: int, page_bytes: int) -> Iterator[int]:
    """Find the pages that may begin with the first chunk of a piece; return the addresses of these chunks."""
    return _candidates(words, words.aligned(start), end, page_bytes)


def likely_start(words: ProcessWords, start: int, end: int) -> int | None:
    """Find where the next piece begins behind memory of another caller, which may contain anything.

    A number of this memory may look like the size of a chunk that ends where a chunk of the piece does. Then this
    chunk has the true first ones in it.

    Args:
        words: Reads the process.
        start: The end of the piece before.
        end: The end of the last piece there.
    """
    likely, past, hops_left = None, end, _MOST_HOPS
    for at in _candidates(words, words.aligned(start), end, ALIGNMENT):
        if at >= past or not hops_left:
            break
        places = [at]
        while places[-1] < past and hops_left and (place := _next(words, places[-1], end)):
            places.append(place)
            hops_left -= 1
            # Many chunks in a row are no accident.
            if likely is None and len(places) > _LEAST_ROW:
                break
        is_row = len(places) > _LEAST_ROW or places[-1] == end or (len(places) > 1 and is_closed(words, places[-1]))
        if is_row if likely is None else places[-1] == past and len(places) > _LEAST_INNER:
            likely, past = at, places[1]
    return likely


def is_closed(words: ProcessWords, at: int) -> bool:
    """Return whether two chunks without contents are at an address."""
    try:
        _, first, *_, second = words.read(at, 4)
    except MisfitError:
        return False
    return first & ~_PREVIOUS_IN_USE == words.header_bytes and second == words.header_bytes | _PREVIOUS_IN_USE


def _candidates(words: ProcessWords, start: int, end: int, step_bytes: int) -> Iterator[int]:
    """Return the addresses from the first one on, in steps, at which the first chunk of a piece may be."""
    word, left_bytes, count = words.layout.word_bytes, _MOST_SEARCHED_BYTES, _MOST_CANDIDATES
    least, at = 4 * word, start
    while at < end and left_bytes > 0:
        here = words.memory.skip(at, end)
        at += (here - at) // step_bytes * step_bytes
        piece = words.of(words.memory.read(at, min(_WINDOW_BYTES, end - at)))
        if len(piece) < 2:
            at += step_bytes
            continue
        sizes = piece[1 :: step_bytes // word].tolist()
        for place, size in enumerate(sizes):
            addr = at + place * step_bytes
            if size & 15 == _PREVIOUS_IN_USE and least <= size <= end - addr:
                yield addr
                count -= 1
                if not count:
                    return
        at += len(sizes) * step_bytes
        left_bytes -= _WINDOW_BYTES


def _next(words: ProcessWords, at: int, end: int) -> int | None:
    """Return the chunk behind another one, or None where its size is none."""
    word = words.layout.word_bytes
    try:
        (size,) = words.read(at + word, 1)
        following = at + (size & ~_FLAGS)
        if size & _FLAGS & ~_PREVIOUS_IN_USE or following - at < 4 * word or following > end:
            return None
        before_bytes, next_size = words.read(following, 2) if following < end else (0, _PREVIOUS_IN_USE)
    except MisfitError:
        return None
    is_free = not next_size & _PREVIOUS_IN_USE
    return following if not is_free or before_bytes == following - at else None


class ChunkWalk:
    """Walks the chunks of a heap.

    Args:
        words: Reads the process.
        span: The heap.
        tcache: The layout of the lists of a thread; None where threads have none.

    Attributes:
        count: The number of chunks so far.
        free: The free chunks: start and end of each in turn.
        tcaches: The chunks that may be the lists of a thread, up to a number.
        top_addr: The end of the chunks.
        is_closed: Whether malloc closed the heap there.
    """

    def __init__(self, words: ProcessWords, span: HeapSpan, tcache: TcacheLayout | None) -> None:
        self.count = 0
        self.free = array("Q")
        self.tcaches: list[int] = []
        self.top_addr = span.top_addr
        self.is_closed = False
        self._words = words
        self._span = span
        self._flags = span.chunk_flags
        self._tcache = tcache
        self._tcache_bytes = tcache.chunk_bytes(words.layout.word_bytes) if tcache else 0
        self._marked: list[int] = []
        # The words to the next chunk, by the sizes that say nothing else.
        self._plain_steps: dict[int, int] = {}

    def walk(self, most_count: int) -> None:
        """Walk from the first chunk to the last.

        Raises:
            MisfitError: If a size is none, if the chunks do not end where the heap ends, or if there are too many.
        """
        words, at, stop = self._words, self._span.first_addr, self._span.top_addr
        word, last, window_bytes = words.layout.word_bytes, at, _WINDOW_BYTES
        while at < stop:
            piece = words.of(words.memory.read(at, min(window_bytes, stop - at)))
            if len(piece) < 2:
                raise MisfitError(f"the chunk at {at:#x} is in a page that is not in memory")
            # Sizes are in the second word of a chunk.
            place, last = self._run(piece, at - word, last)
            if self._tcache:
                self._keep_tcaches(self._tcache, piece, at - word)
            at += (place - 1) * word
            # Behind a large block, little is read: most likely the next one is large, too.
            is_far = (place - len(piece)) * word > window_bytes
            window_bytes = _LEAST_WINDOW_BYTES if is_far else min(2 * window_bytes, _WINDOW_BYTES)
            if place < len(piece):
                if not self._is_fence(piece[place], at, stop):
                    raise MisfitError(f"the chunk at {at:#x} has no size that a chunk can have")
                if not piece[place] & _PREVIOUS_IN_USE:
                    self.free.extend((last, at))
                self.top_addr, self.is_closed = at, True
                return
            if self.count > most_count:
                raise MisfitError("it has more chunks than are read (with --findings up to 64 million)")
        if at == self._span.end_addr and self._span.is_last:
            # Meanwhile the last chunks were freed, and are what was never handed out.
            self.count, self.top_addr = self.count - 1, last
        elif at != stop or (self._span.is_open and not self._span.is_last):
            raise MisfitError(f"its chunks do not end at {stop:#x}")

    def _keep_tcaches(self, tcache: TcacheLayout, piece: "memoryview[int]", base: int) -> None:
        """Keep of the last marked chunks those that can be the lists of a thread, by what was read of them."""
        word, data = self._words.layout.word_bytes, piece.cast("B")
        for addr in self._marked:
            start = addr - base + word
            block = bytes(data[start : start + tcache.size_bytes(word)])
            is_right = addr == self._span.first_addr or may_have_lists(tcache, word, block)
            if is_right and len(self.tcaches) < _MOST_TCACHES:
                self.tcaches.append(addr)
        self._marked.clear()

    def _is_fence(self, size: int, at: int, stop: int) -> bool:
        """Return whether a chunk without contents closes the heap."""
        if self._span.is_open:
            return is_closed(self._words, at)
        return size & ~_FLAGS == self._words.header_bytes and at + ALIGNMENT >= stop

    def _run(self, piece: memoryview, base: int, last_addr: int) -> tuple[int, int]:
        """Walk the chunks whose sizes are in some words; return the place of the next size, and the last chunk.

        A million chunks take a tenth of a second: nothing may be added to this loop.
        """
        word, shift = self._words.layout.word_bytes, 1 if self._words.layout.word_bytes == 8 else 2
        in_use, least = self._flags | _PREVIOUS_IN_USE, 4 * word
        # Free chunks of a thread's arena need not say that they are of one.
        odd, marked = 14 & ~self._flags, self._tcache_bytes | in_use
        # A chunk may be longer by what is too little to be split off.
        longest = marked + ALIGNMENT
        free, place, last, steps = self.free, 1, (last_addr - base) // word, 0
        plain, plain_step = self._plain_steps, self._plain_steps.get
        try:
            for steps in range(len(piece)):  # noqa: B007 # how many there were
                size = piece[place]
                step = plain_step(size)
                if step is None:
                    if size & odd or size < least:
                        break
                    step = size >> 4 << shift
                    if not size & 1:
                        free.append(base + last * word)
                        free.append(base + place * word)
                    if marked <= size | in_use <= longest:
                        self._marked.append(base + place * word)
                    elif size & 15 == in_use and len(plain) < _MOST_PLAIN:
                        plain[size] = step
                last = place
                place += step
        except IndexError:
            pass  # behind this piece
        self.count += steps
        return place, base + last * word
