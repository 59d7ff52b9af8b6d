"""The bytes that an allocator adds to what is asked for: a model of its block sizes, not a measurement.

A profile has the mean size of the blocks of a call stack. If the mean is a whole number, all blocks are taken to have
it; otherwise their sizes are taken to be spread evenly over a quarter below and above it.

Sources: malloc/malloc.c of glibc 2.36; sc.c of jemalloc 5.3; page-queue.c of mimalloc 2.0; mallocng of musl 1.2.3;
common.cc of gperftools 2.10.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final, NamedTuple

from footprint.heap.profile import CallTree
from footprint.process.mallocng import SLOT_BYTES

_PAGE_BYTES: Final = 4096
_MMAP_THRESHOLD_BYTES: Final = 128 << 10
_MOST_MMAP_THRESHOLD_BYTES: Final = 32 << 20
_SAMPLES: Final = 64
_TCMALLOC_PAGE_BYTES: Final = 8 << 10
_TCMALLOC_MOST_BYTES: Final = 256 << 10
_MUSL_HEADER_BYTES: Final = 4
_MUSL_RECORD_BYTES: Final = 40
_MUSL_SMALL_COUNTS: Final = (30, 31, 20, 31, 25, 21, 18, 31, 28)
_MUSL_COUNTS: Final = (28, 24, 20, 32)
_MUSL_MOST_GROUP_BYTES: Final = 16 << 16


class AllocatorModel(NamedTuple):
    """The block sizes of one allocator.

    Attributes:
        name: Its name.
        block_bytes: Returns what the allocator uses for a block that is asked for with this size.
        maps_large_blocks: Whether it maps each large block on its own, and unmaps it when it is freed.
    """

    name: str
    block_bytes: Callable[[int], int]
    maps_large_blocks: bool = False

    def added_bytes(self, tree: CallTree) -> int | None:
        """Add up what it adds to the blocks of a tree; None where the tree does not count blocks."""
        own_blocks = tree.own_blocks()
        if own_blocks is None:
            return None
        return sum(
            self._added_to(size_bytes, block_count)
            for size_bytes, block_count in zip(tree.own_bytes(), own_blocks, strict=True)
            if block_count > 0 and size_bytes >= 0
        )

    def mapped_bytes(self, tree: CallTree, allocated: CallTree | None) -> int:
        """Add up the blocks of a tree that are surely mapped, each on its own, with what is added to them.

        A block is mapped from a threshold on, which rises to the size of each mapped block that is freed.

        Args:
            tree: The live blocks.
            allocated: All blocks of the run by the same stacks; None where the profile does not count them.
        """
        own_blocks = tree.own_blocks()
        if own_blocks is None or not self.maps_large_blocks:
            return 0
        own_bytes = tree.own_bytes()
        threshold_bytes = _MMAP_THRESHOLD_BYTES
        if allocated is not None and allocated.has_shape_of(tree):
            all_blocks = allocated.own_blocks() or own_blocks
            for size_bytes, count, live_count in zip(allocated.own_bytes(), all_blocks, own_blocks, strict=True):
                if count > live_count and threshold_bytes < size_bytes // count <= _MOST_MMAP_THRESHOLD_BYTES:
                    threshold_bytes = size_bytes // count + 1
        return sum(
            size_bytes + self._added_to(size_bytes, block_count)
            for size_bytes, block_count in zip(own_bytes, own_blocks, strict=True)
            if block_count > 0 and size_bytes // block_count >= threshold_bytes
        )

    def _added_to(self, size_bytes: int, block_count: int) -> int:
        mean_bytes, rest = divmod(size_bytes, block_count)
        if not rest:
            return (self.block_bytes(mean_bytes) - mean_bytes) * block_count
        return round(_added_to_spread(self.block_bytes, mean_bytes) * block_count)


@lru_cache(maxsize=1 << 14)
def _added_to_spread(block_bytes: Callable[[int], int], mean_bytes: int) -> float:
    # An odd step meets every remainder of a division by the steps of allocators, which are powers of two.
    sizes = range(mean_bytes * 3 // 4, mean_bytes * 5 // 4 + 1, mean_bytes // (2 * _SAMPLES) | 1)
    return sum(block_bytes(size) - size for size in sizes) / len(sizes)


def _glibc_chunk_bytes(size_bytes: int) -> int:
    """Return the chunk: its size word and the block, in steps of 16 bytes; a mapped one has two words, in pages."""
    if size_bytes >= _MMAP_THRESHOLD_BYTES:
        return -(-(size_bytes + 16) // _PAGE_BYTES) * _PAGE_BYTES
    return max(32, (size_bytes + 8 + 15) & ~15)


def _glibc_32_chunk_bytes(size_bytes: int) -> int:
    """Return the same with 32 bits: words of 4 bytes, and blocks aligned to 16 all the same."""
    if size_bytes >= _MMAP_THRESHOLD_BYTES:
        return -(-(size_bytes + 8 + 15) // _PAGE_BYTES) * _PAGE_BYTES
    return max(16, (size_bytes + 4 + 15) & ~15)


def _size_class_bytes(size_bytes: int) -> int:
    """Return the size class: steps of 16 bytes up to 128, then four classes for each doubling.

    Of a large block the pages behind its last byte are its own, too, but they are never touched.
    """
    if size_bytes <= 8:
        return 8
    if size_bytes <= 128:
        return (size_bytes + 15) & ~15
    step_bytes = min(1 << ((size_bytes - 1).bit_length() - 3), _PAGE_BYTES)
    return -(-size_bytes // step_bytes) * step_bytes


def _musl_slot_bytes(size_bytes: int) -> int:
    """Return the slot, the smallest that has four bytes more, with its part of a group; large blocks are in pages."""
    if size_bytes >= SLOT_BYTES[-1] - _MUSL_HEADER_BYTES:
        return -(-(size_bytes + 16 + _MUSL_HEADER_BYTES) // _PAGE_BYTES) * _PAGE_BYTES
    return round(_musl_part_bytes(bisect_left(SLOT_BYTES, size_bytes + _MUSL_HEADER_BYTES)))


@cache
def _musl_part_bytes(slot_class: int) -> float:
    """Return a slot's part of a group with as many slots as one of a program that has many: in pages, or in a slot."""
    slot_bytes = SLOT_BYTES[slot_class]
    count = _MUSL_SMALL_COUNTS[slot_class] if slot_class < len(_MUSL_SMALL_COUNTS) else _MUSL_COUNTS[slot_class & 3]
    while slot_bytes * count >= _MUSL_MOST_GROUP_BYTES:
        count >>= 1
    group_bytes = 16 + slot_bytes * count
    if group_bytes > _PAGE_BYTES // 2:
        whole_bytes: float = -(-group_bytes // _PAGE_BYTES) * _PAGE_BYTES
    else:
        whole_bytes = _musl_part_bytes(bisect_left(SLOT_BYTES, group_bytes))
    return (whole_bytes + _MUSL_RECORD_BYTES) / count


def _tcmalloc_class_bytes(size_bytes: int) -> int:
    """Return the part of a block in the pages of its size class.

    One that is larger than all classes has pages, of which the last ones are never touched.
    """
    if size_bytes > _TCMALLOC_MOST_BYTES:
        return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES
    classes, parts = _tcmalloc_classes()
    return parts[bisect_left(classes, size_bytes)]


@cache
def _tcmalloc_classes() -> tuple[list[int], list[int]]:
    """Compute the size classes, and what a block of each has of the pages that are divided into such blocks.

    Classes are in steps of an eighth, without those of which no more fit into the same pages.
    """
    sizes: list[int] = []
    parts: list[int] = []
    last_span_bytes = 0
    size_bytes = 8
    while size_bytes <= _TCMALLOC_MOST_BYTES:
        moved_count = max(2, min(32, (64 << 10) // size_bytes)) // 4
        span_bytes = _TCMALLOC_PAGE_BYTES
        while span_bytes % size_bytes > span_bytes >> 3 or span_bytes // size_bytes < moved_count:
            span_bytes += _TCMALLOC_PAGE_BYTES
        if span_bytes == last_span_bytes and span_bytes // size_bytes == span_bytes // sizes[-1]:
            sizes.pop()
            parts.pop()
        sizes.append(size_bytes)
        parts.append(round(span_bytes / (span_bytes // size_bytes)))
        last_span_bytes = span_bytes
        step_bytes = max(8 if size_bytes < 16 else 16, (1 << size_bytes.bit_length() - 1) // 8)
        size_bytes += min(step_bytes, _TCMALLOC_PAGE_BYTES)
    return sizes, parts


GLIBC: Final = AllocatorModel("glibc", _glibc_chunk_bytes, maps_large_blocks=True)
GLIBC_32: Final = AllocatorModel("glibc", _glibc_32_chunk_bytes, maps_large_blocks=True)
JEMALLOC: Final = AllocatorModel("jemalloc", _size_class_bytes)
MIMALLOC: Final = AllocatorModel("mimalloc", _size_class_bytes)
MUSL: Final = AllocatorModel("musl", _musl_slot_bytes)
TCMALLOC: Final = AllocatorModel("tcmalloc", _tcmalloc_class_bytes)
