"""What the counters of a process say at one moment."""

from typing import NamedTuple

__all__ = ("ProcessCounters",)


class ProcessCounters(NamedTuple):
    """What the counters of a process say at one moment.

    Attributes:
        private_bytes: Anonymous memory, swapped memory included; what is COW-shared by proportional shares.
        page_table_bytes: Page tables.
        shared_bytes: Shared memory that it has touched.
        resident_bytes: Resident memory, pages of files included.
        peak_resident_bytes: The most resident memory since it executed its program.
        thread_count: The number of threads.
    """

    private_bytes: int
    page_table_bytes: int
    shared_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    thread_count: int
