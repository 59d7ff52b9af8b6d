"""The private pages of a mapping, from page bits or from the counters."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence

from footprint.attribution.counters import MappingCounts
from footprint.process import Mapping, PageRange

__all__ = ("clip", "private_pages")


def private_pages(
    mapping: Mapping, counts: MappingCounts, pages: Dict[int, Sequence[PageRange]] | None
) -> Sequence[PageRange] | None:
    """Return the private pages of a mapping, ascending; None where nothing says which of its pages these are.

    Args:
        mapping: The mapping.
        counts: What the kernel counts in it. Where no page or every page is private, no page bits are needed.
        pages: The private pages of mappings by start address, where page bits were read.
    """
    found = pages.get(mapping.start_addr) if pages else None
    if found is not None:
        return found
    if counts.private_bytes == 0:
        return ()
    if counts.private_bytes == mapping.size_bytes:
        return (PageRange(mapping.start_addr, mapping.end_addr),)
    return None


def clip(ranges: Sequence[PageRange], start_addr: int, end_addr: int) -> list[PageRange]:
    """Return the parts of some page ranges that lie between two addresses."""
    return [
        PageRange(max(one.start_addr, start_addr), min(one.end_addr, end_addr), one.is_swapped)
        for one in ranges
        if one.start_addr < end_addr and start_addr < one.end_addr
    ]
