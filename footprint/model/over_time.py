"""What a watch says of its processes over time, beside the audit of one moment."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from footprint.errors import UsageError
from footprint.members import json_members
from footprint.model.row import Evidence


class ProcessCounters(NamedTuple):
    """What the counters of a process say at one moment.

    Attributes:
        private_bytes: Anonymous memory, swapped memory included; what is COW-shared by proportional shares.
        page_table_bytes: Page tables.
        shared_bytes: Shared memory that it has touched.
        resident_bytes: Resident memory, pages of files included.
        peak_resident_bytes: The most resident memory since it executed its program.
        thread_count: The number of threads.
        file_bytes: Resident pages of files.
        mapping_count: The number of mappings; 0 where they may not be read.
        descriptor_count: The number of open descriptors.
        object_bytes: The price of its kernel objects: process, threads, mappings.
        descriptor_bytes: The price of the open files that it pays for, with what they hold.
        memory_file_bytes: Files in memory that it pays for.
    """

    private_bytes: int
    page_table_bytes: int
    shared_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    thread_count: int
    file_bytes: int = 0
    mapping_count: int = 0
    descriptor_count: int = 0
    object_bytes: int = 0
    descriptor_bytes: int = 0
    memory_file_bytes: int = 0

    def cost_bytes(self, stack_bytes: int) -> int:
        """Compute the cost of the process; `stack_bytes` is the kernel stack of a thread."""
        kernel_bytes = self.page_table_bytes + stack_bytes * self.thread_count + self.object_bytes
        return self.private_bytes + kernel_bytes + self.descriptor_bytes + self.memory_file_bytes


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


@json_members("peak_bytes evidence source page_cache_bytes seconds process_count holders audited_bytes read_at_bytes")
class Peak(NamedTuple):
    """The peak of a program and all its descendants, until it was read; with `--when peak` that of the run before.

    Attributes:
        peak_bytes: The memory charged to its cgroup at the peak, without page cache; without a cgroup, resident memory
            without pages of files.
        evidence: How the peak is known.
        source: The counter: `memory.peak` or `memory.max_usage_in_bytes` of a cgroup; else `VmHWM` of one process,
            `VmRSS` of several, or `ru_maxrss`.
        page_cache_bytes: The page cache that the cgroup was charged with at the peak, and that is left out; without a
            cgroup, the resident pages of files.
        seconds: When it was reached: the time since the start.
        holders: The processes that were alive then, the largest first.
        process_count: The number of processes that were seen in all.
        audited_bytes: What the audit explains: the cost of the processes that were read, shared memory counted once,
            without a cgroup no kernel memory; null where it is not known.
        read_at_bytes: What the program and its descendants held when it was read, counted as the peak is.
    """

    peak_bytes: int
    evidence: Evidence
    source: str
    page_cache_bytes: int
    seconds: float
    holders: tuple[PeakHolder, ...]
    process_count: int
    # An answer sets these.
    audited_bytes: int | None = None
    read_at_bytes: int = 0

    @property
    def has_kernel_memory(self) -> bool:
        """Whether page tables, kernel stacks and kernel objects are part of it: those of a cgroup are."""
        return self.source.startswith("memory.")


class WatchGapKind(StrEnum):
    """What a watch cannot tell; the name by which `--accept` accepts it."""

    TOO_SHORT = "too-short"
    """Whether it grows: there are too few values, or too few teeth of what may be a saw."""
    LOWER_BOUND = "lower-bound"
    """The peak: no counter has seen it, so more may have been held between two ticks."""
    NO_AUDIT = "no-audit"
    """Who owns the memory at a moment that matters: the processes could not be read, or had ended."""
    CUT = "cut"
    """What came after the end of the series, or while its file could not be written."""
    NOT_WATCHED = "not-watched"
    """What some processes cost: they were left out, or the kernel reported more than could be read."""


class WatchGap(NamedTuple):
    """Something that a watch cannot tell.

    Attributes:
        kind: What.
        detail: Why.
    """

    kind: WatchGapKind
    detail: str


def parse_accepted(names: Sequence[str]) -> frozenset[WatchGapKind]:
    """Read the names of what is accepted.

    Raises:
        UsageError: For an unknown name.
    """
    every = [kind.value for kind in WatchGapKind]
    for name in names:
        if name not in every:
            raise UsageError(f"{name!r} is nothing that can be accepted: {', '.join(every)}")
    return frozenset(map(WatchGapKind, names))


class OverTime(NamedTuple):
    """The figures of a series.

    Attributes:
        peak_bytes: The largest cost at a tick, or the peak of the cgroup.
        usual_most_bytes: The cost that was not exceeded in 95 % of the time.
        hourly_growth_bytes: The growth of the cost in an hour: the lower end of its interval; 0 where it does not grow,
            None where there are too few values.
        most_process_count: The largest number of processes at a time.
        gaps: What the watch cannot tell.
        hourly_trend: The growth in an hour as the trend has it, and both ends of its interval; None where it does not
            grow.
        growth_shares: The owners that make the growth, each with its part of it.
        peak_parts: What each owner held at the peak.
    """

    peak_bytes: int
    usual_most_bytes: int
    hourly_growth_bytes: int | None
    most_process_count: int
    gaps: tuple[WatchGap, ...] = ()
    hourly_trend: tuple[float, float, float] | None = None
    growth_shares: tuple[tuple[str, float], ...] = ()
    peak_parts: tuple[tuple[str, int], ...] = ()
