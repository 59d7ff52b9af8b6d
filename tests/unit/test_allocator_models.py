"""What an allocator adds to a block: the sizes that malloc_usable_size(3) returns with the real ones."""

from array import array

import pytest

from footprint.attribution.allocator_models import (
    GLIBC,
    GLIBC_32,
    JEMALLOC,
    MIMALLOC,
    MUSL,
    TCMALLOC,
    AllocatorModel,
)
from footprint.heap.profile import CallTree, Frame


def stacks(*rows: tuple[int, int]) -> CallTree:
    """Return a tree of stacks of one function each, with these bytes and blocks."""
    total_bytes, total_blocks = (sum(column) for column in zip(*rows, strict=True))
    return CallTree(
        tuple(Frame(addr) for addr in range(len(rows) + 1)),
        array("i", [-1, *[0] * len(rows)]),
        array("i", range(len(rows) + 1)),
        array("q", [total_bytes, *(size_bytes for size_bytes, _ in rows)]),
        array("q", [total_blocks, *(count for _, count in rows)]),
    )


@pytest.mark.parametrize(
    ("model", "size_bytes", "block_bytes"),
    [
        # A chunk of glibc: 8 bytes and the block, in steps of 16, at least 32.
        (GLIBC, 0, 32),
        (GLIBC, 24, 32),
        (GLIBC, 25, 48),
        (GLIBC, 1000, 1008),
        # What glibc maps has 16 bytes before it, and whole pages.
        (GLIBC, 1_000_000, 1_003_520),
        # With 32 bits: 4 bytes and the block, in steps of 16, at least 16.
        (GLIBC_32, 0, 16),
        (GLIBC_32, 12, 16),
        (GLIBC_32, 13, 32),
        (GLIBC_32, 1_000_000, 1_003_520),
        (JEMALLOC, 1, 8),
        (JEMALLOC, 9, 16),
        (JEMALLOC, 129, 160),
        (JEMALLOC, 321, 384),
        (JEMALLOC, 4097, 5120),
        # Of the class of 1,048,576 bytes the last 48,576 are never touched but for the rest of a page.
        (JEMALLOC, 1_000_000, 1_003_520),
        (MIMALLOC, 24, 32),
        (MIMALLOC, 500, 512),
        # musl: slots of 16 bytes in groups of 30, which lie in 32 slots of 496 in four pages; a record has 40 bytes.
        (MUSL, 12, 18),
        (MUSL, 13, 34),
        # 20 slots of 192 in a page.
        (MUSL, 160, 207),
        # 8 slots of 131,056, the largest, in 256 pages; a larger block is mapped alone.
        (MUSL, 110_000, 131_077),
        (MUSL, 131_051, 131_077),
        (MUSL, 131_052, 131_072),
        # tcmalloc: steps of an eighth, and a class only where fewer fit into as many pages: 512, 56, 11, 9 into 8 KiB.
        (TCMALLOC, 9, 16),
        (TCMALLOC, 130, 146),
        (TCMALLOC, 700, 745),
        (TCMALLOC, 800, 910),
        (TCMALLOC, 262_144, 262_144),
        (TCMALLOC, 300_000, 303_104),
    ],
)
def test_a_block_has_the_size_that_its_allocator_has_for_it(
    model: AllocatorModel, size_bytes: int, block_bytes: int
) -> None:
    assert model.block_bytes(size_bytes) == block_bytes


def test_what_is_added_is_the_same_for_each_block_where_the_mean_is_whole() -> None:
    assert GLIBC.added_bytes(stacks((2_400, 100), (1_000, 1))) == 100 * 8 + 8
    assert JEMALLOC.added_bytes(stacks((13_000, 100))) == 100 * 30


def test_where_sizes_differ_they_are_taken_to_be_spread_around_the_mean() -> None:
    # Sizes of every remainder by 16: 8 bytes of the header, and 7.5 on average to the next step.
    added = GLIBC.added_bytes(stacks((400_050, 1_000)))
    assert added is not None
    assert 15_500 * 0.99 < added < 15_500 * 1.01


def test_sizes_are_spread_as_far_below_the_mean_as_above_it() -> None:
    # A model that adds as much as a block has: 40,050 in all, if the mean of the sizes is that of the blocks.
    added = AllocatorModel("twice", lambda size_bytes: 2 * size_bytes).added_bytes(stacks((40_050, 100)))
    assert added is not None
    assert 40_050 * 0.99 < added < 40_050 * 1.01


def test_without_blocks_nothing_is_known() -> None:
    tree = stacks((2_400, 100))
    assert GLIBC.added_bytes(CallTree(tree.frames, tree.parents, tree.frame_indexes, tree.node_bytes)) is None


def test_glibc_maps_a_block_from_128_kib_on_or_from_the_largest_that_was_freed() -> None:
    live = stacks((3_000_000, 3), (600_000, 3), (130_000, 1))
    assert GLIBC.mapped_bytes(live, None) == 3 * 1_003_520 + 3 * 200_704
    # One more block of 200,000 bytes was allocated, and is not live.
    freed = stacks((3_000_000, 3), (800_000, 4), (130_000, 1))
    assert GLIBC.mapped_bytes(live, freed) == 3 * 1_003_520
    assert JEMALLOC.mapped_bytes(live, None) == 0
