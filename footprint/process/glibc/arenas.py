"""The arenas of malloc: `main_arena` in the data of the C library, and those of threads, which lead to their heaps."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from footprint.process.glibc.words import ArenaLayout, MisfitError, ProcessWords

_BIN_WORDS: Final = 254  # two for each of 127 bins
_BINMAP_BYTES: Final = 16
_PREVIOUS_IN_USE, _FLAGS = 1, 7
_HEAP_ALIGNMENT: Final = 1 << 20
_MOST_ODD_BINS: Final = 2  # a list that changes right now
_MOST_ARENAS: Final = 1 << 12
_MOST_HEAPS: Final = 1 << 16
_MOST_SEARCHED: Final = 1 << 8


class Arena(NamedTuple):
    """One arena.

    Attributes:
        addr: Where it is.
        fastbins: The first chunk of each fastbin, or 0.
        top_addr: The last chunk of its last heap, which was never handed out.
        next_addr: The next arena of the ring.
        system_bytes: What it has from the kernel.
    """

    addr: int
    fastbins: tuple[int, ...]
    top_addr: int
    next_addr: int
    system_bytes: int


class HeapSpan(NamedTuple):
    """The chunks of a heap: see `HeapRegion`.

    Attributes:
        chunk_flags: The flag of a size that each chunk in use has (NON_MAIN_ARENA), or 0.
        is_open: Whether its end is not known, and is at most `end_addr`.
    """

    start_addr: int
    first_addr: int
    top_addr: int
    end_addr: int
    is_main: bool
    is_last: bool
    chunk_flags: int = 0
    is_open: bool = False


def find_arenas(words: ProcessWords, data: Iterable[tuple[int, memoryview]], page_bytes: int) -> "Arenas | None":
    """Find the arenas by the empty bins of `main_arena`, which point to themselves; return None where there is none.

    Args:
        words: Reads the process.
        data: Pieces of the data of its C library, each with its address.
        page_bytes: The size of a page.
    """
    word, tries = words.layout.word_bytes, _MOST_SEARCHED
    for addr, piece in data:
        first_addr, last = addr - words.header_bytes, -_BIN_WORDS
        pairs = enumerate(pairwise(piece))
        fitting = [place for place, (first, other) in pairs if first == other == first_addr + place * word]
        for place in fitting:
            # All empty bins of one arena lead to the same start: the next ones need no search.
            if place - last < _BIN_WORDS or not tries:
                continue
            last, tries = place, tries - 1
            for before in range(0, min(place + 1, _BIN_WORDS), 2):
                bins_addr = addr + (place - before) * word
                for layout in words.layout.arenas:
                    arenas = Arenas(words, bins_addr - layout.bins_offset, layout, page_bytes)
                    if arenas.addrs:
                        return arenas
    return None


class Arenas:
    """Reads arenas and their heaps.

    Args:
        words: Reads the process.
        main_addr: Where `main_arena` may be.
        layout: How it begins.
        page_bytes: The size of a page.

    Attributes:
        addrs: All arenas, the main one first; none where there is no arena at `main_addr`.
        has_fastbins: Whether they have fastbins, as up to 2.42.
    """

    def __init__(self, words: ProcessWords, main_addr: int, layout: ArenaLayout, page_bytes: int) -> None:
        self._words = words
        self._bins_offset, self._fastbin_count = layout
        self.has_fastbins = layout.fastbin_count > 0
        self._page_bytes = page_bytes
        try:
            self.addrs = self._ring(main_addr)
        except MisfitError:
            self.addrs = []

    def _ring(self, main_addr: int) -> list[int]:
        addrs = [main_addr]
        at = self.arena(main_addr).next_addr
        while at != main_addr:
            if len(addrs) >= _MOST_ARENAS:
                raise MisfitError("the arenas are no ring")
            self._info_bytes(at)
            addrs.append(at)
            at = self.arena(at).next_addr
        return addrs

    def arena(self, addr: int) -> Arena:
        """Read an arena.

        Raises:
            MisfitError: If its bins are no lists, or its counts contradict each other.
        """
        word = self._words.layout.word_bytes
        # The fastbins, the last chunk and the last remainder are before the bins, a map of them and counts behind.
        before, behind = self._fastbin_count + 2, _BIN_WORDS + _BINMAP_BYTES // word
        bins_addr = addr + self._bins_offset
        numbers = self._words.read(bins_addr - before * word, before + behind + 5)
        bin_addr, odd_count = bins_addr - 2 * word, 0
        for place in range(before, before + _BIN_WORDS, 2):
            first, last = numbers[place], numbers[place + 1]
            odd_count += (first == bin_addr) is not (last == bin_addr)
            if not first or not last or (first | last) % word or odd_count > _MOST_ODD_BINS:
                raise MisfitError(f"the arena at {addr:#x} has a bin that is no list")
            bin_addr += 2 * word
        next_addr, _, _, system_bytes, most_bytes = numbers[before + behind :]
        if system_bytes > most_bytes:
            raise MisfitError(f"the arena at {addr:#x} has more memory than it ever had")
        fastbins, top_addr = tuple(numbers[: self._fastbin_count]), numbers[self._fastbin_count]
        return Arena(addr, fastbins, top_addr, next_addr, system_bytes)

    def spans(self, arena: Arena) -> list[HeapSpan]:
        """Return the heaps of an arena.

        Raises:
            MisfitError: If they do not add up to what it counts.
        """
        return list(self._main_span(arena)) if arena.addr == self.addrs[0] else list(self._spans(arena))

    def heap_start(self, main: Arena) -> int:
        """Compute where the heap of brk(2) begins, if it is one piece: it ends with its last chunk.

        Raises:
            MisfitError: If the last chunk is none, or if it cannot be one piece.
        """
        start = self.top_end(main) - main.system_bytes
        if not 0 < start <= main.top_addr:
            raise MisfitError("the heap does not end where its last chunk ends")
        return start

    def top_end(self, main: Arena) -> int:
        """Return the end of the last chunk of the main arena.

        Raises:
            MisfitError: If it is none.
        """
        size = self._words.read(main.top_addr + self._words.layout.word_bytes, 1)[0]
        end = main.top_addr + (size & ~_FLAGS)
        if not size & _PREVIOUS_IN_USE or end % self._page_bytes or end <= main.top_addr:
            raise MisfitError("the heap does not end where its last chunk ends")
        return end

    def _main_span(self, arena: Arena) -> Iterator[HeapSpan]:
        if arena.system_bytes:
            start = self.heap_start(arena)
            yield HeapSpan(
                start,
                self._words.aligned(start),
                arena.top_addr,
                start + arena.system_bytes,
                is_main=True,
                is_last=True,
            )

    def _spans(self, arena: Arena) -> Iterator[HeapSpan]:
        """Return the heaps of the arena of a thread, from the last to the first, which has the arena in it."""
        word = self._words.layout.word_bytes
        info_bytes = self._info_bytes(arena.addr)
        at, left_bytes, top_addr = self._last_heap(arena), arena.system_bytes, arena.top_addr
        seen: set[int] = set()
        while at not in seen and len(seen) < _MOST_HEAPS and not at % _HEAP_ALIGNMENT:
            seen.add(at)
            owner, before_addr, size_bytes = self._words.read(at, 3)
            left_bytes -= size_bytes
            if owner != arena.addr or not size_bytes or size_bytes % self._page_bytes or left_bytes < 0:
                break
            is_first, end = not before_addr, at + size_bytes
            if is_first and (at != arena.addr - info_bytes or left_bytes):
                break
            first = at + info_bytes
            if is_first:
                first = arena.addr + self._bins_offset + (_BIN_WORDS + 5) * word + _BINMAP_BYTES
            is_last = at <= top_addr < end
            # Two chunks without contents close a heap that another one follows.
            stop = top_addr if is_last else end - 16
            yield HeapSpan(at, self._words.aligned(first), stop, end, is_main=False, is_last=is_last, chunk_flags=4)
            if is_first:
                return
            at = before_addr
        raise MisfitError(f"the heaps of the arena at {arena.addr:#x} do not add up to what it counts")

    def _last_heap(self, arena: Arena) -> int:
        """Return the heap with the last chunk of an arena, which ends where this chunk ends."""
        word = self._words.layout.word_bytes
        size = self._words.read(arena.top_addr + word, 1)[0] & ~_FLAGS
        for most_bytes in self._words.layout.heap_sizes:
            at = arena.top_addr & -most_bytes
            try:
                owner, _, size_bytes = self._words.read(at, 3)
            except MisfitError:
                continue
            if owner == arena.addr and at + size_bytes == arena.top_addr + size and size_bytes <= most_bytes:
                return at
        raise MisfitError(f"no heap of the arena at {arena.addr:#x} ends where its last chunk ends")

    def _info_bytes(self, addr: int) -> int:
        """Return the size of the structure before the arena of a thread, which leads to the arena.

        Raises:
            MisfitError: If there is none.
        """
        for size_bytes in self._words.layout.info_bytes:
            start = addr - size_bytes
            if start % _HEAP_ALIGNMENT == 0 and self._words.read(start, 1)[0] == addr:
                return size_bytes
        raise MisfitError(f"nothing before the arena at {addr:#x} leads to it")
