"""The heap of musl's malloc (mallocng), read from the memory of a process: which of its addresses are in use.

No symbol is needed. Its context in the data of the C library has a secret of 64 bits, and leads to a list of pages that
begin with the same secret: nothing else looks like this. These pages have a record of each group, which leads to the
group, and the group back to it. A group has up to 32 slots of one size, and a bit for each that is not in use; a small
one lies in a slot of another one. The header of a block says how much of its slot was asked for.

Source: src/malloc/mallocng/meta.h, malloc.c and free.c of musl 1.2.1 to 1.2.5.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from footprint.process.glibc.words import (
    LAYOUTS,
    HeapMemory,
    HeapRegion,
    LiveHeap,
    MappedBlock,
    MisfitError,
    ProcessWords,
)

_UNIT_BYTES: Final = 16
_HEADER_BYTES: Final = 4
SLOT_BYTES: Final[tuple[int, ...]] = tuple(
    _UNIT_BYTES * units
    for units in (
        *range(1, 11),
        *(12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127, 146, 170, 204, 255, 292, 340, 409, 511, 584, 682),
        *(818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191),
    )
)
"""The size of a slot of each class; four bytes of it are the header of the next one."""
_ALONE: Final = 63  # the class of a block that is mapped alone
_AREA_BYTES: Final = 4096
_MOST_DATA_BYTES: Final = 4 << 20
_MOST_AREAS: Final = 1 << 16
_MOST_CONTEXTS: Final = 1 << 8
_TRIES: Final = 6
_WHOLE_STRIDE_BYTES: Final = 2048  # of groups with larger slots only the headers are read
_HAS_OFFSET, _IS_GROUP, _HAS_LONG_REST = 7, 6, 5


class _Form(NamedTuple):
    """The structures for one size of pointers: the records, the first of a page, and the context.

    Attributes:
        head_words: From the secret to the list of pages; one more where the size of a page is in the context.
        init_words: From the number that says whether the context is in use to the list of pages.
    """

    meta: Struct
    first_offset: int
    head_words: tuple[int, int]
    init_words: int


_FORMS: Final = {8: _Form(Struct("=QQQIIQ"), 24, (7, 8), 6), 4: _Form(Struct("=IIIIII"), 16, (9, 10), 7)}


class _Group(NamedTuple):
    """A group: its record, and what it says.

    Attributes:
        unused: A bit for each slot that is not in use.
        is_freeable: Whether it is not the rest of the last page of an object.
    """

    meta_addr: int
    addr: int
    unused: int
    slot_count: int
    slot_class: int
    map_bytes: int
    is_freeable: bool

    @property
    def stride_bytes(self) -> int:
        if self.slot_count == 1 and self.map_bytes:
            return self.map_bytes - _UNIT_BYTES
        return SLOT_BYTES[self.slot_class]

    @property
    def end_addr(self) -> int:
        return self.addr + (self.map_bytes or _UNIT_BYTES + self.slot_count * self.stride_bytes)

    @property
    def is_inner(self) -> bool:
        """Whether it lies in a slot of another group."""
        return not self.map_bytes and self.is_freeable


def read_musl_heap(
    memory: HeapMemory, word_bytes: int, data: Iterable[tuple[int, int]], *, most_blocks: int
) -> LiveHeap | None:
    """Read the heap of a process; return None where nothing in its data is the context of this allocator.

    The cost is linear in the number of blocks.

    Args:
        memory: Its memory.
        word_bytes: The size of a pointer.
        data: The writable data of its C library with `.bss`, each with start and end address.
        most_blocks: The number of slots that are read at most.
    """
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    context = _context(words, data)
    if context is None:
        return None
    cause, is_changing = "", False
    for _ in range(_TRIES):
        try:
            pages = _pages(words, *context)
            regions, mapped = _Slots(words, most_blocks).read(_groups(words, pages))
            is_changing = _pages(words, *context) != pages
        except MisfitError as misfit:
            cause = str(misfit)
            continue
        if not is_changing:
            break
        parts = regions, mapped
    else:
        if not is_changing:
            return LiveHeap("musl", 0, 1, (), (), (cause,), is_changing=False)
        regions, mapped = parts
    areas = [_region(addr, addr + _AREA_BYTES, (), _AREA_BYTES, 0) for addr in pages]
    return LiveHeap("musl", 0, 1, tuple(_joined([*regions, *areas])), mapped, (), is_changing=is_changing)


def _context(words: ProcessWords, data: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the secret of the context, and the first page of records."""
    word, left = words.layout.word_bytes, _MOST_CONTEXTS
    form = _FORMS[word]
    for start, end in data:
        at = words.memory.skip(start, end)
        while at < end:
            piece = words.of(words.memory.read(at, min(end - at, _MOST_DATA_BYTES)))
            if not piece:
                break
            data_bytes = piece.cast("B")
            for place, value in enumerate(piece):
                if not value or value % _AREA_BYTES or place < form.head_words[0] or not left:
                    continue
                # A program may have thousands of addresses of pages.
                first = (place - form.init_words) * word
                if int.from_bytes(data_bytes[first : first + 4], sys.byteorder) != 1:
                    continue
                left -= 1
                for before in form.head_words:
                    first = (place - before) * word
                    secret = int.from_bytes(data_bytes[first : first + 8], sys.byteorder) if first >= 0 else 0
                    if secret and _page(words, value, secret) is not None:
                        return secret, value
            at = words.memory.skip(at + len(piece) * word, end)
    return None


