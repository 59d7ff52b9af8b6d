"""The whole heap of a process: all arenas, the free chunks in lists, and the large blocks."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final, NamedTuple

from footprint.process.glibc.arenas import Arena, Arenas, HeapSpan, find_arenas
from footprint.process.glibc.chunks import ChunkWalk
from footprint.process.glibc.free_lists import (
    TCACHES,
    FreeList,
    TcacheLayout,
    fastbin_lists,
    tcache_lists,
    with_cached,
)
from footprint.process.glibc.mapped_blocks import MappedBlock, MappedCounts, find_mapped_blocks, mapped_counts
from footprint.process.glibc.regions import HeapRegion
from footprint.process.glibc.words import LAYOUTS, HeapMemory, MisfitError, ProcessWords
from footprint.units import format_bytes

__all__ = ("GlibcHeap", "read_glibc_heap")

_FLAGS: Final = 7
_TRIES: Final = 6
_MOST_DATA_BYTES: Final = 4 << 20
_MOST_SPAN_BYTES: Final = 256 << 20
_MOST_TCACHES: Final = 1 << 12


class GlibcHeap(NamedTuple):
    """The heap of a process.

    Attributes:
        word_bytes: The size of a pointer. Each chunk has a header of this size.
        arena_count: The number of arenas.
        regions: The memory of the arenas whose chunks could be read, ascending.
        mapped: The large blocks that malloc maps alone.
        causes: Why something could not be read, in sentences without full stops.
        is_changing: Whether the heap changed while it was read.
    """

    word_bytes: int
    arena_count: int
    regions: tuple[HeapRegion, ...]
    mapped: tuple[MappedBlock, ...]
    causes: tuple[str, ...]
    is_changing: bool


def read_glibc_heap(
    memory: HeapMemory,
    word_bytes: int,
    data: Iterable[tuple[int, int]],
    nameless: Iterable[tuple[int, int]],
    *,
    page_bytes: int,
    most_chunks: int,
) -> GlibcHeap | None:
    """Read the heap of a process; return None where nothing in its data is an arena of glibc that was used.

    The cost is linear in the number of chunks, and in the memory that they are in.

    Args:
        memory: Its memory.
        word_bytes: The size of a pointer.
        data: The writable data of its C library, each with start and end address.
        nameless: The mappings in which large blocks can be, in the same form.
        page_bytes: The size of a page.
        most_chunks: The number of chunks that are read at most.
    """
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    pieces = list(_pieces(words, data))
    arenas = find_arenas(words, pieces, page_bytes)
    if arenas is None:
        return None
    walker = _Walker(words, arenas, most_chunks)
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
    counts = _counts(words, arenas, pieces, page_bytes)
    starts = {one.start_addr for one in regions}
    elsewhere = [each for each in nameless if each[0] not in starts]
    mapped = find_mapped_blocks(words, elsewhere, counts, page_bytes) if counts else ()
    mapped = tuple(one for one in mapped if not _is_in(regions, one))
    if counts is None:
        causes.append("the counts of blocks that malloc maps alone were not found")
    elif len(mapped) != counts.block_count:
        causes.append(f"of {counts.block_count:,} blocks that malloc maps alone {len(mapped):,} were found")
    elif (found_bytes := sum([one.end_addr - one.start_addr for one in mapped])) != counts.size_bytes:
        found = f"{format_bytes(found_bytes)} were found"
        causes.append(f"of {format_bytes(counts.size_bytes)} in blocks that malloc maps alone {found}")
    return GlibcHeap(
        word_bytes, len(arenas.addrs), tuple(regions), mapped, tuple(causes), is_changing=walker.is_changing
    )


def _apart(regions: Iterable[HeapRegion]) -> list[HeapRegion]:
    """Sort heaps, and leave out those that begin in another one."""
    found: list[HeapRegion] = []
    for one in sorted(regions):
        if not found or found[-1].end_addr <= one.start_addr:
            found.append(one)
    return found


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


def _counts(
    words: ProcessWords, arenas: Arenas, data: Iterable[tuple[int, memoryview]], page_bytes: int
) -> MappedCounts | None:
    try:
        main = arenas.arena(arenas.addrs[0])
        return mapped_counts(words, data, arenas.heap_start(main), page_bytes)
    except MisfitError:
        return None


class _Walker:
    """Walks the heaps of all arenas.

    Attributes:
        regions: What is known of each heap, without the chunks in lists.
        is_changing: Whether an arena changed while its heaps were read.
    """

    def __init__(self, words: ProcessWords, arenas: Arenas, most_chunks: int) -> None:
        self.regions: list[HeapRegion] = []
        self.is_changing = False
        self._words = words
        self._arenas = arenas
        self._chunks_left = most_chunks
        self._tcache: TcacheLayout | None = None
        self._tcaches: list[tuple[int, list[FreeList]]] = []
        self._walked: list[int] = []

    def add_arena(self, addr: int) -> None:
        """Read the heaps of an arena.

        Raises:
            MisfitError: If its chunks do not fit, also when it is tried again.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                before = self._arenas.arena(addr)
                found = [self._region(span) for span in self._arenas.spans(before)]
                after = self._arenas.arena(addr)
            except MisfitError:
                if not tries_left or self._chunks_left <= 0:
                    raise
                continue
            break
        for region, tcaches in found:
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

    def _region(self, span: HeapSpan) -> tuple[HeapRegion, list[tuple[int, list[FreeList]]]]:
        """Walk the chunks of a heap; return it with the structures of threads in it."""
        word = self._words.layout.word_bytes
        if self._tcache is None and span.first_addr < span.top_addr:
            # The lists of a thread are the first that it allocates.
            first_bytes = self._words.read(span.first_addr + word, 1)[0] & ~_FLAGS
            self._tcache = next((one for one in TCACHES if one.chunk_bytes(word) == first_bytes), None)
        layout = self._tcache
        tcache_bytes = layout.chunk_bytes(word) if layout else 0
        walk = ChunkWalk(self._words, span, layout)
        try:
            walk.walk(self._chunks_left)
        finally:
            self._chunks_left -= walk.count
        tcaches: list[tuple[int, list[FreeList]]] = []
        for addr in walk.tcaches:
            own = layout and tcache_lists(self._words, layout, addr, may_be_empty=addr == span.first_addr)
            if own is not None and len(self._tcaches) + len(tcaches) < _MOST_TCACHES:
                tcaches.append((addr, own))
        live_count = walk.count - len(walk.free) // 2 - len(tcaches)
        own_bytes = len(tcaches) * tcache_bytes
        region = HeapRegion(*span, walk.free, (), (), own_bytes, live_count)
        return region._replace(top_addr=walk.top_addr), tcaches


def _state(arena: Arena) -> tuple[int, int]:
    return arena.top_addr, arena.system_bytes
