"""The heap of glibc in memory that was written for the test: what is in use, what is free, and what does not fit."""

import struct

import pytest

from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.glibc.words import HeapRegion, LiveHeap
from tests.glibcwriter import PAGE, Chunk, HeapWriter

WORDS = [8, 4]
MAPPED = {8: 0x7F2000000000, 4: 0xF0000000}


def read(
    written: HeapWriter, nameless: list[tuple[int, int]] | None = None, most_chunks: int = 1000
) -> LiveHeap | None:
    return read_glibc_heap(
        written.memory, written.word, written.data, nameless or [], page_bytes=PAGE, most_chunks=most_chunks
    )


def only_region(written: HeapWriter) -> HeapRegion:
    heap = read(written)
    assert heap is not None
    assert heap.causes == ()
    (region,) = heap.regions
    return region


def sizes(flat: object) -> list[int]:
    assert hasattr(flat, "__getitem__")
    return [end - start for start, end in zip(flat[::2], flat[1::2], strict=True)]


@pytest.mark.parametrize("word", WORDS)
def test_each_chunk_is_in_use_or_free_as_its_lists_and_its_neighbour_say(word: int) -> None:
    written = HeapWriter(word)
    first, end = written.main_heap(
        Chunk(64),
        Chunk(96, "binned"),
        Chunk(32),
        Chunk(48, "cached"),
        Chunk(48, "cached"),
        Chunk(64, "fast"),
        Chunk(32),
    )
    region = only_region(written)
    assert (region.start_addr, region.first_addr, region.end_addr) == (written.heap_addr, first, end)
    assert sizes(region.binned) == [96]
    assert sizes(region.cached) == [48, 48]
    assert sizes(region.fast) == [64]
    # The lists of the thread are no block of the program: 64, 32 and 32 are.
    assert region.live_count == 3
    assert region.own_bytes == (0x290 if word == 8 else 0x190)
    used = region.top_addr - first - 96 - 96 - 64 - region.own_bytes
    assert used == 64 + 32 + 32


def test_the_lists_of_a_thread_may_lie_in_a_chunk_that_is_longer_by_what_is_too_little_to_be_split_off() -> None:
    written = HeapWriter()
    first, _ = written.main_heap(Chunk(48), Chunk(0x2A0), Chunk(80), Chunk(32))
    lists = first + 0x290 + 48
    # One chunk of 80 bytes in the fourth list of another thread.
    written.words(lists + 16, 1 << 48)
    written.words(lists + 16 + 128 + 3 * 8, lists + 0x2A0 + 16)
    written.words(lists + 0x2A0 + 16, lists + 0x2A0 + 16 >> 12)
    region = only_region(written)
    assert (sizes(region.cached), region.own_bytes, region.live_count) == ([80], 0x290 + 0x2A0, 2)


def test_lists_before_safe_linking_are_followed(  # glibc 2.31
) -> None:
    written = HeapWriter(is_linked_safely=False, info_bytes=32)
    written.main_heap(*[Chunk(48, "cached")] * 3, Chunk(32, "fast"), Chunk(32, "fast"), Chunk(32))
    region = only_region(written)
    assert sizes(region.cached) == [48, 48, 48]
    assert sizes(region.fast) == [32, 32]
    assert region.live_count == 1


def test_the_layout_of_2_26_is_read() -> None:
    # No `have_fastchunks`, counts of a byte, and no padding in `mp_`.
    written = HeapWriter(bins_offset=104, info_bytes=32, is_linked_safely=False)
    written.main_heap(Chunk(64), Chunk(80, "cached"), Chunk(32), count_bytes=1)
    written.parameters(is_padded=False)
    region = only_region(written)
    assert (region.own_bytes, sizes(region.cached), region.live_count) == (0x250, [80], 2)


