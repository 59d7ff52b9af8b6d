"""The chunks of a heap, one behind the other."""

from array import array
from typing import Final

from footprint.process.glibc.arenas import HeapSpan
from footprint.process.glibc.words import ALIGNMENT, MisfitError, ProcessWords

__all__ = ("ChunkWalk",)

_PREVIOUS_IN_USE, _IS_THREADS, _FLAGS = 1, 4, 7
_WINDOW_BYTES: Final = 1 << 17


class ChunkWalk:
    """Walks the chunks of a heap.

    Args:
        words: Reads the process.
        span: The heap.
        marked_bytes: A size of chunks whose addresses are wanted; 0 for none.

    Attributes:
        count: The number of chunks so far.
        free: The free chunks: start and end of each in turn.
        marked: The chunks of the wanted size.
        top_addr: The end of the chunks.
    """

    def __init__(self, words: ProcessWords, span: HeapSpan, marked_bytes: int) -> None:
        self.count = 0
        self.free = array("Q")
        self.marked: list[int] = []
        self.top_addr = span.top_addr
        self._words = words
        self._span = span
        self._flags = 0 if span.is_main else _IS_THREADS
        self._marked_bytes = marked_bytes

    def walk(self, most_count: int) -> None:
        """Walk from the first chunk to the last.

        Raises:
            MisfitError: If a size is none, if the chunks do not end where the heap ends, or if there are too many.
        """
        words, at, stop = self._words, self._span.first_addr, self._span.top_addr
        word, last = words.layout.word_bytes, at
        while at < stop:
            piece = words.of(words.memory.read(at, min(_WINDOW_BYTES, stop - at)))
            if len(piece) < 2:
                raise MisfitError(f"the chunk at {at:#x} is in a page that is not in memory")
            # Sizes are in the second word of a chunk.
            place, last = self._run(piece, at - word, last)
            at += (place - 1) * word
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
        odd, marked = 14 & ~self._flags, self._marked_bytes | in_use
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
                        self.marked.append(base + place * word)
                elif size == marked:
                    self.marked.append(base + place * word)
                last = place
                place += size >> 4 << shift
        except IndexError:
            pass  # behind this piece
        self.count += steps
        return place, base + last * word
