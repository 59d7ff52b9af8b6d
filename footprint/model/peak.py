"""The peak of a program that was run: the most memory that it and its descendants held at one time."""

from typing import NamedTuple

from footprint.model.evidence import Evidence

__all__ = ("Peak", "PeakHolder")


class PeakHolder(NamedTuple):
    """A process that was alive at the peak.

    Attributes:
        pid: The process.
        command: Its command line, or its name.
        resident_bytes: Its resident memory at the last look at it until then, pages of files included. A child that
            is not traced and lives for milliseconds may have held more.
    """

    pid: int
    command: str
    resident_bytes: int


class Peak(NamedTuple):
    """The most memory that a program and its descendants held at one time, until it was read.

    Attributes:
        peak_bytes: The memory charged to its cgroup at the peak, without page cache; without a cgroup, resident memory.
        evidence: How it is known.
        source: The counter: `memory.peak`, `memory.max_usage_in_bytes`, `VmHWM`, `VmRSS` or `ru_maxrss`.
        page_cache_bytes: The page cache that was charged at the peak and is not part of it.
        seconds: When it was reached: the time since the start of the program.
        holders: The processes that were alive then, the largest first.
        process_count: The number of processes that were seen in all.
    """

    peak_bytes: int
    evidence: Evidence
    source: str
    page_cache_bytes: int
    seconds: float
    holders: tuple[PeakHolder, ...]
    process_count: int
