"""The chunks of a heap, one behind the other.

The pieces of the main arena, where its memory is not one: another caller moved the break, or it cannot rise.

malloc closes a piece with two chunks without contents, and nothing leads to the next one. Behind a break that another
caller moved it begins at any address. What is mapped instead, where the break cannot rise, begins with a page. A piece
is believed where its chunks lead to such an end, or to the last chunk of the arena.

Source: sysmalloc in malloc/malloc.c of glibc 2.26 to 2.43.
"""

from array import array
from collections.abc import Iterator
from typing import Final

from footprint.process.glibc.arenas import HeapSpan
from footprint.process.glibc.free_lists import TcacheLayout, may_have_lists
from footprint.process.glibc.words import ALIGNMENT, MisfitError, ProcessWords

_MOST_SEARCHED_BYTES: Final = 1 << 28
_MOST_HOPS: Final = 1 << 12
_MOST_CANDIDATES: Final = 1 << 12
_LEAST_ROW: Final = 16
_LEAST_INNER: Final = 2


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


_PREVIOUS_IN_USE, _FLAGS = 1, 7
_LEAST_WINDOW_BYTES: Final = 1 << 12
_WINDOW_BYTES: Final = 1 << 17
_MOST_TCACHES: Final = 1 << 14


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

        A million chunks take an eighth of a second: nothing may be added to this loop.
        """
        word, shift = self._words.layout.word_bytes, 1 if self._words.layout.word_bytes == 8 else 2
        in_use, least = self._flags | _PREVIOUS_IN_USE, 4 * word
        # Free chunks of a thread's arena need not say that they are of one.
        odd, marked = 14 & ~self._flags, self._tcache_bytes | in_use
        # A chunk may be longer by what is too little to be split off.
        longest = marked + ALIGNMENT
        free, place, last, steps = self.free, 1, (last_addr - base) // word, 0
        try:
            for steps in range(len(piece)):  # noqa: B007 # how many there were
                size = piece[place]
                if size & 15 != in_use or size < least:
                    if size & odd or size < least:
                        break
                    if not size & 1:
                        free.append(base + last * word)
                        free.append(base + place * word)
                    if marked <= size | in_use <= longest:
                        self._marked.append(base + place * word)
                elif marked <= size <= longest:
                    self._marked.append(base + place * word)
                last = place
                place += size >> 4 << shift
        except IndexError:
            pass  # behind this piece
        self.count += steps
        return place, base + last * word
