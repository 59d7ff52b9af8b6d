"""The metrics of a watch: the figures of now, for a program that asks again and again.

What it asks keeps a series for each value of a label for months: no label has PIDs or arguments, and few values.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from footprint.formats.escape import shortened
from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.series.timeline import Timeline
from footprint.verbs.watch.result import WatchResult

__all__ = ("timeline_metrics", "watch_metrics")

_MOST_VALUES: Final = 20
_MOST_NAME_CHARS: Final = 60


def watch_metrics(found: WatchResult) -> list[MetricFamily]:
    """Return the figures of a watch, and its growth."""
    target = _target(found.timeline)
    growth = [({}, found.growth), *(({"owner": one.owner}, one.growth) for one in found.owners[:_MOST_VALUES])]
    rates = [
        MetricSample({**target, **labels, "kind": one.kind.value}, round(3600 * one.slope.per_second))
        for labels, one in growth
        if one.slope is not None
    ]
    return [*timeline_metrics(found.timeline), MetricFamily("watch_growth_per_hour", "The growth in an hour.", rates)]


def timeline_metrics(timeline: Timeline) -> list[MetricFamily]:
    """Return the figures of the last tick: the cost of all processes, and of those that run the same program."""
    target = _target(timeline)
    programs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for one in timeline.alive.values():
        name = _program(one.came.command)
        programs[name] += one.cost_bytes
        counts[name] += 1
    owners = {owner: course.values[-1] for owner, course in timeline.owners.items() if course.values}
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
        MetricFamily("watch_program_cost", "What processes cost, by program.", _samples(programs, "program", target)),
        MetricFamily(
            "watch_program_processes", "The processes now, by program.", _samples(counts, "program", target), ""
        ),
        MetricFamily(
            "watch_owner", "The private memory of each owner at the last audit.", _samples(owners, "owner", target)
        ),
    ]


def _target(timeline: Timeline) -> dict[str, str]:
    return {"target": shortened(timeline.began.target, _MOST_NAME_CHARS)}


def _program(command: str) -> str:
    """Return the name of the program of a command line, without folders."""
    words = command.split()
    return shortened(words[0].rpartition("/")[2] or words[0], _MOST_NAME_CHARS) if words else ""


def _samples(sizes: Mapping[str, int], label: str, target: Mapping[str, str]) -> list[MetricSample]:
    """Return the largest ones, and the sum of the rest."""
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(size for _, size in ordered[_MOST_VALUES:])
    shown = [*ordered[:_MOST_VALUES], *([("[others]", rest)] if len(ordered) > _MOST_VALUES else [])]
    return [MetricSample({**target, label: name}, size) for name, size in shown]
