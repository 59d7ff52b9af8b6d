"""The metrics of a watch: the figures of now, for a program that asks again and again."""

from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.series.timeline import Timeline
from footprint.verbs.watch.result import WatchResult

__all__ = ("timeline_metrics", "watch_metrics")


def watch_metrics(found: WatchResult) -> list[MetricFamily]:
    """Return the figures of a watch, and its growth."""
    target = {"target": found.timeline.began.target}
    growth = [({}, found.growth), *(({"owner": one.owner}, one.growth) for one in found.owners)]
    rates = [
        MetricSample({**target, **labels, "kind": one.kind.value}, round(3600 * one.slope.per_second))
        for labels, one in growth
        if one.slope is not None
    ]
    return [*timeline_metrics(found.timeline), MetricFamily("watch_growth_per_hour", "The growth in an hour.", rates)]


def timeline_metrics(timeline: Timeline) -> list[MetricFamily]:
    """Return the figures of the last tick: the cost of all processes, and of each."""
    target = {"target": timeline.began.target}
    processes = [
        MetricSample({**target, "pid": str(one.came.pid), "command": one.came.command}, one.cost_bytes)
        for one in sorted(timeline.alive.values(), key=lambda one: -one.cost_bytes)
        if one.figures is not None
    ]
    owners = [
        MetricSample({**target, "owner": owner}, course.values[-1])
        for owner, course in timeline.owners.items()
        if course.values
    ]
    whole = (
        (
            "watch_cost",
            "Private memory, page tables and kernel stacks of all processes.",
            timeline.sums.cost_bytes,
            "bytes",
        ),
        ("watch_peak", "The largest cost at a tick.", timeline.peak_bytes, "bytes"),
        ("watch_processes", "The number of processes now.", len(timeline.alive), ""),
        ("watch_processes_seen", "The number of processes in all.", timeline.process_count, ""),
        ("watch_own_cpu_milliseconds", "The processor time of the watch itself.", timeline.own_cpu_ms, ""),
    )
    return [
        *(MetricFamily(name, text, [MetricSample(target, value)], unit) for name, text, value, unit in whole),
        MetricFamily("watch_process_cost", "What each process costs.", processes),
        MetricFamily("watch_owner", "The private memory of each owner at the last audit.", owners),
    ]
