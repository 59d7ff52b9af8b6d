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

Pages = dict[int, tuple[PageRange, ...]]

_LINE: Final = re.compile(rb"([0-9a-f]{1,16})(?:-([0-9a-f]{1,16})( swapped)?)?")
_LONGEST_LINE_BYTES: Final = 41


def page_lines(pages: Pages) -> Iterator[bytes]:
    """Format page ranges."""
    for start_addr, ranges in pages.items():
        yield b"%x\n" % start_addr
        for span in ranges:
            yield b"%x-%x%s\n" % (span.start_addr, span.end_addr, b" swapped" if span.is_swapped else b"")


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
    # Earlier versions listed swapped pages that others have, too.
    shared = {mapping.start_addr for mapping in memory.mappings if mapping.counters.swap_share_bytes() is not None}
    pages: dict[int, list[PageRange]] = {}
    ranges: list[PageRange] = []
    least = end = 0
    has_shared = False
    for number, line in enumerate(_lines(pieces), 1):
        line_match = _LINE.fullmatch(line)
        if line_match is None:
            raise InputError(source, f"{name}, line {number} is neither a mapping nor a page range")
        start = int(line_match[1], 16)
        if line_match[2] is None:
            if start not in ends or start in pages:
                raise InputError(
                    source, f"{name}, line {number}: no mapping starts at {start:#x}, or it is listed twice"
                )
            least, end, ranges, has_shared = start, ends[start], pages.setdefault(start, []), start in shared
            continue
        past = int(line_match[2], 16)
        if not least <= start < past <= end or start % page_bytes or past % page_bytes:
            raise InputError(
                source, f"{name}, line {number}: not whole pages of its mapping, or not in ascending order"
            )
        if not (has_shared and line_match[3]):
            ranges.append(PageRange(start, past, line_match[3] is not None))
        least = past
    return {start: tuple(page_ranges) for start, page_ranges in pages.items()}


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_LINE_BYTES:
            break
    if rest:
        yield rest
