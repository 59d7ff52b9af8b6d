"""What a watch says of processes over time, beside the audit of one moment, and how a program that was run failed."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from footprint.errors import UsageError
from footprint.members import NamedTuple, json_members
from footprint.model.row import Evidence

_MOMENTS: Final = {
    "output": "it printed the line that was waited for",
    "settled": "its memory had settled",
    "time": "the time at which to read it",
}


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


class RunFailureKind(StrEnum):
    """How a run failed; the name by which `--allow` accepts it."""

    SIGNAL = "signal"
    """A signal ended it: SIGSEGV, SIGABRT, ..."""
    EXIT = "exit"
    """It exited with another code than expected."""
    MOMENT = "moment"
    """It ended, or the time was over, before the moment at which it should be read."""
    CHILD = "child"
    """A process that it started crashed: SIGSEGV, SIGABRT, ... Seen with `--follow` and `--when peak`."""
    MEMORY = "memory"
    """The kernel killed it, or a process that it started, for want of memory (OOM)."""


class RunFailure(NamedTuple):
    """A start of a program that failed.

    Attributes:
        kind: How it failed.
        start: Which start: 1 is the first.
        detail: What happened.
    """

    kind: RunFailureKind
    start: int
    detail: str


def which_starts(failed: Sequence[int], start_count: int) -> str:
    """Return the end of a cause, which names its starts: ` (start 2 of 3)`; "" for a single start."""
    if len(failed) > 1:
        return f" ({len(failed)} starts)" if len(failed) >= start_count else f" ({len(failed)} of {start_count} starts)"
    return f" (start {failed[0]} of {start_count})" if start_count > 1 else ""


def failures_of_start(  # noqa: PLR0913 # keyword-only
    start: int,
    *,
    exit_code: int | None,
    signal: str | None,
    wanted_moment: str,
    moment: str,
    is_missed: bool,
    expected_exit: int = 0,
    crashes: Iterable[str] = (),
    out_of_memory: str | None = None,
) -> Iterable[RunFailure]:
    """Find out how a start failed.

    Args:
        start: Which start it is.
        exit_code: Its exit code; None if a signal or footprint ended it.
        signal: The name of the signal that ended it; None if it exited or footprint ended it.
        wanted_moment: The moment that was asked for: `exit`, `settled`, `time`, `output` or `peak`.
        moment: The moment at which it was read; `exit` also where it ended right after the one that was asked for.
        is_missed: Whether a note says that the moment was missed.
        expected_exit: The exit code of success.
        crashes: How processes crashed that it started.
        out_of_memory: The limit at which the kernel killed a process for want of memory; None if it killed none.
    """
    if out_of_memory is not None:
        whom = "it" if signal == "SIGKILL" else "a process that it started"
        yield RunFailure(RunFailureKind.MEMORY, start, f"the kernel killed {whom} for want of memory ({out_of_memory})")
    elif signal is not None:
        yield RunFailure(RunFailureKind.SIGNAL, start, f"{signal} ended it")
    if exit_code not in {None, expected_exit}:
        yield RunFailure(RunFailureKind.EXIT, start, f"it exited with {exit_code}, not with {expected_exit}")
    # A peak is known from the run before; how near this one came to it is part of the answer.
    if is_missed and wanted_moment != "peak":
        what = "it ended" if moment == "exit" else "the time was over"
        yield RunFailure(RunFailureKind.MOMENT, start, f"{what} before {_MOMENTS.get(wanted_moment, 'the moment')}")
    for crash in dict.fromkeys(crashes):
        yield RunFailure(RunFailureKind.CHILD, start, crash)
