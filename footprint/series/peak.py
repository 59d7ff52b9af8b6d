"""The peak of a watch: what a cgroup has counted, or else the largest of what the ticks and each process show."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from footprint.series.timeline import Timeline, WatchedProcess

# The kernel counts resident pages for each processor by itself: the sum is that much off.
_MOST_OFF_BYTES: Final = 256 << 10
_MOST_OFF_SHARE: Final = 0.01
# What knows the peak of a process to its end.
_TO_THE_END: Final = frozenset({"taskstats", "exit stop"})


class WatchedPeak(NamedTuple):
    """The peak of all processes of a watch.

    Attributes:
        size_bytes: What they held.
        source: The counter of a cgroup, `ticks`, or the peak of a process: `VmHWM of pid 4711`.
        is_lower_bound: Whether they may have held more where nobody looked.
    """

    size_bytes: int
    source: str
    is_lower_bound: bool


def peak_of(timeline: Timeline) -> WatchedPeak:
    """Compute the peak.

    Without a cgroup, memory is only counted at the ticks. The kernel keeps the largest resident memory of each process:
    all of them held at least what one of them held, less the files that it mapped. Of a single process this tells, too,
    whether it held more between two ticks.
    """
    group = timeline.group_peak
    if group is not None:
        source = group.source if group.peak_bytes >= timeline.peak_bytes else "ticks"
        return WatchedPeak(max(group.peak_bytes, timeline.peak_bytes), source, is_lower_bound=False)
    every = [*timeline.alive.values(), *timeline.ended.values()]
    largest = max(every, key=_held_bytes, default=None)
    is_lower_bound = not _is_seen_whole(timeline, every)
    if largest is None or _held_bytes(largest) <= timeline.peak_bytes:
        return WatchedPeak(timeline.peak_bytes, "ticks", is_lower_bound)
    counter = "taskstats" if largest.ended is not None and largest.ended.source == "taskstats" else "VmHWM"
    return WatchedPeak(_held_bytes(largest), f"{counter} of pid {largest.came.pid}", is_lower_bound)


def _held_bytes(process: WatchedProcess) -> int:
    """Compute what a process held at its peak, less the pages of files; 0 where the peak was before the watch."""
    peak_bytes = process.peak_resident_bytes
    if peak_bytes is None or (process.came.is_older and peak_bytes == process.first_peak_bytes):
        return 0
    file_bytes = 0 if process.figures is None else process.figures.file_bytes
    if process.ended is not None and process.ended.file_bytes is not None:
        file_bytes = process.ended.file_bytes
    return max(0, peak_bytes - file_bytes)


def _is_seen_whole(timeline: Timeline, every: Iterable[WatchedProcess]) -> bool:
    """Return whether nothing can have been held between two ticks: of several processes nobody knows that."""
    is_told = timeline.closed is not None and timeline.closed.how != "polling"
    return is_told and timeline.most_process_count <= 1 and not timeline.omitted_count and all(map(_is_flat, every))


def _is_flat(process: WatchedProcess) -> bool:
    """Return whether the peak of a process is no higher than what the ticks have seen of it."""
    peak_bytes = process.peak_resident_bytes
    if peak_bytes is None or (process.ended is not None and process.ended.source not in _TO_THE_END):
        return False
    return peak_bytes - process.most_resident_bytes <= max(_MOST_OFF_BYTES, _MOST_OFF_SHARE * peak_bytes)
