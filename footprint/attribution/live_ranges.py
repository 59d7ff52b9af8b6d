"""The memory of a live process cut by the structures in it: its heap, and the thread-local variables of its threads.

The structures of the allocator give ranges of addresses, the kernel the private pages. A byte of a private page is in
use or free by the range that it lies in, so the rows add up to what the kernel counts.

A thread has the block of each library that the program started with at the top of its stack, the first thread at the
start of the heap. The vector of the thread says where; the file of the library says which variables are in it.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from footprint.attribution.layout import ARENAS
from footprint.attribution.owned_range import LoadedObject, OwnedRange, RangeOwner, clip, divide
from footprint.elf.abi import PT_TLS
from footprint.elf.contents import Contents, SectionKind
from footprint.elf.symbols import Symbol
from footprint.members import NamedTuple
from footprint.model.heap_account import AllocatorAccount
from footprint.model.row import Attribution, Evidence, MemoryKind, Row, weakest
from footprint.process.glibc.words import HeapRegion, LiveHeap
from footprint.process.pages import PageRange, ranges_bytes
from footprint.ranges import Claim, Gap, Piece, partition

if TYPE_CHECKING:
    from footprint.process.live_memory import LinkEntry, LiveThreads

_IN_USE: Final = "[in use]"
"""The name of rows of blocks that the program has, with their headers and the structures of the allocator."""
FREE: Final = "[free]"
"""The name of rows of memory that the allocator has and the program does not use."""
HEAP: Final = "[heap]"
MUSL_HEAP: Final = "[musl heap]"
_MAPPED: Final = "[mapped blocks]"
_Addresses = tuple[int, int]


class _Free(NamedTuple):
    """Free ranges that do not touch each other: their starts and their ends, both ascending."""

    starts: Sequence[int]
    ends: Sequence[int]

    def within(self, start: int, end: int) -> "_Free":
        """Return the parts between two addresses."""
        first, past = bisect_right(self.ends, start), bisect_left(self.starts, end)
        starts, ends = self.starts[first:past], self.ends[first:past]
        if not starts or (starts[0] >= start and ends[-1] <= end):
            return _Free(starts, ends)
        starts, ends = array("Q", starts), array("Q", ends)
        starts[0], ends[-1] = max(start, starts[0]), min(end, ends[-1])
        return _Free(starts, ends)

    @property
    def size_bytes(self) -> int:
        """Return the sum of their sizes."""
        return sum(self.ends) - sum(self.starts)

    def page_counts(self, page_bytes: int) -> tuple[int, int]:
        """Return the number of pages that they touch, and of those that they cover."""
        touched = {start // page_bytes for start in self.starts}
        touched.update([(end - 1) // page_bytes for end in self.ends])
        between_count = whole_count = 0
        for start, end in zip(self.starts, self.ends, strict=True):
            if end - start >= page_bytes:
                between_count += max(0, (end - 1) // page_bytes - start // page_bytes - 1)
                whole_count += max(0, end // page_bytes - -(-start // page_bytes))
        return len(touched) + between_count, whole_count


class HeapRanges:
    """The ranges of a heap that was read.

    Args:
        heap: The heap.
        page_bytes: The size of a page.
    """

    def __init__(self, heap: LiveHeap, page_bytes: int) -> None:
        self._heap = heap
        self._page_bytes = page_bytes
        self._starts = [region.start_addr for region in heap.regions]
        self._free = [_free(region) for region in heap.regions]

    def cut(self, ranges: Iterable[OwnedRange]) -> tuple[OwnedRange, ...]:
        """Cut ranges where the allocator has memory: these parts are its own, whatever they look like."""
        claims = self._claims
        starts = [claim.start for claim in claims]
        cut_ranges: list[OwnedRange] = []
        for part in ranges:
            first = max(0, bisect_right(starts, part.start_addr) - 1)
            inner = claims[first : bisect_right(starts, part.end_addr - 1)]
            if (
                part.loaded is not None
                or not part.mapping.is_mapped_writable
                or not inner
                or inner[-1].end <= part.start_addr
            ):
                cut_ranges.append(part)
                continue
            cut_ranges += divide(part, inner)
        return tuple(cut_ranges)

    def rows(self, part: OwnedRange, private: Sequence[PageRange], whole: Row) -> list[Row]:
        """Divide the row of a range of `cut` into what is in use and what is free; `private` are its private pages."""
        free, page_bytes = self._free_in(part), self._page_bytes
        page_count = sum([-(-end // page_bytes) - start // page_bytes for start, end, _ in private])
        private_free = [free.within(start, end) for start, end, _ in private]
        counts = [free_ranges.page_counts(page_bytes) for free_ranges in private_free]
        touched_count, whole_count = (sum([pair[number] for pair in counts]) for number in (0, 1))
        in_use = whole._replace(
            name=_IN_USE,
            bytes=ranges_bytes(private) - sum([free_ranges.size_bytes for free_ranges in private_free]),
            mapped_bytes=part.size_bytes - free.size_bytes,
            pages=page_count - whole_count,
            sole_pages=page_count - touched_count,
            evidence=weakest((whole.evidence, Evidence.DERIVED)),
        )
        unused = in_use._replace(
            name=FREE,
            bytes=sum([free_ranges.size_bytes for free_ranges in private_free]),
            mapped_bytes=free.size_bytes,
            shared_bytes=None if whole.shared_bytes is None else 0,
            pages=touched_count,
            sole_pages=whole_count,
        )
        return [in_use, unused] if free.starts else [in_use]

    def _free_in(self, part: OwnedRange) -> _Free:
        place = bisect_right(self._starts, part.start_addr) - 1
        if place < 0 or part.start_addr >= self._heap.regions[place].end_addr:
            return _Free((), ())
        return self._free[place].within(part.start_addr, part.end_addr)

    def account(self, ranges: Iterable[OwnedRange], pages: Dict[int, Sequence[PageRange]]) -> AllocatorAccount:
        """Add up the heap; `ranges` are those of `cut`, `pages` the private pages by the start of their mapping."""
        heap = self._heap
        private: list[PageRange] = []
        for span in ranges:
            if span.attribution is Attribution.ALLOCATOR:
                private += clip(pages.get(span.mapping.start_addr, ()), span.start_addr, span.end_addr)
        trimmed = sorted(_trimmable(heap, self._page_bytes))
        trimmable = _Free([start for start, _ in trimmed], [end for _, end in trimmed])
        mapped_bytes = sum([block.end_addr - block.start_addr for block in heap.mapped])
        usable_bytes = sum([block.usable_bytes for block in heap.mapped])
        held_bytes = sum([region.end_addr - region.start_addr for region in heap.regions]) + mapped_bytes
        cached_bytes = sum([_size(region.fast) + _size(region.cached) for region in heap.regions])
        live_count = sum([region.live_count for region in heap.regions])
        free_bytes = sum([free_ranges.size_bytes for free_ranges in self._free])
        structure_bytes = sum([_structure_bytes(region) for region in heap.regions])
        overhead_bytes = structure_bytes + heap.header_bytes * live_count + mapped_bytes - usable_bytes
        return AllocatorAccount(
            allocator=heap.allocator,
            arena_count=heap.arena_count,
            live_block_count=live_count + len(heap.mapped),
            live_bytes=held_bytes - free_bytes - overhead_bytes,
            overhead_bytes=overhead_bytes,
            free_bytes=free_bytes,
            held_bytes=held_bytes,
            cached_bytes=cached_bytes,
            mapped_block_count=len(heap.mapped),
            mapped_block_bytes=mapped_bytes,
            free_private_bytes=sum([_private_bytes(free_ranges, private) for free_ranges in self._free]),
            trimmable_bytes=_private_bytes(trimmable, private),
            unread=heap.causes,
        )

    @cached_property
    def _claims(self) -> list[Claim[RangeOwner | None]]:
        elsewhere = ARENAS if self._heap.allocator == "glibc" else MUSL_HEAP
        heap, arenas, blocks = [
            RangeOwner(owner, MemoryKind.HEAP, Attribution.ALLOCATOR) for owner in (HEAP, elsewhere, _MAPPED)
        ]
        claims: list[Claim[RangeOwner | None]] = [
            Claim(r.start_addr, r.end_addr, heap if r.is_main else arenas) for r in self._heap.regions
        ]
        mapped: list[list[int]] = []
        for start, end, _ in sorted(self._heap.mapped):
            if mapped and mapped[-1][1] == start:
                mapped[-1][1] = end
            else:
                mapped.append([start, end])
        claims += [Claim(start, end, blocks) for start, end in mapped]
        return sorted(claims, key=lambda claim: claim.start)


def _size(flat: Sequence[int]) -> int:
    return sum(flat[1::2]) - sum(flat[::2])


def _structure_bytes(region: HeapRegion) -> int:
    """Return what the allocator has for itself: before the chunks, in some of them, and what closes a full heap."""
    closing_bytes = 0 if region.is_last else region.end_addr - region.top_addr
    return region.first_addr - region.start_addr + region.own_bytes + closing_bytes


def _free(region: HeapRegion) -> _Free:
    """Return the free ranges of a region."""
    behind = (region.top_addr, region.end_addr) if region.is_last else ()
    return _joined(region.binned, region.fast, region.cached, behind)


def _joined(*lists: Sequence[int]) -> _Free:
    """Join neighbours among disjoint ranges; each list has start and end of each range in turn."""
    # Starts and ends are sorted apart: the ranges are disjoint. Tuples of millions would take too much memory.
    starts = sorted([start for flat in lists for start in flat[::2]])
    ends = sorted([end for flat in lists for end in flat[1::2]])
    return _Free(
        array("Q", [start for start, before in zip(starts, chain((-1,), ends), strict=False) if start != before]),
        array("Q", [end for end, after in zip(ends, chain(starts[1:], (-1,)), strict=False) if end != after]),
    )


def _private_bytes(free: _Free, private: Iterable[PageRange]) -> int:
    """Add up what of some ranges is in private pages."""
    return sum([free.within(start, end).size_bytes for start, end, _ in private])


def _trimmable(heap: LiveHeap, page_bytes: int) -> Iterator[_Addresses]:
    """Find the whole pages that malloc_trim(0) returns: in free chunks but their first words, and at the end of brk.

    Source: mtrim and systrim in malloc/malloc.c. It joins the chunks of fastbins with their neighbours first. What
    threads keep, and the end of the heaps of threads, stays.
    """
    links_bytes, least_bytes = 6 * heap.header_bytes, 4 * heap.header_bytes
    for region in heap.regions if heap.allocator == "glibc" else ():
        top_addr = region.top_addr
        for start, end in zip(*_joined(region.binned, region.fast), strict=True):
            if region.is_last and end == region.top_addr:
                top_addr = start
                continue
            first = -(-(start + links_bytes) // page_bytes) * page_bytes
            if first + page_bytes <= end:
                yield first, end // page_bytes * page_bytes
        past_bytes = (region.end_addr - top_addr - least_bytes - 1) // page_bytes * page_bytes
        if region.is_main and region.is_last and past_bytes > 0:
            yield region.end_addr - past_bytes, region.end_addr


_Variable = tuple[str | None, str | None, str]


class ThreadRanges:
    """The thread-local blocks of a process.

    Args:
        threads: Where the blocks are.
        ranges: The ranges of the process, which tell whose they are.
    """

    def __init__(self, threads: "LiveThreads", ranges: Sequence[OwnedRange]) -> None:
        modules = _modules(threads.entries, ranges)
        claims = [claim for v in threads.vectors for claim in _claims(v.tcb_addr, v.block_addrs, modules)]
        self._claims = sorted(claims, key=lambda claim: claim.start)
        self._starts = [claim.start for claim in self._claims]

    def cut(self, ranges: Sequence[OwnedRange]) -> tuple[OwnedRange, ...]:
        """Cut ranges where a thread has its variables: these parts are the library's."""
        cut_ranges: list[OwnedRange] = []
        for part in ranges:
            first = bisect_right(self._starts, part.start_addr - 1)
            inner = self._claims[first : bisect_right(self._starts, part.end_addr - 1)]
            if not inner or part.loaded is not None or inner[-1].end > part.end_addr:
                cut_ranges.append(part)
                continue
            cut_ranges += divide(part, inner)
        return tuple(cut_ranges)


