"""A watch as a trace."""

from footprint.formats.perfetto import Trace, TraceCounter, TraceInstant, TraceProcess
from footprint.series.timeline import Course, WatchedProcess
from footprint.verbs.watch.result import WatchResult

__all__ = ("watch_trace",)


def watch_trace(found: WatchResult) -> Trace:
    """Return the cost of all processes and of each, the memory of each owner, the audits and the peak."""
    timeline = found.timeline
    owners = [_counter(f"owner {owner}", course) for owner, course in timeline.owners.items()]
    whole = TraceProcess(
        f"footprint watch: {timeline.began.target}", 0, timeline.ms, [_counter("cost", timeline.course), *owners], {}
    )
    instants = [TraceInstant(one.ms, f"audit: {one.moment}") for one in timeline.taken]
    instants.append(TraceInstant(timeline.peak_ms, "peak"))
    every = sorted([*timeline.alive.values(), *timeline.ended.values()], key=lambda one: one.came.number)
    return Trace(whole, [_process(one, timeline.ms) for one in every], instants)


def _counter(name: str, course: Course) -> TraceCounter:
    return TraceCounter(name, [(round(1000 * at), round(value)) for at, value in course.points])


def _process(one: WatchedProcess, now_ms: int) -> TraceProcess:
    facts: dict[str, str | int] = {"pid": one.came.pid}
    if one.peak_resident_bytes is not None:
        facts["peak_resident_bytes"] = one.peak_resident_bytes
    if one.ended is not None and one.ended.exit_code is not None:
        facts["exit_code"] = one.ended.exit_code
    until_ms = now_ms if one.ended is None else one.ended.ms
    counters = [_counter("cost", one.course)] if one.course.values else []
    return TraceProcess(one.came.command, one.came.ms, until_ms, counters, facts)
