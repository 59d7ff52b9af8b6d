"""The rows of a heap by what its allocator says: each private byte is in use or free, by hand."""

from footprint.attribution.ledger import ledger_rows
from footprint.attribution.live_ranges import HeapRanges
from footprint.attribution.owned_range import OwnedRange, count_each
from footprint.model.row import Attribution, MemoryKind, Row
from footprint.process.glibc.words import HeapRegion, LiveHeap, MappedBlock
from footprint.process.mappings import Counters, Mapping
from footprint.process.pages import PageRange

PAGE = 4096
HEAP = 0x555500000000
MAPPED = 0x7F0000000000
HEAP_PAGES = 32
NO_REGION = HeapRegion(HEAP, HEAP, HEAP, HEAP, *(True, True), (), (), (), 0, 0)


class NoFiles:
    def contents_of(self, loaded: object) -> None:
        raise AssertionError(loaded)

    def relocated_pages_of(self, loaded: object, page_bytes: int) -> None:
        raise AssertionError(loaded, page_bytes)


def region(*, top_page: int = HEAP_PAGES, **lists: tuple[int, ...]) -> HeapRegion:
    """Return the heap whose chunks begin at its start; lists are of offsets in it."""
    moved = {name: tuple(HEAP + one for one in flat) for name, flat in lists.items()}
    return NO_REGION._replace(top_addr=HEAP + top_page * PAGE, end_addr=HEAP + HEAP_PAGES * PAGE, live_count=3, **moved)  # type: ignore[arg-type]


def heap_of(*regions: HeapRegion, mapped: tuple[MappedBlock, ...] = ()) -> LiveHeap:
    return LiveHeap("glibc", 8, 1, regions, mapped, (), is_changing=False)


def mapping(start: int, pages: int, name: str = "") -> Mapping:
    private_bytes = pages * PAGE
    counters = Counters({"Rss": 0, "Anonymous": 1, "Private_Dirty": 2, "Shared_Dirty": 3}, (private_bytes,) * 3 + (0,))
    return Mapping(start, start + pages * PAGE, "rw-p", 0, "00:00", 0, name, counters)


def owned(mapping: Mapping, owner: str) -> OwnedRange:
    return OwnedRange(mapping, mapping.start_addr, mapping.end_addr, owner, MemoryKind.HEAP, Attribution.NAME)


def rows_of(
    heap: LiveHeap, mappings: list[tuple[Mapping, str]], private: dict[int, list[tuple[int, int]]]
) -> dict[tuple[str, str | None], Row]:
    """Return the rows by owner and name; `private` has first and last private page of mappings."""
    pages = {
        start: tuple(PageRange(start + first * PAGE, start + past * PAGE) for first, past in runs)
        for start, runs in private.items()
    }
    ranges = HeapRanges(heap, PAGE)
    parts = ranges.cut([owned(*one) for one in mappings])
    counts = count_each([one for one, _ in mappings], pages)
    result = ledger_rows(parts, counts, pages, NoFiles(), PAGE, (), heap=ranges)  # type: ignore[arg-type]
    assert (
        sum(row.bytes or 0 for row in result)
        == sum(past - first for runs in private.values() for first, past in runs) * PAGE
    )
    assert sum(row.mapped_bytes for row in result) == sum(one.size_bytes for one, _ in mappings)
    return {(row.owner, row.name): row for row in result}


