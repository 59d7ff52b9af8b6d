"""Page ranges as text: of each mapping that was looked into the first address, then a line a range.

    7f53a4c00000
    7f53a4c00000-7f53a4c21000
    7f53a4c30000-7f53a4c31000 swapped

Ranges are half-open and ascending; all numbers are hexadecimal.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from footprint.errors import InputError
from footprint.process.mappings import MemoryMap
from footprint.process.pages import PageRange

__all__ = ("Pages", "page_lines", "read_page_lines")

Pages = dict[int, tuple[PageRange, ...]]

_LINE: Final = re.compile(rb"([0-9a-f]{1,16})(?:-([0-9a-f]{1,16})( swapped)?)?")
_LONGEST_LINE_BYTES: Final = 41


def page_lines(pages: Pages) -> Iterator[bytes]:
    """Write page ranges."""
    for start_addr, ranges in pages.items():
        yield b"%x\n" % start_addr
        for one in ranges:
            yield b"%x-%x%s\n" % (one.start_addr, one.end_addr, b" swapped" if one.is_swapped else b"")


def read_page_lines(pieces: Iterable[bytes], memory: MemoryMap, page_bytes: int, source: str, name: str) -> Pages:
    """Read page ranges; each must be whole pages of the mapping that it stands under, behind the range before it.

    Args:
        pieces: The text as it was read.
        memory: The mappings that it tells of.
        page_bytes: The size of a page.
        source: The file that the text stands in, to use in messages.
        name: What it is called there.

    Raises:
        InputError: Where it is some other text, or contradicts the mappings.
    """
    ends = {mapping.start_addr: mapping.end_addr for mapping in memory.mappings}
    pages: dict[int, list[PageRange]] = {}
    ranges: list[PageRange] = []
    least = end = 0
    for number, line in enumerate(_lines(pieces), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise InputError(source, f"{name}, line {number} is neither a mapping nor a range of pages")
        start = int(found[1], 16)
        if found[2] is None:
            if start not in ends or start in pages:
                raise InputError(source, f"{name}, line {number}: no mapping starts at {start:#x}, or it stood before")
            least, end, ranges = start, ends[start], pages.setdefault(start, [])
            continue
        past = int(found[2], 16)
        if not least <= start < past <= end or start % page_bytes or past % page_bytes:
            raise InputError(source, f"{name}, line {number}: no pages of their mapping, or not in their order")
        ranges.append(PageRange(start, past, found[3] is not None))
        least = past
    return {start: tuple(found) for start, found in pages.items()}


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_LINE_BYTES:
            break
    if rest:
        yield rest