@pytest.mark.parametrize("word", WORDS)
def test_the_layout_of_2_43_is_read(word: int) -> None:
    # No fastbins, and lists of a thread that it allocates when it first frees a block.
    written, addr = HeapWriter(word, bins_offset=24 if word == 8 else 16), MAPPED[word]
    lists_bytes = 0x300 if word == 8 else 0x1D0
    # A free chunk and one of the program have the size of the lists.
    sizes_of_chunks = (64, 80, lists_bytes, 2048, lists_bytes, lists_bytes, 32)
    states = ("", "", "", "", "", "binned", "")
    first, _ = written.main_heap(*map(Chunk, sizes_of_chunks, states), has_tcache=False)
    written.lists_of_ranges(
        first + 144, {(80 - 4 * word) // 16: first + 64 + 2 * word, 70: first + 144 + lists_bytes + 2 * word}
    )
    written.words(first + 144 + lists_bytes + 2048 + 160 + 2 * word, *[first + 2 * word] * 20)
    written.parameters(2, 48 * PAGE)
    rooms = [written.mapped_block(addr, 32 * PAGE, has_rest=True)]
    rooms.append(written.mapped_block(addr + 32 * PAGE, 16 * PAGE, 64, has_rest=True))
    heap = read(written, [(addr, addr + 50 * PAGE)])
    assert heap is not None
    assert heap.causes == ()
    (region,) = heap.regions
    assert (sizes(region.cached), sizes(region.binned)) == ([80, 2048], [lists_bytes])
    assert (region.own_bytes, region.live_count) == (lists_bytes, 3)
    assert [one.usable_bytes for one in heap.mapped] == rooms


@pytest.mark.parametrize("word", WORDS)
def test_what_2_43_counts_too_much_for_blocks_that_were_resized_is_no_cause(word: int) -> None:
    written, addr = HeapWriter(word, bins_offset=24 if word == 8 else 16), MAPPED[word]
    written.main_heap(Chunk(32), has_tcache=False)
    written.parameters(1, 48 * PAGE + 26 * 2 * word)
    written.mapped_block(addr, 48 * PAGE, has_rest=True)
    heap = read(written, [(addr, addr + 50 * PAGE)])
    assert heap is not None
    assert (heap.causes, [one.end_addr - one.start_addr for one in heap.mapped]) == ((), [48 * PAGE])
    # What was counted too much stays when all are freed.
    written.parameters(1, 48 * PAGE)
    written.words(written.data_addr + 64, 26 * 2 * word)
    written.memory.write(written.data_addr + 64 - (20 if word == 8 else 16), struct.pack("=i", 0))
    heap = read(written, [(addr + 50 * PAGE, addr + 60 * PAGE)])
    assert heap is not None
    assert (heap.causes, heap.mapped) == ((), ())


def test_before_the_heap_begins_blocks_that_are_mapped_alone_are_found() -> None:
    written, addr = HeapWriter(bins_offset=24), MAPPED[8]
    bins = written.main_addr + 24
    written.arena(written.main_addr, bins - 16, 0, written.main_addr, {})
    at = written.data_addr + 64
    written.words(at, 32 * PAGE, 32 * PAGE, 0)
    written.memory.write(at - 20, struct.pack("=4i", 1, 65536, 1, 0))
    written.mapped_block(addr, 32 * PAGE, has_rest=True)
    heap = read(written, [(addr, addr + 50 * PAGE)])
    assert heap is not None
    assert (heap.causes, heap.regions, len(heap.mapped)) == ((), (), 1)


def test_an_arena_that_was_never_used_is_no_heap() -> None:  # from 2.42 on the C library makes it at start
    written = HeapWriter(bins_offset=24)
    written.arena(written.main_addr, written.main_addr + 24 - 16, 0, written.main_addr, {})
    assert read(written, [(MAPPED[8], MAPPED[8] + 50 * PAGE)]) is None


@pytest.mark.parametrize("word", WORDS)
def test_the_heaps_of_a_thread_are_found_from_its_arena(word: int) -> None:
    written = HeapWriter(word)
    arena = written.thread_heaps(
        [Chunk(64), Chunk(PAGE, "binned"), Chunk(32)], [Chunk(128), Chunk(64, "binned"), Chunk(32)]
    )
    written.main_heap(Chunk(32), next_addr=arena)
    heap = read(written)
    assert heap is not None
    assert heap.causes == ()
    assert heap.arena_count == 2
    by_start = {region.start_addr: region for region in heap.regions}
    step = (64 << 20) if word == 8 else (1 << 20)
    full, last = by_start[written.thread_addr], by_start[written.thread_addr + step]
    assert not full.is_last
    # What was left of the first heap is free, too.
    assert sizes(full.binned)[0] == PAGE
    assert full.end_addr - full.first_addr - sum(sizes(full.binned)) == 64 + 32 + (32 if word == 8 else 24)
    assert full.live_count == 2
    assert last.is_last
    assert (sizes(last.binned), last.live_count) == ([64], 2)


@pytest.mark.parametrize("alignment", [16, 64, PAGE, 1 << 16])
@pytest.mark.parametrize("word", WORDS)
def test_blocks_that_are_mapped_alone_are_found_one_behind_the_other(word: int, alignment: int) -> None:
    written, addr = HeapWriter(word), MAPPED[word]
    written.main_heap(Chunk(32))
    written.parameters(2, 48 * PAGE)
    rooms = [written.mapped_block(addr, 32 * PAGE, alignment), written.mapped_block(addr + 32 * PAGE, 16 * PAGE)]
    heap = read(written, [(addr, addr + 50 * PAGE)])
    assert heap is not None
    assert heap.causes == ()
    assert [(one.start_addr - addr, one.end_addr - addr) for one in heap.mapped] == [
        (0, 32 * PAGE),
        (32 * PAGE, 48 * PAGE),
    ]
    assert [one.usable_bytes for one in heap.mapped] == rooms


def test_a_block_in_the_middle_of_a_mapping_is_found() -> None:
    written, addr = HeapWriter(), MAPPED[8]
    written.main_heap(Chunk(32))
    written.parameters(1, 16 * PAGE)
    written.memory.write(addr, b"something else")
    written.mapped_block(addr + 5 * PAGE, 16 * PAGE)
    heap = read(written, [(addr, addr + 30 * PAGE)])
    assert heap is not None
    assert [one.start_addr - addr for one in heap.mapped] == [5 * PAGE]


def test_blocks_that_are_not_found_are_a_cause() -> None:
    written = HeapWriter()
    written.main_heap(Chunk(32))
    written.parameters(3, 16 * PAGE)
    heap = read(written)
    assert heap is not None
    assert heap.causes == ("of 3 blocks that malloc maps alone 0 were found",)


def test_blocks_that_are_all_found_and_changed_meanwhile_are_a_cause_of_their_size() -> None:
    written, addr = HeapWriter(), MAPPED[8]
    written.main_heap(Chunk(32))
    written.parameters(1, 20 * PAGE)
    written.mapped_block(addr, 16 * PAGE)
    heap = read(written, [(addr, addr + 16 * PAGE)])
    assert heap is not None
    assert heap.causes == ("of 80 KiB in blocks that malloc maps alone 64 KiB were found",)


def test_what_looks_like_more_blocks_than_there_are_is_none() -> None:
    written, addr = HeapWriter(), MAPPED[8]
    written.main_heap(Chunk(32))
    written.parameters(1, PAGE)
    written.mapped_block(addr, 16 * PAGE)
    heap = read(written, [(addr, addr + 16 * PAGE)])
    assert heap is not None
    assert heap.mapped == ()
    assert heap.causes == ("of 1 blocks that malloc maps alone 0 were found",)


@pytest.mark.parametrize("size", [0, 8, 24, 33, 2 << 20, (1 << 64) - 15, 48 | 2, 48 | 4])
def test_a_size_that_does_not_fit_makes_the_heap_unknown(size: int) -> None:
    written = HeapWriter()
    first, _ = written.main_heap(Chunk(64), Chunk(48), Chunk(64))
    written.words(first + 0x290 + 64 + 8, size | 1)
    heap = read(written)
    assert heap is not None
    assert heap.regions == ()
    (cause,) = heap.causes
    assert "chunk" in cause


def test_a_page_that_is_not_in_memory_makes_the_heap_unknown() -> None:
    written = HeapWriter()
    first, _ = written.main_heap(*[Chunk(1024)] * 20)
    del written.memory.pages[(first + 2 * PAGE) // PAGE]
    heap = read(written)
    assert heap is not None
    assert heap.regions == ()
    assert heap.causes[0].endswith("is in a page that is not in memory")


def test_the_contents_of_blocks_need_not_be_in_memory() -> None:
    written = HeapWriter()
    first, _ = written.main_heap(Chunk(64), Chunk(64 * PAGE, "binned"), Chunk(32))
    for page in range(first // PAGE + 2, first // PAGE + 60):
        del written.memory.pages[page]
    assert sizes(only_region(written).binned) == [64 * PAGE]


def test_a_heap_with_too_many_chunks_is_not_read_to_its_end() -> None:
    written = HeapWriter()
    written.main_heap(*[Chunk(32)] * 2000)
    heap = read(written, most_chunks=100)
    assert heap is not None
    assert heap.regions == ()
    assert heap.causes == ("it has more chunks than are read (with --findings up to 64 million)",)


@pytest.mark.parametrize("data", [b"", b"\0" * PAGE, struct.pack("=512Q", *range(512))])
def test_data_without_an_arena_has_no_heap(data: bytes) -> None:
    written = HeapWriter()
    written.memory.write(written.data_addr, data)
    assert read(written) is None


def pieces(written: HeapWriter, *starts: int) -> LiveHeap:
    """Write a piece of two pages with 100 blocks at each address, all closed but the last; return what is read."""
    word, total_bytes = written.word, 0
    for start in starts:
        first = start + (-(start + 2 * word) & 15)
        lists = [Chunk(0x290 if word == 8 else 0x190)] if start == starts[0] else []
        at = written.chunks(first, [*lists, *[Chunk(64)] * 100], is_thread=False)
        end = -(-(at + 8 * word) // PAGE) * PAGE
        written.words(at, 0, end - at | 1)
        if start != starts[-1]:
            fence = end - (32 if word == 8 else 24)
            written.words(at, 0, fence - at | 1)
            written.words(fence, fence - at, 2 * word, 2 * word, 2 * word | 1)
        total_bytes += end - start
    written.arena(written.main_addr, at, total_bytes, written.main_addr, {})
    written.parameters()
    heap = read_glibc_heap(
        written.memory,
        word,
        written.data,
        [(MAPPED[word], MAPPED[word] + 100 * PAGE)],
        brk=[(written.heap_addr, written.heap_addr + 64 * PAGE)],
        page_bytes=PAGE,
        most_chunks=10_000,
    )
    assert heap is not None
    return heap


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("other_bytes", [0, 100, PAGE, 5000])
def test_the_heap_goes_on_behind_another_caller_of_sbrk(word: int, other_bytes: int) -> None:
    written = HeapWriter(word)
    after = written.heap_addr + 2 * PAGE + other_bytes
    # It counts up, so some of its numbers look like sizes of chunks.
    written.words(written.heap_addr + 2 * PAGE, *range(other_bytes // word))
    heap = pieces(written, written.heap_addr, after)
    assert [region.is_last for region in heap.regions] == [False, True]
    assert [sizes(region.binned) for region in heap.regions][1] == []
    assert 0 <= heap.regions[1].start_addr - after < 16
    assert [region.live_count for region in heap.regions] == [100, 100]
    assert heap.causes == ()


@pytest.mark.parametrize("word", WORDS)
def test_the_heap_goes_on_in_mappings_where_the_break_cannot_rise(word: int) -> None:
    written, addr = HeapWriter(word), MAPPED[word]
    # The later pieces are below the earlier ones, and touch them.
    heap = pieces(written, written.heap_addr, addr + 5 * PAGE, addr + 3 * PAGE)
    assert [region.start_addr - addr for region in heap.regions if not region.is_main] == [3 * PAGE, 5 * PAGE]
    assert [region.is_last for region in heap.regions] == [False, True, False]
    assert sum(region.live_count for region in heap.regions) == 300
    assert heap.causes == ()


def test_memory_that_the_arena_counts_and_that_is_not_there_makes_the_heap_unknown() -> None:
    written = HeapWriter()
    first, end = written.main_heap(Chunk(64))
    written.arena(written.main_addr, first + 0x290 + 64, end - written.heap_addr + 2 * PAGE, written.main_addr, {})
    heap = read(written)
    assert heap is not None
    assert heap.regions == ()
    assert heap.causes[0] == "what is at 0x5554ffffe008 is not in memory"


def test_zeros_of_the_size_of_lists_are_a_block() -> None:
    written = HeapWriter()
    written.main_heap(Chunk(0x290), Chunk(0x290))
    region = only_region(written)
    assert (region.own_bytes, region.live_count) == (0x290, 2)


def test_a_list_that_leads_nowhere_ends() -> None:
    written = HeapWriter()
    first, _ = written.main_heap(Chunk(48, "cached"), Chunk(48, "cached"), Chunk(32))
    place = first + 0x290 + 16
    for told in (place - 16 + 16, 0x1234567, first, (1 << 64) - 16):
        written.words(place, (place >> 12) ^ told)
        # The second is one that the program may have: it is live.
        assert sizes(only_region(written).cached) == [48]


def test_holes_are_passed_over_only_where_a_block_is_missing() -> None:
    written, addr = HeapWriter(), MAPPED[8]
    written.main_heap(Chunk(32))
    written.parameters(1, 16 * PAGE)
    written.mapped_block(addr, 16 * PAGE)
    heap = read(written, [(addr, addr + 16 * PAGE), (addr + (1 << 30), addr + (1 << 44))])
    assert heap is not None
    assert len(heap.mapped) == 1
    assert [one for one in written.memory.skipped if one[0] >= addr] == []


def test_blocks_as_large_as_the_lists_of_a_thread_are_told_apart_without_reading_each() -> None:
    written = HeapWriter()
    first, _ = written.main_heap(*[Chunk(0x290)] * 900)
    for number in range(1, 901):
        # Counts that are not 0, and no pointers; the last ones are zeros.
        written.words(first + number * 0x290 + 16, *[number % 1000] * 80)
    region = only_region(written)
    assert (region.own_bytes, region.live_count) == (0x290, 900)
    assert written.memory.read_count < 200


def test_heaps_that_lead_to_each_other_end() -> None:
    written = HeapWriter()
    arena = written.thread_heaps([Chunk(64)], [Chunk(64)])
    written.main_heap(Chunk(32), next_addr=arena)
    last = written.thread_addr + (64 << 20)
    written.words(last, arena, last, PAGE)  # the heap before it is this one
    written.words(arena + written.bins_offset + 254 * 8 + 16, written.main_addr, 0, 1, 1 << 62, 1 << 62)
    heap = read(written)
    assert heap is not None
    assert [region.is_main for region in heap.regions] == [True]
    assert heap.causes == (f"the heaps of the arena at {arena:#x} do not add up to what it counts",)
    assert written.memory.read_count < 1000


def test_the_cost_of_structures_is_limited_whatever_they_lead_to() -> None:
    written, step = HeapWriter(), 1 << 20
    # Each word of the data leads to an arena, whose bins are any pointers. The arenas are a ring without the first.
    other = written.thread_addr + written.info_bytes
    for addr in (other, other + step):
        following = other if addr > other else other + step
        written.words(addr - written.info_bytes, addr)
        written.words(addr, *[following] * 300)
    own = [written.data_addr + place * 8 for place in range(512)]
    written.words(written.data_addr, *[other] * 512)
    for place in range(20, 500, 260):
        written.words(own[place], own[place] - 16, own[place] - 16)
    assert read(written) is None
    assert written.memory.read_count < 300_000


def test_the_contents_of_large_blocks_are_not_read() -> None:
    written = HeapWriter()
    written.main_heap(*[Chunk(100 * PAGE)] * 40)
    assert only_region(written).live_count == 40
    assert written.memory.read_bytes < 2 * 40 * PAGE + (1 << 18)


def test_heaps_that_lie_in_each_other_are_not_counted_twice() -> None:
    written, inner = HeapWriter(), HeapWriter()
    arena = written.thread_heaps([Chunk(64), Chunk(10 << 20), Chunk(64)])
    # Another arena, in the block of 10 MiB.
    inner.memory, inner.thread_addr = written.memory, written.thread_addr + (8 << 20)
    inner_arena = inner.thread_heaps([Chunk(64)], next_addr=written.main_addr)
    written.words(arena + written.bins_offset + 254 * 8 + 16, inner_arena)
    # A header of a block that is mapped alone, in the same block.
    written.main_heap(Chunk(32), next_addr=arena)
    written.parameters(1, 2 * PAGE)
    written.mapped_block(written.thread_addr + (9 << 20), 2 * PAGE)
    heap = read(written, [(written.thread_addr + (9 << 20), written.thread_addr + (10 << 20))])
    assert heap is not None
    assert [region.start_addr for region in heap.regions] == [written.heap_addr, written.thread_addr]
    assert heap.mapped == ()
    assert heap.causes[0] == "a heap of it lies in another one"


def test_blocks_are_not_searched_through_terabytes() -> None:
    written, addr = HeapWriter(), MAPPED[8]
    written.main_heap(Chunk(32))
    written.parameters(2, 2 * PAGE)
    heap = read(written, [(addr + (number << 44), addr + (number + 1 << 44)) for number in range(4)])
    assert heap is not None
    assert sum(end - start for start, end in written.memory.skipped) < 17 << 30


def test_pieces_are_searched_in_a_part_of_the_memory_however_many_places_may_be_the_start() -> None:
    written = HeapWriter()
    first, end = written.main_heap(*[Chunk(64)] * 20)
    # The arena counts memory that is nowhere, and each word of its data may be where the heap begins.
    written.arena(written.main_addr, end - PAGE, 1 << 40, written.main_addr, {})
    written.words(written.data_addr + 3000, *[first + 16 * place for place in range(100)])
    written.memory.touch(MAPPED[8], MAPPED[8] + 64 * PAGE)
    heap = read_glibc_heap(
        written.memory,
        8,
        written.data,
        [(MAPPED[8], MAPPED[8] + (1 << 44))],
        brk=[(written.heap_addr, end)],
        page_bytes=PAGE,
        most_chunks=10_000,
    )
    assert heap is not None
    assert heap.regions == ()
    assert written.memory.read_count < 1000