def test_the_private_bytes_of_a_heap_are_in_use_or_free_by_the_range_that_they_lie_in() -> None:
    # Free: the second half of page 1 and page 2; 100 bytes in page 5; all from page 8 on, of which two are private.
    heap = heap_of(
        region(
            top_page=8,
            binned=(PAGE * 3 // 2, 3 * PAGE),
            fast=(5 * PAGE, 5 * PAGE + 64),
            cached=(5 * PAGE + 64, 5 * PAGE + 100),
        )
    )
    rows = rows_of(heap, [(mapping(HEAP, HEAP_PAGES, "[heap]"), "[heap]")], {HEAP: [(0, 10)]})
    free, in_use = rows["[heap]", "[free]"], rows["[heap]", "[in use]"]
    assert free.bytes == PAGE // 2 + PAGE + 100 + 2 * PAGE
    assert free.mapped_bytes == PAGE // 2 + PAGE + 100 + 24 * PAGE
    # Pages 1, 2, 5, 8 and 9 have free bytes; 2, 8 and 9 nothing else.
    assert (free.pages, free.sole_pages) == (5, 3)
    assert in_use.bytes == 10 * PAGE - (free.bytes or 0)
    assert (in_use.pages, in_use.sole_pages) == (7, 5)
    assert {free.attribution, in_use.attribution} == {Attribution.ALLOCATOR}
    assert {free.evidence, in_use.evidence} == {"derived"}


def test_a_page_that_is_one_free_chunk_has_nothing_else() -> None:
    rows = rows_of(heap_of(region(binned=(PAGE, 2 * PAGE))), [(mapping(HEAP, 4, "[heap]"), "[heap]")], {HEAP: [(0, 4)]})
    assert (rows["[heap]", "[free]"].pages, rows["[heap]", "[free]"].sole_pages) == (1, 1)
    assert (rows["[heap]", "[in use]"].pages, rows["[heap]", "[in use]"].sole_pages) == (3, 3)


def test_what_is_free_and_was_never_touched_is_not_private() -> None:
    heap = heap_of(region(top_page=1))
    rows = rows_of(heap, [(mapping(HEAP, HEAP_PAGES, "[heap]"), "[heap]")], {HEAP: [(0, 1)]})
    assert (rows["[heap]", "[free]"].bytes, rows["[heap]", "[free]"].mapped_bytes) == (0, 31 * PAGE)


def test_blocks_that_are_mapped_alone_have_an_owner_of_their_own() -> None:
    blocks = (
        MappedBlock(MAPPED + 2 * PAGE, MAPPED + 4 * PAGE, 2 * PAGE - 16),
        MappedBlock(MAPPED + 4 * PAGE, MAPPED + 7 * PAGE, 3 * PAGE - 16),
    )
    rows = rows_of(heap_of(mapped=blocks), [(mapping(MAPPED, 10), "[anonymous]")], {MAPPED: [(0, 3), (6, 8)]})
    assert rows["[mapped blocks]", "[in use]"].bytes == 2 * PAGE
    assert rows["[mapped blocks]", "[in use]"].mapped_bytes == 5 * PAGE
    assert rows["[anonymous]", None].bytes == 3 * PAGE


def test_a_heap_that_was_not_read_is_one_row() -> None:
    rows = rows_of(heap_of(), [(mapping(HEAP, 4, "[heap]"), "[heap]")], {HEAP: [(0, 4)]})
    assert list(rows) == [("[heap]", None)]


def test_the_account_adds_up_what_the_allocator_has() -> None:
    heap = heap_of(
        region(top_page=8, binned=(PAGE, 2 * PAGE), cached=(2 * PAGE, 2 * PAGE + 64)),
        mapped=(MappedBlock(MAPPED, MAPPED + 4 * PAGE, 4 * PAGE - 16),),
    )
    ranges = HeapRanges(heap, PAGE)
    one = mapping(HEAP, HEAP_PAGES, "[heap]")
    parts = ranges.cut([owned(one, "[heap]")])
    account = ranges.account(parts, {HEAP: [PageRange(HEAP, HEAP + 9 * PAGE)]})
    assert account.held_bytes == 36 * PAGE
    assert account.free_bytes == PAGE + 64 + 24 * PAGE
    assert account.cached_bytes == 64
    assert account.free_private_bytes == PAGE + 64 + PAGE
    # Three blocks in the heap and one alone, with headers of 8 and 16 bytes.
    assert (account.live_block_count, account.overhead_bytes) == (4, 3 * 8 + 16)
    assert account.live_bytes == 8 * PAGE - PAGE - 64 - 3 * 8 + 4 * PAGE - 16


def trimmable(heap: LiveHeap, private_pages: int) -> int:
    ranges = HeapRanges(heap, PAGE)
    parts = ranges.cut([owned(mapping(HEAP, HEAP_PAGES, "[heap]"), "[heap]")])
    private = PageRange(HEAP, HEAP + private_pages * PAGE)
    return ranges.account(parts, {HEAP: [private]}).trimmable_bytes // PAGE


def test_malloc_trim_returns_whole_pages_behind_the_links_of_a_chunk() -> None:
    # The links of a chunk are 48 bytes: one that begins at a page keeps this page.
    assert trimmable(heap_of(region(binned=(PAGE, 4 * PAGE))), 32) == 2
    assert trimmable(heap_of(region(binned=(PAGE - 48, 4 * PAGE))), 32) == 3
    assert trimmable(heap_of(region(binned=(PAGE - 47, 4 * PAGE))), 32) == 2
    # Only what is private comes back.
    assert trimmable(heap_of(region(binned=(PAGE - 48, 4 * PAGE))), 2) == 1


def test_malloc_trim_joins_fastbins_and_keeps_what_threads_keep() -> None:
    assert trimmable(heap_of(region(binned=(PAGE, 2 * PAGE), fast=(2 * PAGE, 2 * PAGE + 64))), 32) == 0
    joined = region(binned=(PAGE, 2 * PAGE + 64, 2 * PAGE + 128, 4 * PAGE), fast=(2 * PAGE + 64, 2 * PAGE + 128))
    assert trimmable(heap_of(joined), 32) == 2
    kept = joined._replace(cached=joined.fast, fast=())
    assert trimmable(heap_of(kept), 32) == 1


def test_malloc_trim_returns_the_end_of_the_heap_of_brk_but_not_that_of_a_thread() -> None:
    # 33 bytes of the end stay: 8 pages behind a chunk that ends with page 24 are 7.
    assert trimmable(heap_of(region(top_page=24)), 32) == 7
    assert trimmable(heap_of(region(top_page=24)._replace(is_main=False)), 32) == 0