def _page(words: ProcessWords, addr: int, secret: int) -> bytes | None:
    """Return a page of records, if it is one."""
    form, word = _FORMS[words.layout.word_bytes], words.layout.word_bytes
    page = words.memory.read(addr, _AREA_BYTES)
    count = int.from_bytes(page[8 + word : 12 + word], sys.byteorder)
    is_right = len(page) == _AREA_BYTES and int.from_bytes(page[:8], sys.byteorder) == secret
    return page if is_right and count == (_AREA_BYTES - form.first_offset) // form.meta.size else None


def _pages(words: ProcessWords, secret: int, addr: int) -> dict[int, bytes]:
    """Return all pages of records by their addresses."""
    pages: dict[int, bytes] = {}
    word = words.layout.word_bytes
    while addr:
        page = _page(words, addr, secret)
        if page is None or addr in pages or len(pages) >= _MOST_AREAS:
            raise MisfitError("the pages of its groups are no list")
        pages[addr] = page
        addr = int.from_bytes(page[8 : 8 + word], sys.byteorder)
    return pages


def _groups(words: ProcessWords, pages: dict[int, bytes]) -> Iterator[_Group]:
    """Return the groups of some pages of records.

    Raises:
        MisfitError: If a record is none.
    """
    form = _FORMS[words.layout.word_bytes]
    for addr, page in pages.items():
        size_bytes = form.meta.size
        past = form.first_offset + (_AREA_BYTES - form.first_offset) // size_bytes * size_bytes
        records = enumerate(form.meta.iter_unpack(page[form.first_offset : past]))
        for place, (_, _, mem, avail, freed, flags) in records:
            if not mem:
                continue
            meta_addr, slot_count, slot_class = (
                addr + form.first_offset + place * size_bytes,
                (flags & 31) + 1,
                flags >> 6 & 63,
            )
            map_bytes = (flags >> 12) * _AREA_BYTES
            is_alone = slot_class == _ALONE and map_bytes and slot_count == 1
            if avail & freed or (avail | freed) >> slot_count or not (slot_class < len(SLOT_BYTES) or is_alone):
                raise MisfitError(f"the record of a group at {meta_addr:#x} contradicts itself")
            group = _Group(meta_addr, mem, avail | freed, slot_count, slot_class, map_bytes, bool(flags & 32))
            if (
                words.read(mem, 1)[0] != meta_addr
                or group.end_addr < mem + _UNIT_BYTES + slot_count * group.stride_bytes
            ):
                raise MisfitError(f"the group at {mem:#x} does not lead to its record")
            yield group


class _Slots:
    """Reads the slots of groups."""

    def __init__(self, words: ProcessWords, most_blocks: int) -> None:
        self._memory = words.memory
        self._left = most_blocks
        self._inner_count = 0

    def read(self, groups: Iterable[_Group]) -> tuple[list[HeapRegion], tuple[MappedBlock, ...]]:
        """Return the memory of the groups, and the blocks that are mapped alone.

        Raises:
            MisfitError: If a block is none, if groups overlap, or if there are too many slots.
        """
        outer: list[tuple[int, int]] = []
        mapped: list[MappedBlock] = []
        free: list[tuple[int, int]] = []
        live: list[tuple[int, int]] = []
        inner_count = 0
        for group in groups:
            self._left -= group.slot_count
            if self._left < 0:
                raise MisfitError("it has more blocks than are read (with --findings up to 64 million)")
            blocks = list(self._blocks(group))
            if group.slot_class == _ALONE:
                mapped += [MappedBlock(group.addr, group.end_addr, size_bytes) for _, size_bytes in blocks]
                continue
            live += blocks
            if group.is_inner:
                inner_count += 1
            else:
                outer.append((group.addr, group.end_addr))
            first, stride = group.addr + _UNIT_BYTES - _HEADER_BYTES, group.stride_bytes
            free += [
                (first + place * stride, first + place * stride + stride)
                for place in range(group.slot_count)
                if group.unused >> place & 1
            ]
        if inner_count != self._inner_count:
            raise MisfitError(f"{self._inner_count:,} slots have groups in them, of which {inner_count:,} are recorded")
        return _regions(sorted(outer), sorted(free), live), tuple(sorted(mapped))

    def _blocks(self, group: _Group) -> Iterator[tuple[int, int]]:
        """Return address and size of each block of a group, as they were asked for."""
        stride, first = group.stride_bytes, group.addr + _UNIT_BYTES
        is_whole = stride <= _WHOLE_STRIDE_BYTES
        data = self._memory.read(group.addr, _UNIT_BYTES + group.slot_count * stride) if is_whole else b""

        def read(addr: int, size_bytes: int) -> bytes:
            start = addr - group.addr
            part = data[start : start + size_bytes]
            part = part if len(part) == size_bytes else self._memory.read(addr, size_bytes)
            if len(part) < size_bytes:
                raise MisfitError(f"what is at {addr:#x} is not in memory")
            return part

        for place in range(group.slot_count):
            if group.unused >> place & 1:
                continue
            start = first + place * stride
            end = start + stride - _HEADER_BYTES
            at, header = start, read(start - _HEADER_BYTES, _HEADER_BYTES)
            if header[1] >> 5 == _HAS_OFFSET:
                at, header = _aligned_block(read, first, start, end, int.from_bytes(header[2:], sys.byteorder))
            rest_bytes = header[1] >> 5
            if header[1] & 31 != place or header[0] or rest_bytes == _HAS_OFFSET:
                raise MisfitError(f"the block at {start:#x} has no header")
            if rest_bytes == _IS_GROUP:
                self._inner_count += 1
                continue
            if rest_bytes == _HAS_LONG_REST:
                rest_bytes = int.from_bytes(read(end - 4, 4), sys.byteorder)
            if rest_bytes > end - at:
                raise MisfitError(f"the block at {start:#x} is larger than its slot")
            yield at, end - at - rest_bytes


