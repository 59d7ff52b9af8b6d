"""The whole heap of a process: all arenas, the free chunks in lists, and the large blocks."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from operator import attrgetter
from typing import Final

from footprint.members import NamedTuple
from footprint.process.glibc.arenas import (
    Arena,
    Arenas,
    HeapSpan,
    MappedCounts,
    find_arenas,
    find_mapped_blocks,
    mapped_counts,
)
from footprint.process.glibc.chunks import (
    TCACHE_OF_RANGES,
    TCACHES,
    ChunkWalk,
    FreeList,
    TcacheLayout,
    fastbin_lists,
    is_closed,
    likely_start,
    page_starts,
    tcache_lists,
    with_cached,
)
from footprint.process.glibc.words import (
    ALIGNMENT,
    LAYOUTS,
    HeapMemory,
    HeapRegion,
    LiveHeap,
    MappedBlock,
    MisfitError,
    ProcessWords,
)
from footprint.text.units import format_bytes

_FLAGS: Final = 7
_TRIES: Final = 6
_MOST_DATA_BYTES: Final = 4 << 20
_MOST_SPAN_BYTES: Final = 256 << 20
_MOST_TCACHES: Final = 1 << 12
_MOST_STARTS: Final = 1 << 12
_MOST_TRIED_STARTS: Final = 8
_MOST_SEARCHED_BYTES: Final = 4 << 30  # of addresses, for pieces of the main arena


def read_glibc_heap(
    memory: HeapMemory,
    word_bytes: int,
    data: Iterable[tuple[int, int]],
    nameless: Sequence[tuple[int, int]],
    *,
    brk: Sequence[tuple[int, int]] = (),
    page_bytes: int,
    most_chunks: int,
) -> LiveHeap | None:
    """Read the heap of a process; return None where nothing in its data is an arena of glibc that was used.

    The cost is linear in the number of chunks, and in the memory that they are in.

    Args:
        memory: Its memory.
        word_bytes: The size of a pointer.
        data: The writable data of its C library, each with start and end address.
        nameless: The mappings in which large blocks can be, in the same form.
        brk: The mappings of brk(2), in the same form.
        page_bytes: The size of a page.
        most_chunks: The number of chunks that are read at most.
    """
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    pieces = list(_pieces(words, data))
    arenas = find_arenas(words, pieces, page_bytes)
    if arenas is None:
        return None
    walker = _Walker(words, arenas, most_chunks, _Places(pieces, brk, nameless, page_bytes))
    causes: list[str] = []
    for addr in arenas.addrs:
        try:
            walker.add_arena(addr)
        except MisfitError as misfit:
            causes.append(str(misfit))
    apart = _apart(walker.regions)
    if len(apart) < len(walker.regions):
        causes.append("a heap of it lies in another one")
    regions, is_complete = with_cached(words, apart, walker.lists())
    if not is_complete:
        causes.append("its lists of free chunks are too long to follow: some of these chunks count as in use")
    counts = walker.counts()
    if counts is None and not walker.regions and not causes:
        # From 2.42 on also what no program uses is made at start.
        return None
    starts = {region.start_addr for region in regions}
    elsewhere = [span for span in nameless if span[0] not in starts]
    mapped = find_mapped_blocks(words, elsewhere, counts, page_bytes) if counts else ()
    mapped = tuple(block for block in mapped if not _is_in(regions, block))
    if counts is None:
        causes.append("the counts of blocks that malloc maps alone were not found")
    elif len(mapped) != counts.block_count:
        causes.append(f"of {counts.block_count:,} blocks that malloc maps alone {len(mapped):,} were found")
    elif (found_bytes := sum([block.end_addr - block.start_addr for block in mapped])) != counts.size_bytes and (
        arenas.has_fastbins
    ):
        sum_found = f"{format_bytes(found_bytes)} were found"
        causes.append(f"of {format_bytes(counts.size_bytes)} in blocks that malloc maps alone {sum_found}")
    return LiveHeap(
        "glibc", word_bytes, len(arenas.addrs), tuple(regions), mapped, tuple(causes), is_changing=walker.is_changing
    )


def _apart(regions: Iterable[HeapRegion]) -> list[HeapRegion]:
    """Sort heaps, and leave out those that begin in another one."""
    apart: list[HeapRegion] = []
    for region in sorted(regions):
        if not apart or apart[-1].end_addr <= region.start_addr:
            apart.append(region)
    return apart


def _is_in(regions: Sequence[HeapRegion], block: MappedBlock) -> bool:
    """Return whether a block lies in a heap; `regions` are ascending."""
    place = bisect_left(regions, block.end_addr, key=attrgetter("start_addr")) - 1
    return place >= 0 and regions[place].end_addr > block.start_addr


def _pieces(words: ProcessWords, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, memoryview]]:
    """Return what of some ranges is in memory, each piece with its address."""
    left_bytes = _MOST_DATA_BYTES
    for start, whole_end in ranges:
        end = min(whole_end, start + _MOST_SPAN_BYTES)
        at = words.memory.skip(start, end)
        while at < end and left_bytes > 0:
            data = words.memory.read(at, min(end - at, left_bytes))
            if not data:
                break
            yield at, words.of(data)
            left_bytes -= len(data)
            at = words.memory.skip(at + len(data), end)


class _Places(NamedTuple):
    """Where the heap may be: the data of the C library, and mappings."""

    data: list[tuple[int, memoryview]]
    brk: Sequence[tuple[int, int]]
    nameless: Sequence[tuple[int, int]]
    page_bytes: int


_Found = tuple[HeapRegion, list[tuple[int, list[FreeList]]]]


class _Walker:
    """Walks the heaps of all arenas.

    Attributes:
        regions: What is known of each heap, without the chunks in lists.
        is_changing: Whether an arena changed while its heaps were read.
    """

    def __init__(self, words: ProcessWords, arenas: Arenas, most_chunks: int, places: _Places) -> None:
        self.regions: list[HeapRegion] = []
        self.is_changing = False
        self._words = words
        self._arenas = arenas
        self._chunks_left = most_chunks
        self._tcache: TcacheLayout | None = None
        self._tcaches: list[tuple[int, list[FreeList]]] = []
        self._walked: list[int] = []
        self._places = places
        self._search_bytes_left = _MOST_SEARCHED_BYTES
        self._counts: MappedCounts | None = None

    def counts(self) -> MappedCounts | None:
        """Return what malloc counts of blocks that it maps alone, if it is where the heap begins."""
        if self._counts is None:
            with suppress(MisfitError):
                main = self._arenas.arena(self._arenas.addrs[0])
                start = self._arenas.heap_start(main) if main.system_bytes else 0
                self._counts = next(self._parameters([(start, start + 1)]), None)
        return self._counts

    def _parameters(self, heaps: Sequence[tuple[int, int]]) -> Iterator[MappedCounts]:
        page_bytes, header_bytes = self._places.page_bytes, self._words.header_bytes
        unit_bytes = page_bytes if self._arenas.has_fastbins else header_bytes
        return mapped_counts(self._words, self._places.data, heaps, page_bytes, unit_bytes)

    def add_arena(self, addr: int) -> None:
        """Read the heaps of an arena.

        Raises:
            MisfitError: If its chunks do not fit, also when it is tried again.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                before = self._arenas.arena(addr)
                walked = self._regions(before)
                after = self._arenas.arena(addr)
            except MisfitError:
                if not tries_left or self._chunks_left <= 0:
                    raise
                continue
            break
        for region, tcaches in walked:
            self.regions.append(region)
            self._tcaches += tcaches
        self._walked.append(addr)
        self.is_changing = self.is_changing or _state(before) != _state(after)

    def lists(self) -> Iterator[FreeList]:
        """Return the lists of free chunks, as they are now."""
        for addr in self._walked:
            with suppress(MisfitError):
                yield from fastbin_lists(self._words, self._arenas.arena(addr).fastbins)
        for addr, before in self._tcaches:
            now = self._tcache and tcache_lists(self._words, self._tcache, addr, may_be_empty=True)
            yield from now or before

    def _regions(self, arena: Arena) -> list[_Found]:
        try:
            return [self._region(span) for span in self._arenas.spans(arena)]
        except MisfitError:
            if arena.addr != self._arenas.addrs[0]:
                raise
            # It may be in pieces. What does not fit either is told of the heap as one piece.
            # It begins before all else that is in it.
            places = [*self._places.brk, *self._places.nameless]
            likely = sorted(islice(self._parameters(places), _MOST_STARTS), key=attrgetter("heap_addr"))
            for counts in likely[:_MOST_TRIED_STARTS]:
                # What began elsewhere may have looked like lists of another version.
                self._tcache = None
                with suppress(MisfitError):
                    regions = self._parted(arena, counts.heap_addr)
                    self._counts = counts
                    return regions
            self._tcache = None
            raise

    def _parted(self, main: Arena, start: int) -> list[_Found]:
        """Walk the main arena where it is in several pieces: those of the break, and those that are mapped instead.

        Raises:
            MisfitError: If the pieces do not add up to what the arena counts, with what is between those of the break.
        """
        pieces = list(self._pieces_of_break(main, start))
        regions = [region for region, _ in pieces]
        between_bytes = sum([after.start_addr - before.end_addr for before, after in pairwise(regions)])
        left_bytes = main.system_bytes - sum([region.end_addr - region.start_addr for region in regions])
        for mapping in self._places.nameless:
            if left_bytes <= between_bytes or self._search_bytes_left <= 0:
                break
            self._search_bytes_left -= mapping[1] - mapping[0]
            for piece in self._mapped_pieces(main, *mapping):
                pieces.append(piece)
                left_bytes -= piece[0].end_addr - piece[0].start_addr
        if not 0 <= left_bytes <= between_bytes or not any(region.is_last for region, _ in pieces):
            raise MisfitError("the pieces of the heap do not add up to what its arena counts")
        return pieces

    def _pieces_of_break(self, main: Arena, start: int) -> Iterator[_Found]:
        end = max([end for first, end in self._places.brk if first <= start], default=0)
        is_last = start <= main.top_addr < end
        stop, at = main.top_addr if is_last else end, self._words.aligned(start)
        while start < end:
            piece = self._open_piece(main, HeapSpan(start, at, stop, end, is_main=True, is_last=is_last))
            yield piece
            if piece[0].is_last:
                return
            following = likely_start(self._words, piece[0].end_addr, stop)
            if following is None and not is_last:
                return
            start = at = stop if following is None else following

    def _mapped_pieces(self, main: Arena, start: int, end: int) -> Iterator[_Found]:
        past = start
        for at in page_starts(self._words, start, end, self._places.page_bytes):
            if at < past:
                continue
            is_last = at <= main.top_addr < end
            page = at // self._places.page_bytes * self._places.page_bytes
            span = HeapSpan(page, at, main.top_addr if is_last else end, end, is_main=False, is_last=is_last)
            with suppress(MisfitError):
                piece = self._open_piece(main, span)
                past = piece[0].end_addr
                yield piece

    def _open_piece(self, main: Arena, span: HeapSpan) -> _Found:
        """Walk a piece that ends where malloc closed it, or with the last chunk of the arena."""
        end = self._arenas.top_end(main) if span.is_last else span.end_addr
        region, lists = self._region(span._replace(end_addr=end, is_open=True))
        if region.is_last:
            return region, lists
        closed, header_bytes = region.top_addr + 2 * self._words.header_bytes, self._words.header_bytes
        if is_closed(self._words, region.top_addr + header_bytes):
            # What was left was too small to be freed, and looks like a third one.
            closed += header_bytes
        past = -(-closed // self._places.page_bytes) * self._places.page_bytes
        if past - closed >= ALIGNMENT:
            raise MisfitError(f"the piece at {span.start_addr:#x} is closed inside of a page")
        return region._replace(end_addr=past, is_last=False), lists

    def _region(self, span: HeapSpan) -> _Found:
        """Walk the chunks of a heap; return it with the structures of threads in it."""
        word = self._words.layout.word_bytes
        if not self._arenas.has_fastbins:
            # From 2.43 on a thread allocates its lists when it first frees a block.
            self._tcache = TCACHE_OF_RANGES
        elif self._tcache is None and span.first_addr < span.top_addr:
            # The lists of a thread are the first that it allocates.
            first_bytes = self._words.read(span.first_addr + word, 1)[0] & ~_FLAGS
            self._tcache = next((layout for layout in TCACHES if layout.chunk_bytes(word) == first_bytes), None)
        layout = self._tcache
        walk = ChunkWalk(self._words, span, layout)
        try:
            walk.walk(self._chunks_left)
        finally:
            self._chunks_left -= walk.count
        tcaches: list[tuple[int, list[FreeList]]] = []
        for addr in walk.tcaches:
            lists = layout and tcache_lists(self._words, layout, addr, may_be_empty=addr == span.first_addr)
            if lists is not None and len(self._tcaches) + len(tcaches) < _MOST_TCACHES:
                tcaches.append((addr, lists))
        live_count = walk.count - len(walk.free) // 2 - len(tcaches)
        own_bytes = sum([self._words.read(addr + word, 1)[0] & ~_FLAGS for addr, _ in tcaches])
        region = HeapRegion(
            span.start_addr,
            span.first_addr,
            walk.top_addr,
            span.end_addr,
            span.is_main,
            span.is_last and not walk.is_closed,
            walk.free,
            (),
            (),
            own_bytes,
            live_count,
        )
        return region, tcaches


def _state(arena: Arena) -> tuple[int, int]:
    return arena.top_addr, arena.system_bytes
