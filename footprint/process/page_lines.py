"""Page ranges as text: for each examined mapping its first address, then one line per range.

    7f53a4c00000
    7f53a4c00000-7f53a4c21000
    7f53a4c30000-7f53a4c31000 swapped

Ranges are half-open and ascending. All numbers are hexadecimal.
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
    """Read page ranges. Each must consist of whole pages of its mapping, and begin behind the range before it.

    Args:
        pieces: The text, in pieces.
        memory: The mappings that the ranges belong to.
        page_bytes: The size of a page.
        source: The file that holds the text, for messages.
        name: The name of the text within that file.

    Raises:
        InputError: Where the text has another form, or contradicts the mappings.
    """
    ends = {mapping.start_addr: mapping.end_addr for mapping in memory.mappings}
    pages: dict[int, list[PageRange]] = {}
    ranges: list[PageRange] = []
    least = end = 0
    for number, line in enumerate(_lines(pieces), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise InputError(source, f"{name}, line {number} is neither a mapping nor a page range")
        start = int(found[1], 16)
        if found[2] is None:
            if start not in ends or start in pages:
                raise InputError(
                    source, f"{name}, line {number}: no mapping starts at {start:#x}, or it is listed twice"
                )
            least, end, ranges = start, ends[start], pages.setdefault(start, [])
            continue
        past = int(found[2], 16)
        if not least <= start < past <= end or start % page_bytes or past % page_bytes:
            raise InputError(
                source, f"{name}, line {number}: not whole pages of its mapping, or not in ascending order"
            )
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
