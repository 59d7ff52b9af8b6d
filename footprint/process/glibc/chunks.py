"""The chunks of a heap, one behind the other."""

from array import array
from typing import Final

from footprint.process.glibc.arenas import HeapSpan
from footprint.process.glibc.free_lists import TcacheLayout, may_have_lists
from footprint.process.glibc.words import ALIGNMENT, MisfitError, ProcessWords

__all__ = ("ChunkWalk",)

_PREVIOUS_IN_USE, _IS_THREADS, _FLAGS = 1, 4, 7
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
    """

    def __init__(self, words: ProcessWords, span: HeapSpan, tcache: TcacheLayout | None) -> None:
        self.count = 0
        self.free = array("Q")
        self.tcaches: list[int] = []
        self.top_addr = span.top_addr
        self._words = words
        self._span = span
        self._flags = 0 if span.is_main else _IS_THREADS
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
                return
            if self.count > most_count:
                raise MisfitError("it has more chunks than are read (with --findings up to 64 million)")
        if at == self._span.end_addr and self._span.is_last:
            # Meanwhile the last chunks were freed, and are what was never handed out.
            self.count, self.top_addr = self.count - 1, last
        elif at != stop:
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
        return size & ~_FLAGS == self._words.header_bytes and at + ALIGNMENT >= stop

    def _run(self, piece: memoryview, base: int, last_addr: int) -> tuple[int, int]:
        """Walk the chunks whose sizes are in some words; return the place of the next size, and the last chunk.

        A million chunks take an eighth of a second: nothing may be added to this loop.
        """
        word, shift = self._words.layout.word_bytes, 1 if self._words.layout.word_bytes == 8 else 2
        in_use, least = self._flags | _PREVIOUS_IN_USE, 4 * word
        # Free chunks of a thread's arena need not say that they are of one.
        odd, marked = 14 & ~self._flags, self._tcache_bytes | in_use
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
                    if size | in_use == marked:
                        self._marked.append(base + place * word)
                elif size == marked:
                    self._marked.append(base + place * word)
                last = place
                place += size >> 4 << shift
        except IndexError:
            pass  # behind this piece
        self.count += steps
        return place, base + last * word
