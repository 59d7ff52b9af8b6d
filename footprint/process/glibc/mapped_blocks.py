"""The large blocks that malloc maps alone, and how many of them it counts."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from footprint.process.glibc.words import ALIGNMENT, ProcessWords

__all__ = ("MappedCounts", "find_mapped_blocks", "mapped_counts")

_IS_MAPPED, _FLAGS = 2, 7
_COUNTS_BYTES: Final = 16  # number now, most allowed, most so far, whether the threshold is fixed
_MOST_PAGES: Final = 1 << 14
_MOST_SEARCHED: Final = 1 << 9


class MappedCounts(NamedTuple):
    """What malloc counts of these blocks: their number, and the size of their mappings."""

    block_count: int
    size_bytes: int


def mapped_counts(
    words: ProcessWords, data: Iterable[tuple[int, memoryview]], heap_addr: int, page_bytes: int
) -> MappedCounts | None:
    """Find the counts in `mp_`, which ends with the start of the heap and has them before; return None without it."""
    word = words.layout.word_bytes
    # From 2.35 on the counts of 64 bits begin in the middle of a word.
    gaps = (4, 0) if word == 8 else (0,)
    for _, piece in data:
        raw = piece.cast("B")
        for place in [place for place, value in enumerate(piece) if value == heap_addr]:
            for gap in gaps:
                at = (place - 2) * word - gap - _COUNTS_BYTES
                if at < 0:
                    continue
                count, _, most_count, is_fixed = raw[at : at + _COUNTS_BYTES].cast("i")
                size_bytes, most_bytes = piece[place - 2], piece[place - 1]
                is_right = 0 <= count <= most_count and is_fixed in {0, 1} and size_bytes <= most_bytes
                is_right = is_right and bool(count) is bool(size_bytes) and bool(most_count) is bool(most_bytes)
                if is_right and size_bytes % page_bytes == 0:
                    return MappedCounts(count, size_bytes)
    return None


def find_mapped_blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], counts: MappedCounts, page_bytes: int
) -> tuple[tuple[int, int], ...]:
    """Find the blocks by their headers; return start and end of each, or none if they are more than malloc counts.

    Blocks of neighbouring mappings lie one behind the other. `mappings` are those where blocks can be.
    """
    found = tuple(_blocks(words, mappings, counts.block_count, page_bytes))
    return found if sum([end - start for start, end in found]) <= counts.size_bytes else ()


def _blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], count: int, page_bytes: int
) -> Iterator[tuple[int, int]]:
    """Find blocks from the start of each mapping on; where these are not all, search the rest page by page."""
    pages_left, searches_left = _MOST_PAGES, _MOST_SEARCHED
    rests = []
    for start, end in mappings:
        at: int | None = start
        while at is not None and count and searches_left:
            page, searches_left = words.memory.skip(at, end), searches_left - 1
            # An alignment moves a header: the whole page is searched.
            block = _block_in(words, page, at, end, page_bytes, is_searched=True) if page < end else None
            if block is None:
                rests.append((page, end))
                break
            count, at = count - 1, block[1]
            yield block
    for start, end in rests:
        at = start
        while count and pages_left and at < end:
            page, pages_left = words.memory.skip(at, end), pages_left - 1
            block = _block_in(words, page, at, end, page_bytes, is_searched=False) if page < end else None
            at = block[1] if block else page - page % page_bytes + page_bytes
            if block:
                count -= 1
                yield block


def _block_in(
    words: ProcessWords, page: int, least: int, end: int, page_bytes: int, *, is_searched: bool
) -> tuple[int, int] | None:
    """Return the block whose header is in a page: at its start, or anywhere if it `is_searched`."""
    word = words.layout.word_bytes
    usual = ALIGNMENT - words.header_bytes
    told = words.of(words.memory.read(page, page_bytes if is_searched else usual + words.header_bytes))
    for place in range(usual // word, len(told) - 1, ALIGNMENT // word):
        lead_bytes, size = told[place], told[place + 1]
        if size & _FLAGS != _IS_MAPPED:
            continue
        start, past = page + place * word - lead_bytes, page + place * word + (size & ~_FLAGS)
        if start % page_bytes == past % page_bytes == 0 and least <= start < past <= end:
            return start, past
    return None
