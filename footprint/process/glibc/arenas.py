"""What malloc has from the kernel: arenas with their heaps, and the large blocks that it maps alone.

`main_arena` is in the data of the C library; it leads to the arenas of threads, and these to their heaps.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from footprint.members import NamedTuple
from footprint.process.glibc.words import ALIGNMENT, ArenaLayout, MappedBlock, MisfitError, ProcessWords

_BIN_WORDS: Final = 254  # two for each of 127 bins
_BINMAP_BYTES: Final = 16
_PREVIOUS_IN_USE, _FLAGS = 1, 7
_HEAP_ALIGNMENT: Final = 1 << 20
_MOST_ODD_BINS: Final = 2  # a list that changes right now
_MOST_ARENAS: Final = 1 << 12
_MOST_HEAPS: Final = 1 << 16
_MOST_SEARCHED: Final = 1 << 8


_IS_MAPPED: Final = 2
_COUNTS_BYTES: Final = 16  # number now, most allowed, most so far, whether the threshold is fixed
_WINDOW_BYTES: Final = 1 << 17
_MOST_SEARCHED_BYTES: Final = 1 << 30
_MOST_SPAN_BYTES: Final = 16 << 30
_MOST_ALIGNED_BITS: Final = 31


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


class MappedCounts(NamedTuple):
    """What malloc counts of these blocks: their number, and the size of their mappings.

    Attributes:
        size_bytes: From 2.43 on it is at least as much: each block that mremap(2) has resized adds two words to it.
        heap_addr: Where the heap begins, or what was mapped first instead.
    """

    block_count: int
    size_bytes: int
    heap_addr: int


def mapped_counts(
    words: ProcessWords,
    data: Iterable[tuple[int, memoryview]],
    heaps: Sequence[tuple[int, int]],
    page_bytes: int,
    unit_bytes: int,
) -> Iterator[MappedCounts]:
    """Find what may be the counts in `mp_`, which ends with the start of the heap and has them before.

    Args:
        words: Reads the process.
        data: Pieces of the data of its C library, each with its address.
        heaps: Where the heap may begin, from and to; 0 for a heap that has not begun.
        page_bytes: The size of a page.
        unit_bytes: What the counted size is a multiple of; less than a page where it may be too large.
    """
    word = words.layout.word_bytes
    # From 2.35 on the counts of 64 bits begin in the middle of a word.
    gaps = (4, 0) if word == 8 else (0,)
    least, most = min([start for start, _ in heaps], default=0), max([end for _, end in heaps], default=0)
    for _, piece in data:
        raw = piece.cast("B")
        # Before the heap begins, its start is 0, as are many words: then there are counts only with blocks.
        for place in [
            place for place, value in enumerate(piece) if least <= value < most and (value or piece[place - 1])
        ]:
            if not _is_within(piece[place], heaps):
                continue
            for gap in gaps:
                at = (place - 2) * word - gap - _COUNTS_BYTES
                if at < 0:
                    continue
                count, _, most_count, is_fixed = raw[at : at + _COUNTS_BYTES].cast("i")
                size_bytes, most_bytes = piece[place - 2], piece[place - 1]
                is_right = 0 <= count <= most_count and is_fixed in {0, 1} and size_bytes <= most_bytes
                is_right = is_right and bool(most_count) is bool(most_bytes) and size_bytes % unit_bytes == 0
                is_right = is_right and count * page_bytes <= size_bytes and most_count * page_bytes <= most_bytes
                # What was counted too much stays when all are freed.
                is_right = is_right and (count > 0 or not size_bytes or unit_bytes < page_bytes)
                if is_right and (piece[place] or size_bytes):
                    yield MappedCounts(count, size_bytes, piece[place])


def _is_within(addr: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(start <= addr < end for start, end in ranges)


def find_mapped_blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], counts: MappedCounts, page_bytes: int
) -> tuple[MappedBlock, ...]:
    """Find the blocks by their headers; return none if they are more than malloc counts.

    Blocks of neighbouring mappings lie one behind the other. `mappings` are those where blocks can be.
    """
    blocks = tuple(_blocks(words, mappings, counts.block_count, page_bytes))
    return blocks if sum([block.end_addr - block.start_addr for block in blocks]) <= counts.size_bytes else ()


def _blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], count: int, page_bytes: int
) -> Iterator[MappedBlock]:
    """Find blocks from the start of each mapping on; where these are not all, search the rest page by page."""
    rests = []
    for start, end in mappings:
        at = start
        while count and (block := _block_at(words, at, end, page_bytes)):
            count, at = count - 1, block.end_addr
            yield block
        rests.append((at, end))
    bytes_left, span_left = _MOST_SEARCHED_BYTES, _MOST_SPAN_BYTES
    for start, whole_end in rests:
        if not count:
            return
        # Reservations may be of terabytes: also to look for a page that is there takes time.
        end = min(whole_end, start + span_left)
        span_left -= end - start
        at = words.memory.skip(start, end)
        while count and bytes_left > 0 and at < end:
            page = _likely_page(words, at, end, page_bytes)
            bytes_left -= page - at + page_bytes
            block = _block_at(words, page, whole_end, page_bytes)
            if block:
                count -= 1
                yield block
            at = words.memory.skip(block.end_addr if block else page + page_bytes, end)


def _likely_page(words: ProcessWords, at: int, end: int, page_bytes: int) -> int:
    """Return the first page that may begin with the header of a block, or the last one that was looked at."""
    word, start = words.layout.word_bytes, at - at % page_bytes
    numbers = words.of(words.memory.read(start, min(_WINDOW_BYTES, end - start)))
    sizes = numbers[(ALIGNMENT - words.header_bytes) // word + 1 :: page_bytes // word].tolist()
    place = next((place for place, size in enumerate(sizes) if size & _FLAGS == _IS_MAPPED), len(sizes) - 1)
    return start + max(0, place) * page_bytes


def _block_at(words: ProcessWords, page: int, end: int, page_bytes: int) -> MappedBlock | None:
    """Return the block whose mapping begins at a page."""
    lead_bytes = ALIGNMENT - words.header_bytes
    chunk = words.of(words.memory.read(page + lead_bytes, words.header_bytes)) if page < end else ()
    if len(chunk) < 2 or chunk[0] != lead_bytes or chunk[1] & _FLAGS != _IS_MAPPED:
        return None
    chunk_end = page + lead_bytes + (chunk[1] & ~_FLAGS)
    # From 2.43 on two words are behind the chunk, of which the block has the first.
    rest_bytes = words.header_bytes if (chunk_end + words.header_bytes) % page_bytes == 0 else 0
    past = chunk_end + rest_bytes
    if past % page_bytes or not page < past <= end:
        return None
    header = _moved_header(words, page, chunk_end, page_bytes)
    return MappedBlock(page, past, chunk_end - header - words.header_bytes + rest_bytes // 2)


def _moved_header(words: ProcessWords, start: int, past: int, page_bytes: int) -> int:
    """Return where the header of a block is: an alignment that was asked for moves it, and leaves the first one behind.

    It is before the first aligned address that leaves room for a free chunk, or before the next one.
    """
    header_bytes = words.header_bytes
    usual = start + ALIGNMENT - header_bytes
    first_page = words.memory.read(start, page_bytes)
    is_written = any(first_page[usual - start + header_bytes :])
    for power in range(ALIGNMENT.bit_length(), _MOST_ALIGNED_BITS):
        alignment = 1 << power
        aligned = -(-(usual + header_bytes) // alignment) * alignment
        for header in (aligned - header_bytes, aligned + alignment - header_bytes):
            if header >= start + page_bytes and is_written:
                # What is before a moved block was never written.
                return usual
            if not usual < header < past - header_bytes:
                continue
            data = words.memory.read(header, header_bytes)
            if len(data) == header_bytes:
                before_bytes, size = words.of(data)
                if before_bytes == header - start and size == past - header | _IS_MAPPED:
                    return header
    return usual
