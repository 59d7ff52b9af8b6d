"""The heap of musl in memory that was written for the test: groups, their slots, and what does not fit."""

import struct

import pytest

from footprint.process.glibc.words import LiveHeap
from footprint.process.mallocng import read_musl_heap
from tests.glibcwriter import PAGE, Pages

DATA, AREA, GROUP = 0x10000, 0x40000, 0x80000
SECRET = 0x1234_5678_9ABC_DEF1


class MuslWriter:
    """Writes a context, a page of records, and groups, as mallocng/malloc.c does.

    Args:
        word: The size of a pointer.
        has_page_size: Whether the size of a page is in the context, as where it is not the same everywhere.
    """

    def __init__(self, word: int = 8, *, has_page_size: bool = False) -> None:
        self.word, self.memory, self.count = word, Pages(), 0
        self.head = (7 if word == 8 else 9) + has_page_size
        self.memory.write(DATA + 64, struct.pack("=Q", SECRET))
        self.words(DATA + 64 + self.head * word, AREA, AREA)
        self.memory.write(DATA + 64 + (self.head - (6 if word == 8 else 7)) * word, struct.pack("=I", 1))
        self.record_bytes, self.first = (40, 24) if word == 8 else (24, 16)
        self.memory.touch(AREA, AREA + PAGE)
        self.memory.write(AREA, struct.pack("=Q", SECRET))
        self.memory.write(AREA + 8 + word, struct.pack("=I", (PAGE - self.first) // self.record_bytes))

    def words(self, addr: int, *values: int) -> None:
        self.memory.write(addr, struct.pack(f"={len(values)}{'Q' if self.word == 8 else 'I'}", *values))

    def group(self, addr: int, slot_class: int, slots: list[str | int], pages: int, *, stride: int = 0) -> None:
        """Write a group: a size of each slot in use, or `free`, `group`, or a size and an offset like `100+2`."""
        record = AREA + self.first + self.count * self.record_bytes
        self.count += 1
        free = sum(1 << place for place, slot in enumerate(slots) if slot == "free")
        flags = len(slots) - 1 | 1 << 5 | slot_class << 6 | pages << 12
        self.words(record, 0, 0, addr)
        self.memory.write(record + 3 * self.word, struct.pack("=II", free, 0))
        self.words(record + 3 * self.word + 8, flags)
        self.memory.touch(addr, addr + pages * PAGE)
        self.words(addr, record)
        for place, slot in enumerate(slots):
            start = addr + 16 + place * stride
            end = start + stride - 4
            if slot == "free":
                continue
            size, _, offset = str(slot).partition("+")
            if offset:
                self.memory.write(start - 4, struct.pack("=BBH", 0, 7 << 5, int(offset) & 0xFFFF))
                start += 16 * int(offset)
            units = (start - addr - 16) // 16 if offset else 0
            rest = end - start - int(size) if size != "group" else 0
            mark = 6 if size == "group" else min(rest, 5)
            if rest >= 5:
                self.memory.write(end - 4, struct.pack("=I", rest))
            if units > 0xFFFF:
                self.memory.write(start - 8, struct.pack("=IBBH", units, 1, place | mark << 5, 0))
            else:
                self.memory.write(start - 4, struct.pack("=BBH", 0, place | mark << 5, units))

    def read(self, most_blocks: int = 1000) -> LiveHeap:
        heap = read_musl_heap(self.memory, self.word, [(DATA, DATA + PAGE)], most_blocks=most_blocks)
        assert heap is not None
        return heap


def usable(heap: LiveHeap) -> int:
    """Return what was asked for, as what is neither free nor the allocator's."""
    free = sum(sum(region.binned[1::2]) - sum(region.binned[::2]) for region in heap.regions)
    return sum(region.end_addr - region.start_addr - region.own_bytes for region in heap.regions) - free


@pytest.mark.parametrize("has_page_size", [False, True])
@pytest.mark.parametrize("word", [8, 4])
def test_the_blocks_of_a_group_are_as_large_as_was_asked_for(word: int, *, has_page_size: bool) -> None:
    written = MuslWriter(word, has_page_size=has_page_size)
    # Slots of 1,008 bytes: full, nearly full, with a long rest, free, and moved in their slot.
    written.group(GROUP, 19, [1004, 1002, 10, "free", "100+3"], 2, stride=1008)
    heap = written.read()
    region = heap.regions[-1]
    assert (heap.allocator, heap.causes, region.start_addr, region.end_addr) == ("musl", (), GROUP, GROUP + 2 * PAGE)
    assert list(region.binned) == [GROUP + 12 + 3 * 1008, GROUP + 12 + 4 * 1008]
    assert region.live_count == 4
    assert usable(heap) == 1004 + 1002 + 10 + 100
    # The page of records is the allocator's.
    assert [(one.start_addr, one.own_bytes) for one in heap.regions[:-1]] == [(AREA, PAGE)]


def test_a_group_in_a_slot_of_another_one_is_no_block() -> None:
    written = MuslWriter()
    written.group(GROUP, 19, ["group", 1000], 1, stride=1008)
    written.group(GROUP + 16, 1, [20, "free", 28], 0, stride=32)
    heap = written.read()
    assert sum(region.live_count for region in heap.regions) == 3
    assert usable(heap) == 1000 + 20 + 28
    assert list(heap.regions[-1].binned) == [GROUP + 16 + 12 + 32, GROUP + 16 + 12 + 64]


def test_a_block_that_is_mapped_alone_is_no_group() -> None:
    written = MuslWriter()
    written.group(GROUP, 63, [200_000], 50, stride=50 * PAGE - 16)
    heap = written.read()
    assert [tuple(one) for one in heap.mapped] == [(GROUP, GROUP + 50 * PAGE, 200_000)]


def test_a_block_that_an_alignment_moved_by_more_than_a_mebibyte_is_found_by_its_header() -> None:
    written = MuslWriter()
    written.group(GROUP, 63, ["3000+98304"], 400, stride=400 * PAGE - 16)
    assert [tuple(one) for one in written.read().mapped] == [(GROUP, GROUP + 400 * PAGE, 3000)]


def test_the_context_is_found_behind_thousands_of_addresses_of_pages() -> None:
    written = MuslWriter()
    written.group(GROUP, 19, [10, 1002, "free"], 1, stride=1008)
    written.words(DATA - 8 * PAGE, *range(AREA, AREA + 4096 * PAGE, PAGE))
    heap = read_musl_heap(written.memory, 8, [(DATA - 8 * PAGE, DATA + PAGE)], most_blocks=1000)
    assert heap is not None
    assert sum(region.live_count for region in heap.regions) == 2


def test_data_without_a_context_has_no_heap() -> None:
    written = MuslWriter()
    written.memory.write(AREA, struct.pack("=Q", SECRET + 1))
    assert read_musl_heap(written.memory, 8, [(DATA, DATA + PAGE)], most_blocks=1000) is None


@pytest.mark.parametrize(
    ("addr", "data", "cause"),
    [
        (GROUP, b"\1", "does not lead to its record"),
        (GROUP + 12, b"\1", "has no header"),
        (GROUP + 13, b"\xe0\xff\xff", "has no header"),
        (AREA + 24 + 24, b"\xff\xff\xff\xff", "contradicts itself"),
        (AREA + 24 + 32, b"\x00\x0f", "contradicts itself"),
        (AREA + 8, struct.pack("=Q", AREA), "are no list"),
        (GROUP + 1008 + 8, b"\xff\xff\xff", "is larger than its slot"),
    ],
)
def test_what_does_not_fit_makes_the_heap_unknown(addr: int, data: bytes, cause: str) -> None:
    written = MuslWriter()
    written.group(GROUP, 19, [10, 1002, "free"], 1, stride=1008)
    written.memory.write(addr, data)
    heap = written.read()
    assert heap.regions == ()
    assert cause in heap.causes[0]


def test_a_page_that_is_not_in_memory_and_too_many_blocks_make_the_heap_unknown() -> None:
    written = MuslWriter()
    written.group(GROUP, 19, [10, 1002, "free"], 1, stride=1008)
    assert written.read(most_blocks=2).causes == (
        "it has more blocks than are read (with --findings up to 64 million)",
    )
    del written.memory.pages[GROUP // PAGE]
    assert written.read().causes == (f"what is at {GROUP:#x} is not in memory",)
