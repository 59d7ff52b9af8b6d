"""The audits of a series, by the names of their moments."""

from collections.abc import Iterator
from typing import Final

from footprint.errors import InputError
from footprint.model.over_time import OverTime, WatchGap, WatchGapKind
from footprint.series import USUAL_MOST
from footprint.series.file import read_series
from footprint.series.growth import GrowthKind, GrowthTrend
from footprint.series.peak import peak_of
from footprint.series.records import AuditKept
from footprint.series.timeline import Timeline, growth_shares

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
