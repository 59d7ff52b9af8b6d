"""What a series amounts to: its peak, its gaps, and its audits by the names of their moments."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from footprint.errors import InputError
from footprint.model.over_time import OverTime, WatchGap, WatchGapKind
from footprint.series import USUAL_MOST
from footprint.series.file import read_series
from footprint.series.growth import GrowthKind, GrowthTrend
from footprint.series.records import AuditKept
from footprint.series.timeline import Timeline, WatchedProcess, growth_shares

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


_OF_NOTES: Final = {
    "audit-failed": WatchGapKind.NO_AUDIT,
    "end-not-audited": WatchGapKind.NO_AUDIT,
    "series-cut": WatchGapKind.CUT,
    "series-incomplete": WatchGapKind.CUT,
    "events-lost": WatchGapKind.NOT_WATCHED,
    "processes-not-watched": WatchGapKind.NOT_WATCHED,
}


def gaps_of(timeline: Timeline, growth: GrowthTrend) -> tuple[WatchGap, ...]:
    """Find what a watch cannot tell."""
    return tuple(_gaps(timeline, growth))


def _gaps(timeline: Timeline, growth: GrowthTrend) -> Iterator[WatchGap]:
    if growth.kind is GrowthKind.UNKNOWN:
        yield WatchGap(WatchGapKind.TOO_SHORT, "it was watched too short to tell whether it grows")
    peak = peak_of(timeline)
    if peak.is_lower_bound:
        yield WatchGap(WatchGapKind.LOWER_BOUND, "its peak is a lower bound: between two ticks it may have held more")
    for note in timeline.notes:
        if note.slug in _OF_NOTES:
            yield WatchGap(_OF_NOTES[note.slug], note.detail)


def over_time_of(timeline: Timeline) -> OverTime:
    """Return the figures of a series that budgets limit."""
    growth = timeline.growth()
    hourly = None if growth.slope is None else round(3600 * growth.slope.least)
    grows = growth.kind is GrowthKind.GROWS
    return OverTime(
        peak_of(timeline).size_bytes,
        timeline.usual_most_bytes,
        hourly if grows or hourly is None else 0,
        timeline.most_process_count,
        gaps_of(timeline, growth),
        growth.slope.scaled(3600) if grows and growth.slope else None,
        tuple(growth_shares(growth, timeline.owner_growth())) if grows else (),
        tuple([(owner, course.value_at(timeline.peak_ms)) for owner, course in timeline.owners.items()]),
    )


def audit_at(data: bytes | memoryview, name: str, moment: str | None) -> tuple[bytes, OverTime]:
    """Return the JSON of the audit at a moment of a series, and the figures of the series.

    Args:
        data: The series.
        name: Its name.
        moment: `start`, `peak`, `growth`, `last`, `end` or `signal`, the last one of these; `95%`; or seconds since
            its begin (`90s`), for the last one before that. None for the last one of all.

    Raises:
        InputError: If it is damaged, or has no such audit.
    """
    timeline = Timeline.of(read_series(data, name), name)
    audit = _chosen(timeline, moment)
    if audit is None:
        moments = ", ".join(f"{taken.moment} ({taken.ms / 1000:g}s)" for taken in timeline.taken)
        has = f"it has {moments}" if moments else "it has none"
        raise InputError(name, f"it has no audit of the moment {moment!r}: {has}" if moment else "it has no audit")
    return audit.answer(name), over_time_of(timeline)


def _chosen(timeline: Timeline, moment: str | None) -> AuditKept | None:
    if moment == USUAL_MOST:
        usual_bytes = timeline.usual_most_bytes
        return min(timeline.taken, key=lambda taken: abs(taken.held_bytes - usual_bytes), default=None)
    until_ms = _milliseconds(moment)
    meant = [
        kept for kept in timeline.taken if (moment in {None, kept.moment} if until_ms is None else kept.ms <= until_ms)
    ]
    return meant[-1] if meant else None


def _milliseconds(moment: str | None) -> int | None:
    if moment is None or not moment.endswith("s"):
        return None
    try:
        seconds = float(moment[:-1])
    except ValueError:
        return None
    return round(seconds * 1000) if 0 <= seconds < 1e12 else None
