"""A process of a group, without its ledger."""

from typing import NamedTuple

from footprint.model.totals import Totals

__all__ = ("GroupMember",)


class GroupMember(NamedTuple):
    """One process of a group, without its ledger.

    Attributes:
        name: What was audited, as the user named it.
        pid: The process, where known.
        command: Its command line or name.
        source: What was read: `smaps`, ...
        is_live: Whether it was read from a running process.
        mapping_count: How many mappings it has.
        page_bytes: The size of a page.
        totals: Its own figures.
    """

    name: str
    pid: int | None
    command: str
    source: str
    is_live: bool
    mapping_count: int
    page_bytes: int
    totals: Totals