def _aligned_block(
    read: Callable[[int, int], bytes], first: int, start: int, end: int, units: int
) -> tuple[int, bytes]:
    """Return where a block begins that was moved in its slot by an alignment that was asked for, and its header.

    Only 16 bits of the distance are at the start of the slot. The header has the whole one, from the first slot on: in
    16 bits, or in the 32 bits before it.

    Raises:
        MisfitError: If there is none.
    """
    for at in range(start + _UNIT_BYTES * units, end, _UNIT_BYTES << 16):
        with suppress(MisfitError):
            header = read(at - _HEADER_BYTES, _HEADER_BYTES)
            number = read(at - 2 * _HEADER_BYTES, _HEADER_BYTES) if header[0] else header[2:]
            if int.from_bytes(number, sys.byteorder) == (at - first) // _UNIT_BYTES:
                return at, b"\0" + header[1:]
    raise MisfitError(f"the block at {start:#x} has no header")


def _region(start: int, end: int, free: Iterable[int], own_bytes: int, live_count: int) -> HeapRegion:
    binned = array("Q", free)
    return HeapRegion(
        start,
        start,
        end,
        end,
        is_main=False,
        is_last=False,
        binned=binned,
        fast=(),
        cached=(),
        own_bytes=own_bytes,
        live_count=live_count,
    )


def _regions(
    outer: list[tuple[int, int]], free: list[tuple[int, int]], live: list[tuple[int, int]]
) -> list[HeapRegion]:
    """Divide the memory of groups, which is ascending, as are the free slots, by what lies in each."""
    starts = [start for start, _ in outer]
    counts, used, slots = [0] * len(outer), [0] * len(outer), [array("Q") for _ in outer]
    for addr, size_bytes in live:
        place = bisect_right(starts, addr) - 1
        counts[place] += 1
        used[place] += size_bytes
    past = 0
    for start, end in free:
        place = bisect_right(starts, start) - 1
        if start < past or place < 0 or end > outer[place][1]:
            raise MisfitError(f"the slot at {start:#x} lies in another one")
        slots[place].extend((start, end))
        past = end
    regions: list[HeapRegion] = []
    for (start, end), count, used_bytes, slot_bounds in zip(outer, counts, used, slots, strict=True):
        own_bytes = end - start - used_bytes - sum(slot_bounds[1::2]) + sum(slot_bounds[::2])
        if own_bytes < 0 or (regions and regions[-1].end_addr > start):
            raise MisfitError(f"the group at {start:#x} has more blocks than room")
        regions.append(_region(start, end, slot_bounds, own_bytes, count))
    return regions


def _joined(regions: Iterable[HeapRegion]) -> Iterator[HeapRegion]:
    """Join regions side by side."""
    run: list[HeapRegion] = []
    for region in sorted(regions, key=attrgetter("start_addr")):
        if run and run[-1].end_addr != region.start_addr:
            yield _whole(run)
            run = []
        run.append(region)
    if run:
        yield _whole(run)


def _whole(run: Sequence[HeapRegion]) -> HeapRegion:
    free = chain.from_iterable([region.binned for region in run])
    own_bytes, live_count = sum([r.own_bytes for r in run]), sum([r.live_count for r in run])
    return _region(run[0].start_addr, run[-1].end_addr, free, own_bytes, live_count)
