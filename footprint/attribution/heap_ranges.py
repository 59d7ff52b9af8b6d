"""The heap of a process cut by what its allocator says: which of its private bytes are in use, and which are free.

The structures of the allocator give ranges of addresses, the kernel the private pages. A byte of a private page is in
use or free by the range that it lies in, so the rows add up to what the kernel counts.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from functools import cached_property
from typing import Final, NamedTuple

from footprint.attribution.owned_range import OwnedRange, clip
from footprint.model.allocator_account import AllocatorAccount
from footprint.model.evidence import Evidence, weakest
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.process import PageRange, ranges_bytes
from footprint.process.glibc import GlibcHeap, HeapRegion
from footprint.ranges import Claim, Gap, Piece, partition

__all__ = ("FREE", "HeapRanges")

_IN_USE: Final = "[in use]"
"""The name of rows of blocks that the program has, with their headers and the structures of the allocator."""
FREE: Final = "[free]"
"""The name of rows of memory that the allocator has and the program does not use."""
_HEAP: Final = "[heap]"
_ARENAS: Final = "[malloc arenas]"
_MAPPED: Final = "[mapped blocks]"
_Addresses = tuple[int, int]


class _Split(NamedTuple):
    """The free part of a range.

    Attributes:
        private_bytes: What of it is in private pages.
        mapped_bytes: All of it, touched or not.
        mixed_pages: The number of private pages of which a part is free.
        whole_pages: The number of private pages that are free as a whole.
    """

    private_bytes: int
    mapped_bytes: int
    mixed_pages: int
    whole_pages: int


class HeapRanges:
    """The ranges of a heap that was read.

    Args:
        heap: The heap.
        page_bytes: The size of a page.
    """

    def __init__(self, heap: GlibcHeap, page_bytes: int) -> None:
        self._heap = heap
        self._page_bytes = page_bytes
        self._starts = [one.start_addr for one in heap.regions]
        self._free = [_free(one) for one in heap.regions]

    def cut(self, ranges: Iterable[OwnedRange]) -> tuple[OwnedRange, ...]:
        """Cut ranges where the allocator has memory: these parts are its own, whatever they look like."""
        claims = self._claims
        starts = [claim.start for claim in claims]
        found: list[OwnedRange] = []
        for one in ranges:
            first = max(0, bisect_right(starts, one.start_addr) - 1)
            own = claims[first : bisect_right(starts, one.end_addr - 1)]
            if one.loaded is not None or not one.mapping.is_mapped_writable or not own or own[-1].end <= one.start_addr:
                found.append(one)
                continue
            found += [
                one._replace(start_addr=piece.start, end_addr=piece.end)
                if piece.owner is None
                else OwnedRange(
                    one.mapping, piece.start, piece.end, piece.owner, MemoryKind.HEAP, Attribution.ALLOCATOR
                )
                for piece in partition(one.start_addr, one.end_addr, own, _unclaimed).pieces
            ]
        return tuple(found)

    def rows(self, one: OwnedRange, private: Sequence[PageRange], whole: Row) -> list[Row]:
        """Divide the row of a range of `cut` into what is in use and what is free; `private` are its private pages."""
        free, page_bytes = self._split(one, private), self._page_bytes
        page_count = sum([-(-end // page_bytes) - start // page_bytes for start, end, _ in private])
        in_use = whole._replace(
            name=_IN_USE,
            bytes=ranges_bytes(private) - free.private_bytes,
            mapped_bytes=one.size_bytes - free.mapped_bytes,
            pages=page_count - free.whole_pages,
            sole_pages=page_count - free.whole_pages - free.mixed_pages,
            evidence=weakest((whole.evidence, Evidence.DERIVED)),
        )
        unused = in_use._replace(
            name=FREE,
            bytes=free.private_bytes,
            mapped_bytes=free.mapped_bytes,
            shared_bytes=None if whole.shared_bytes is None else 0,
            pages=free.whole_pages + free.mixed_pages,
            sole_pages=free.whole_pages,
        )
        return [in_use, unused] if free.mapped_bytes else [in_use]

    def _split(self, one: OwnedRange, private: Sequence[PageRange]) -> _Split:
        place = bisect_right(self._starts, one.start_addr) - 1
        if place < 0 or one.start_addr >= self._heap.regions[place].end_addr:
            return _Split(0, 0, 0, 0)
        free = [(max(start, one.start_addr), min(end, one.end_addr)) for start, end in self._free[place]]
        return _overlap([each for each in free if each[0] < each[1]], private, self._page_bytes)

    def account(self, ranges: Iterable[OwnedRange], pages: Dict[int, Sequence[PageRange]]) -> AllocatorAccount:
        """Add up the heap; `ranges` are those of `cut`, `pages` the private pages by the start of their mapping."""
        heap = self._heap
        private: list[PageRange] = []
        for one in ranges:
            if one.attribution is Attribution.ALLOCATOR:
                private += clip(pages.get(one.mapping.start_addr, ()), one.start_addr, one.end_addr)
        free = [each for ranges in self._free for each in ranges]
        trimmable = sorted(_trimmable(heap, self._page_bytes))
        mapped_bytes = sum([one.end_addr - one.start_addr for one in heap.mapped])
        usable_bytes = sum([one.usable_bytes for one in heap.mapped])
        held_bytes = sum([one.end_addr - one.start_addr for one in heap.regions]) + mapped_bytes
        cached_bytes = sum([_size(one.fast) + _size(one.cached) for one in heap.regions])
        live_count = sum([one.live_count for one in heap.regions])
        free_bytes = sum([end - start for start, end in free])
        structure_bytes = sum([_structure_bytes(one) for one in heap.regions])
        overhead_bytes = structure_bytes + heap.word_bytes * live_count + mapped_bytes - usable_bytes
        return AllocatorAccount(
            allocator="glibc",
            arena_count=heap.arena_count,
            live_block_count=live_count + len(heap.mapped),
            live_bytes=held_bytes - free_bytes - overhead_bytes,
            overhead_bytes=overhead_bytes,
            free_bytes=free_bytes,
            held_bytes=held_bytes,
            cached_bytes=cached_bytes,
            mapped_block_count=len(heap.mapped),
            mapped_block_bytes=mapped_bytes,
            free_private_bytes=_overlap(free, private, self._page_bytes).private_bytes,
            trimmable_bytes=_overlap(trimmable, private, self._page_bytes).private_bytes,
            unread=heap.causes,
        )

    @cached_property
    def _claims(self) -> list[Claim[str | None]]:
        claims: list[Claim[str | None]] = [
            Claim(one.start_addr, one.end_addr, _HEAP if one.is_main else _ARENAS) for one in self._heap.regions
        ]
        mapped: list[list[int]] = []
        for start, end, _ in sorted(self._heap.mapped):
            if mapped and mapped[-1][1] == start:
                mapped[-1][1] = end
            else:
                mapped.append([start, end])
        claims += [Claim(start, end, _MAPPED) for start, end in mapped]
        return sorted(claims, key=lambda one: one.start)


def _unclaimed(gap: Gap[str | None]) -> list[Piece[str | None]]:
    return [Piece(gap.start, gap.end, None)]


def _pairs(flat: Sequence[int]) -> Iterator[_Addresses]:
    return zip(flat[::2], flat[1::2], strict=True)


def _size(flat: Sequence[int]) -> int:
    return sum(flat[1::2]) - sum(flat[::2])


def _structure_bytes(region: HeapRegion) -> int:
    """Return what the allocator has for itself: before the chunks, in some of them, and what closes a full heap."""
    closing_bytes = 0 if region.is_last else region.end_addr - region.top_addr
    return region.first_addr - region.start_addr + region.own_bytes + closing_bytes


def _free(region: HeapRegion) -> list[_Addresses]:
    """Return the free ranges of a region, ascending; neighbours are joined."""
    behind = [(region.top_addr, region.end_addr)] if region.is_last else []
    return _joined([*_pairs(region.binned), *_pairs(region.fast), *_pairs(region.cached), *behind])


def _joined(ranges: list[_Addresses]) -> list[_Addresses]:
    found: list[_Addresses] = []
    for start, end in sorted(ranges):
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _trimmable(heap: GlibcHeap, page_bytes: int) -> Iterator[_Addresses]:
    """Find the whole pages that malloc_trim(0) returns: in free chunks but their first words, and at the end of brk.

    Source: mtrim and systrim in malloc/malloc.c. It joins the chunks of fastbins with their neighbours first. What
    threads keep, and the end of the heaps of threads, stays.
    """
    links_bytes, least_bytes = 6 * heap.word_bytes, 4 * heap.word_bytes
    for region in heap.regions:
        top_addr = region.top_addr
        for start, end in _joined([*_pairs(region.binned), *_pairs(region.fast)]):
            if end == region.top_addr:
                top_addr = start
                continue
            first = -(-(start + links_bytes) // page_bytes) * page_bytes
            if first + page_bytes <= end:
                yield first, end // page_bytes * page_bytes
        past_bytes = (region.end_addr - top_addr - least_bytes - 1) // page_bytes * page_bytes
        if region.is_main and past_bytes > 0:
            yield region.end_addr - past_bytes, region.end_addr


def _overlap(free: Sequence[_Addresses], private: Sequence[PageRange], page_bytes: int) -> _Split:
    """Add up the private bytes and pages that lie in free ranges; both are ascending."""
    private_bytes = mixed_pages = whole_pages = 0
    last_mixed = -1
    place = 0
    for start, end, _ in private:
        while place < len(free) and free[place][1] <= start:
            place += 1
        at = place
        while at < len(free) and free[at][0] < end:
            first, past = max(free[at][0], start), min(free[at][1], end)
            private_bytes += past - first
            whole_first, whole_past = -(-first // page_bytes), past // page_bytes
            whole_pages += max(0, whole_past - whole_first)
            for edge in (first, past):
                if edge % page_bytes and edge // page_bytes > last_mixed:
                    last_mixed = edge // page_bytes
                    mixed_pages += 1
            at += 1
        place = max(place, at - 1)
    return _Split(private_bytes, sum([end - start for start, end in free]), mixed_pages, whole_pages)
