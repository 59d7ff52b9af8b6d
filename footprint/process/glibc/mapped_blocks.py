"""The large blocks that malloc maps alone, and how many of them it counts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from footprint.process.glibc.words import ALIGNMENT, MappedBlock, ProcessWords

_IS_MAPPED, _FLAGS = 2, 7
_COUNTS_BYTES: Final = 16  # number now, most allowed, most so far, whether the threshold is fixed
_WINDOW_BYTES: Final = 1 << 17
_MOST_SEARCHED_BYTES: Final = 1 << 30
_MOST_SPAN_BYTES: Final = 16 << 30
_MOST_ALIGNED_BITS: Final = 31


class MappedCounts(NamedTuple):
    """What malloc counts of these blocks: their number, and the size of their mappings.

    Attributes:
        heap_addr: Where the heap begins, or what was mapped first instead.
    """

    block_count: int
    size_bytes: int
    heap_addr: int


def mapped_counts(
    words: ProcessWords,
    data: Iterable[tuple[int, memoryview]],
    heaps: Sequence[tuple[int, int]],
    page_bytes: int,
) -> Iterator[MappedCounts]:
    """Find what may be the counts in `mp_`, which ends with the start of the heap and has them before.

    Args:
        words: Reads the process.
        data: Pieces of the data of its C library, each with its address.
        heaps: Where the heap may begin, from and to; 0 for a heap that has not begun.
        page_bytes: The size of a page.
    """
    word = words.layout.word_bytes
    # From 2.35 on the counts of 64 bits begin in the middle of a word.
    gaps = (4, 0) if word == 8 else (0,)
    least, most = min([start for start, _ in heaps], default=0), max([end for _, end in heaps], default=0)
    for _, piece in data:
        raw = piece.cast("B")
        # Before the heap begins, its start is 0, as are many words: then there are counts only with blocks.
        for place in [
            place for place, value in enumerate(piece) if least <= value < most and (value or piece[place - 1])
        ]:
            if not _is_within(piece[place], heaps):
                continue
            for gap in gaps:
                at = (place - 2) * word - gap - _COUNTS_BYTES
                if at < 0:
                    continue
                count, _, most_count, is_fixed = raw[at : at + _COUNTS_BYTES].cast("i")
                size_bytes, most_bytes = piece[place - 2], piece[place - 1]
                is_right = 0 <= count <= most_count and is_fixed in {0, 1} and size_bytes <= most_bytes
                is_right = is_right and bool(count) is bool(size_bytes) and bool(most_count) is bool(most_bytes)
                if is_right and size_bytes % page_bytes == 0 and (piece[place] or size_bytes):
                    yield MappedCounts(count, size_bytes, piece[place])


def _is_within(addr: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(start <= addr < end for start, end in ranges)


def find_mapped_blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], counts: MappedCounts, page_bytes: int
) -> tuple[MappedBlock, ...]:
    """Find the blocks by their headers; return none if they are more than malloc counts.

    Blocks of neighbouring mappings lie one behind the other. `mappings` are those where blocks can be.
    """
    blocks = tuple(_blocks(words, mappings, counts.block_count, page_bytes))
    return blocks if sum([block.end_addr - block.start_addr for block in blocks]) <= counts.size_bytes else ()


def _blocks(
    words: ProcessWords, mappings: Iterable[tuple[int, int]], count: int, page_bytes: int
) -> Iterator[MappedBlock]:
    """Find blocks from the start of each mapping on; where these are not all, search the rest page by page."""
    rests = []
    for start, end in mappings:
        at = start
        while count and (block := _block_at(words, at, end, page_bytes)):
            count, at = count - 1, block.end_addr
            yield block
        rests.append((at, end))
    bytes_left, span_left = _MOST_SEARCHED_BYTES, _MOST_SPAN_BYTES
    for start, whole_end in rests:
        if not count:
            return
        # Reservations may be of terabytes: also to look for a page that is there takes time.
        end = min(whole_end, start + span_left)
        span_left -= end - start
        at = words.memory.skip(start, end)
        while count and bytes_left > 0 and at < end:
            page = _likely_page(words, at, end, page_bytes)
            bytes_left -= page - at + page_bytes
            block = _block_at(words, page, whole_end, page_bytes)
            if block:
                count -= 1
                yield block
            at = words.memory.skip(block.end_addr if block else page + page_bytes, end)


def _likely_page(words: ProcessWords, at: int, end: int, page_bytes: int) -> int:
    """Return the first page that may begin with the header of a block, or the last one that was looked at."""
    word, start = words.layout.word_bytes, at - at % page_bytes
    numbers = words.of(words.memory.read(start, min(_WINDOW_BYTES, end - start)))
    sizes = numbers[(ALIGNMENT - words.header_bytes) // word + 1 :: page_bytes // word].tolist()
    place = next((place for place, size in enumerate(sizes) if size & _FLAGS == _IS_MAPPED), len(sizes) - 1)
    return start + max(0, place) * page_bytes


def _block_at(words: ProcessWords, page: int, end: int, page_bytes: int) -> MappedBlock | None:
    """Return the block whose mapping begins at a page."""
    lead_bytes = ALIGNMENT - words.header_bytes
    chunk = words.of(words.memory.read(page + lead_bytes, words.header_bytes)) if page < end else ()
    if len(chunk) < 2 or chunk[0] != lead_bytes or chunk[1] & _FLAGS != _IS_MAPPED:
        return None
    chunk_end = page + lead_bytes + (chunk[1] & ~_FLAGS)
    # From 2.43 on two words are behind the chunk, of which the block has the first.
    rest_bytes = words.header_bytes if (chunk_end + words.header_bytes) % page_bytes == 0 else 0
    past = chunk_end + rest_bytes
    if past % page_bytes or not page < past <= end:
        return None
    header = _moved_header(words, page, chunk_end, page_bytes)
    return MappedBlock(page, past, chunk_end - header - words.header_bytes + rest_bytes // 2)


def _moved_header(words: ProcessWords, start: int, past: int, page_bytes: int) -> int:
    """Return where the header of a block is: an alignment that was asked for moves it, and leaves the first one behind.

    It is before the first aligned address that leaves room for a free chunk, or before the next one.
    """
    header_bytes = words.header_bytes
    usual = start + ALIGNMENT - header_bytes
    first_page = words.memory.read(start, page_bytes)
    is_written = any(first_page[usual - start + header_bytes :])
    for power in range(ALIGNMENT.bit_length(), _MOST_ALIGNED_BITS):
        alignment = 1 << power
        aligned = -(-(usual + header_bytes) // alignment) * alignment
        for header in (aligned - header_bytes, aligned + alignment - header_bytes):
            if header >= start + page_bytes and is_written:
                # What is before a moved block was never written.
                return usual
            if not usual < header < past - header_bytes:
                continue
            data = words.memory.read(header, header_bytes)
            if len(data) == header_bytes:
                before_bytes, size = words.of(data)
                if before_bytes == header - start and size == past - header | _IS_MAPPED:
                    return header
    return usual
