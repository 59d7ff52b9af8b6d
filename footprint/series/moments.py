"""The audits of a series, by the names of their moments."""

from footprint.errors import InputError
from footprint.model.over_time import OverTime
from footprint.series import USUAL_MOST
from footprint.series.file import read_series
from footprint.series.growth import GrowthKind
from footprint.series.records import AuditKept
from footprint.series.timeline import Timeline

__all__ = ("audit_at", "over_time_of")


def over_time_of(timeline: Timeline) -> OverTime:
    """Return the figures of a series that budgets limit."""
    growth = timeline.growth()
    hourly = None if growth.slope is None else round(3600 * growth.slope.least)
    return OverTime(
        timeline.most_bytes,
        timeline.usual_most_bytes,
        hourly if growth.kind is GrowthKind.GROWS or hourly is None else 0,
        timeline.most_process_count,
    )


def audit_at(data: bytes | memoryview, name: str, moment: str | None) -> tuple[bytes, OverTime]:
    """Return the JSON of the audit at a moment of a series, and the figures of the series.

    Args:
        data: The series.
        name: Its name.
        moment: `start`, `peak`, `growth`, `end` or `signal`, the last one of these; `95%`; or seconds since its begin
            (`90s`), for the last one before that. None for the last one of all.

    Raises:
        InputError: If it is damaged, or has no such audit.
    """
    timeline = Timeline.of(read_series(data, name), name)
    found = _chosen(timeline, moment)
    if found is None:
        moments = ", ".join(f"{one.moment} ({one.ms / 1000:g}s)" for one in timeline.taken)
        has = f"it has {moments}" if moments else "it has none"
        raise InputError(name, f"it has no audit of the moment {moment!r}: {has}" if moment else "it has no audit")
    return found.answer(name), over_time_of(timeline)


def _chosen(timeline: Timeline, moment: str | None) -> AuditKept | None:
    if moment == USUAL_MOST:
        usual_bytes = timeline.usual_most_bytes
        return min(timeline.taken, key=lambda one: abs(one.held_bytes - usual_bytes), default=None)
    until_ms = _milliseconds(moment)
    meant = [
        one for one in timeline.taken if (moment in {None, one.moment} if until_ms is None else one.ms <= until_ms)
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
