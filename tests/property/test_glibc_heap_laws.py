"""Laws of heaps of glibc: chunks are told apart as they were written, and damage gives causes, never an error."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.glibc.words import LiveHeap
from tests.examples import examples
from tests.glibcwriter import PAGE, Chunk, HeapWriter

WORDS = st.sampled_from([8, 4])
STATES = st.sampled_from(["used", "used", "binned", "fast", "cached"])
# Fastbins have chunks of up to 96 bytes, with 64 bits of 128.
CHUNKS = st.lists(
    st.builds(Chunk, st.integers(2, 6).map(lambda units: 16 * units), STATES), min_size=1, max_size=40
).map(
    lambda chunks: [
        chunk
        for chunk, after in zip(chunks, [*chunks[1:], Chunk(32)], strict=True)
        if not (chunk.state == after.state == "binned")
    ]
)


def read(written: HeapWriter) -> LiveHeap | None:
    nameless = [(0x7F2000000000, 0x7F2000000000 + 64 * PAGE)]
    return read_glibc_heap(written.memory, written.word, written.data, nameless, page_bytes=PAGE, most_chunks=1000)


def pairs(flat: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


@examples(300)
@given(WORDS, CHUNKS)
def test_every_chunk_is_what_it_was_written_as(word: int, chunks: list[Chunk]) -> None:
    written = HeapWriter(word)
    # The last one borders on what was never handed out: a free one would be a part of it.
    first, end = written.main_heap(*chunks, Chunk(32))
    heap = read(written)
    assert heap is not None
    (region,) = heap.regions
    at = first + region.own_bytes
    expected: dict[str, list[tuple[int, int]]] = {"used": [], "binned": [], "fast": [], "cached": []}
    for size, state in (*chunks, Chunk(32)):
        expected[state].append((at, at + size))
        at += size
    assert (region.top_addr, region.end_addr) == (at, end)
    assert pairs(region.binned) == expected["binned"]
    assert pairs(region.fast) == expected["fast"]
    assert pairs(region.cached) == expected["cached"]
    assert region.live_count == len(expected["used"])


@examples(400)
@given(WORDS, CHUNKS, st.data())
def test_damaged_memory_gives_regions_whose_parts_add_up_or_causes(
    word: int, chunks: list[Chunk], data: st.DataObject
) -> None:
    written = HeapWriter(word)
    arena = written.thread_heaps(chunks, [Chunk(64), Chunk(32)])
    written.main_heap(*chunks, Chunk(32), next_addr=arena)
    whole = read(written)
    assert whole is not None
    assert whole.causes == ()
    numbers = sorted(written.memory.pages)
    values = st.one_of(
        st.integers(0, (1 << 8 * word) - 1), st.sampled_from([0, 1, 33, written.heap_addr, written.main_addr])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.sampled_from(numbers))
        if data.draw(st.integers(0, 9)):
            written.words(number * PAGE + word * data.draw(st.integers(0, PAGE // word - 1)), data.draw(values))
        else:
            written.memory.pages.pop(number, None)
    written.memory.read_bytes = 0
    heap = read(written)
    # Whatever is there, little more is read than is there, however often it is tried.
    assert written.memory.read_bytes < 100 * len(numbers) * PAGE
    if heap is None:
        return
    for region in heap.regions:
        assert region.start_addr <= region.first_addr <= region.top_addr <= region.end_addr
        free = sorted([*pairs(region.binned), *pairs(region.fast), *pairs(region.cached)])
        assert all(start < end for start, end in free)
        assert all(before[1] <= after[0] for before, after in pairwise(free))
        assert all(region.first_addr <= start and end <= region.top_addr for start, end in free)
        assert region.live_count >= 0