def thread_rows(
    block: OwnedRange, contents: Contents | None, private: Sequence[PageRange], whole: Row, page_bytes: int
) -> list[Row]:
    """Divide the row of a block among the variables of its library; `private` are its private pages.

    The mapped bytes of the rows add up to the block, the private bytes to `private`.
    """
    evidence = weakest((whole.evidence, Evidence.DERIVED))
    tls = block.loaded.image.segment(PT_TLS) if block.loaded and block.loaded.image else None
    if contents is None or tls is None:
        return [whole._replace(evidence=evidence)]
    claims: list[Claim[_Variable]] = []
    for part in contents.sections:
        if part.kind is SectionKind.TLS:
            start_addr = block.start_addr + part.section.vaddr - tls.vaddr
            for start, end, owner in part.ranges.pieces:
                symbol, name = (owner.name, owner.name) if isinstance(owner, Symbol) else (None, owner.label)
                # The file has the first contents of .tdata in a section of that name, which has rows of its own.
                place = f"{part.section.name} of threads"
                claims.append(Claim(start_addr + start, start_addr + end, (place, symbol, name)))
    rows = []
    for start, end, (section, symbol, name) in partition(block.start_addr, block.end_addr, claims, _padding).pieces:
        runs = [(max(first, start), min(past, end)) for first, past, _ in private if first < end and start < past]
        rows.append(
            whole._replace(
                section=section,
                symbol=symbol,
                name=name,
                bytes=sum([past - first for first, past in runs]),
                mapped_bytes=end - start,
                shared_bytes=None if whole.shared_bytes is None else 0,
                pages=sum([-(-past // page_bytes) - first // page_bytes for first, past in runs]),
                sole_pages=sum([max(0, past // page_bytes - -(-first // page_bytes)) for first, past in runs]),
                relocated_bytes=0,
                evidence=evidence,
            )
        )
    return rows


def _padding(gap: Gap[_Variable]) -> list[Piece[_Variable]]:
    return [Piece(gap.start, gap.end, (None, None, "[padding between sections]"))]


def _modules(entries: "Sequence[LinkEntry]", ranges: Sequence[OwnedRange]) -> dict[int, LoadedObject]:
    """Return the objects that have thread-local variables by the number of their module, as far as it is known."""
    starts = [span.start_addr for span in ranges]
    objects: dict[int, LoadedObject] = {}
    for entry in entries:
        addr = entry.section_addr
        part = ranges[max(0, bisect_right(starts, addr) - 1)]
        # The vdso has no file and no thread-local variables.
        if part.loaded is None or part.loaded.image is None or not part.start_addr <= addr < part.end_addr:
            continue
        tls = part.loaded.image.segment(PT_TLS)
        if tls is not None and tls.memory_bytes:
            number = entry.module_number(tls.vaddr, tls.file_bytes, tls.memory_bytes, tls.align)
            if number is not None:
                objects[number] = part.loaded
    return objects


def _claims(
    tcb_addr: int, block_addrs: Sequence[int | None], modules: Dict[int, LoadedObject]
) -> Iterator[Claim[RangeOwner | None]]:
    """Return the blocks of one thread, if they fit the files: aligned, below the control block, and apart."""
    claims: list[Claim[RangeOwner | None]] = []
    for number, addr in enumerate(block_addrs, 1):
        loaded = modules.get(number)
        tls = loaded.image.segment(PT_TLS) if loaded and loaded.image else None
        if addr is None or loaded is None or tls is None:
            continue
        if (addr - tls.vaddr) % max(tls.align, 1) or addr + tls.memory_bytes > tcb_addr:
            return
        owner = RangeOwner(loaded.key.name, MemoryKind.TLS, Attribution.THREAD_VECTOR, loaded)
        claims.append(Claim(addr, addr + tls.memory_bytes, owner))
    claims.sort(key=lambda claim: claim.start)
    if all(claim.end <= behind.start for claim, behind in pairwise(claims)):
        yield from claims
