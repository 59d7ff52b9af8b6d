"""Huge pages that a process has released in part: all of such a page is in use until the kernel splits it.

munmap(2) and madvise(2) take the pages of a process one by one. The kernel splits a huge page of which some are gone
when it needs memory, and until then its control group is charged for all of it. No counter of the process says so; the
flags of page frames do, and only root may read them.

Source: mm/huge_memory.c (deferred_split_folio), Documentation/admin-guide/mm/pagemap.rst of Linux 6.18.
"""

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from footprint.process.mappings import MemoryMap
from footprint.process.pages import PageRange, Pages, has_parts_of_huge_pages

_PRESENT: Final = 1 << 63
_FRAME: Final = (1 << 55) - 1
_ENTRY_BYTES: Final = 8
_HEAD, _TAIL, _HUGE = 1 << 15, 1 << 16, 1 << 22
_PAGES_A_READ: Final = 1 << 16
_MOST_BLOCKS: Final = 1 << 14


def read_released_bytes(folder: int, memory: MemoryMap, pages: Pages, page_bytes: int) -> int:
    """Read how much of the huge pages of a process nobody maps any more; 0 where the frames may not be read.

    Args:
        folder: Its open directory in /proc.
        memory: Its mappings.
        pages: Its private pages.
        page_bytes: The size of a page.
    """
    # A huge page fills a table of the lowest level.
    block_pages = page_bytes // _ENTRY_BYTES
    text_bytes = block_pages * _ENTRY_BYTES
    blocks = Counter[int]()
    released_count = 0
    with ExitStack() as files, suppress(OSError):
        flags, counts, pagemap = [
            files.enter_context(open(os.open(path, os.O_RDONLY, dir_fd=folder), "rb")).fileno()
            for path in ("/proc/kpageflags", "/proc/kpagecount", "pagemap")
        ]
        for mapping in filter(has_parts_of_huge_pages, memory.mappings):
            for entries, first in _entries(pagemap, pages.get(mapping.start_addr, ()), page_bytes):
                blocks.update(frame_blocks(entries, first, block_pages))
        parts = [block * text_bytes for block, count in blocks.items() if count < block_pages]
        for at in parts[:_MOST_BLOCKS]:
            released_count += released_pages(os.pread(flags, text_bytes, at), os.pread(counts, text_bytes, at))
    return released_count * page_bytes


def _entries(pagemap: int, ranges: Sequence[PageRange], page_bytes: int) -> Iterator[tuple[Sequence[int], int]]:
    """Yield the entries of private pages, and the number of the first page of each piece."""
    for start_addr, end_addr, is_swapped in ranges:
        first, end = start_addr // page_bytes, end_addr // page_bytes
        for at in range(first, end if not is_swapped else first, _PAGES_A_READ):
            entries = array("Q")
            text = os.pread(pagemap, min(end - at, _PAGES_A_READ) * _ENTRY_BYTES, at * _ENTRY_BYTES)
            entries.frombytes(text[: len(text) // _ENTRY_BYTES * _ENTRY_BYTES])
            yield entries, at


def frame_blocks(entries: Sequence[int], first: int, block_pages: int) -> list[int]:
    """Return the blocks of frames of pages that lie in their block of frames as they do in memory.

    A huge page begins at a multiple of its size in both. Of other pages one in `block_pages` lies so by chance.

    Args:
        entries: Entries of pagemap.
        first: The number of the first page.
        block_pages: How many pages a huge page has.
    """
    low = block_pages - 1
    return [
        (entry & _FRAME) // block_pages
        for page, entry in enumerate(entries, first)
        if not (entry ^ page) & low and entry & _PRESENT
    ]


def released_pages(flags: bytes, counts: bytes) -> int:
    """Count the pages of one huge page that nobody maps; 0 where some frames are no huge page.

    Args:
        flags: The entries of kpageflags of its frames.
        counts: Those of kpagecount.
    """
    head, *tails = array("Q", flags) if flags else (0,)
    if not head & _HEAD or not head & _HUGE or not all(flag & _TAIL for flag in tails):
        return 0
    return array("Q", counts).count(0)
