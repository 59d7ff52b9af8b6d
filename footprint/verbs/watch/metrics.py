"""The metrics of a watch: the figures of now, for a program that asks again and again.

What it asks keeps a series for each value of a label for months: no label has PIDs or arguments, and few values.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from footprint.formats.metrics import MetricFamily, MetricSample, target_labels
from footprint.formats.perfetto import Trace, TraceCounter, TraceInstant, TraceProcess
from footprint.series.timeline import Course, Timeline, WatchedProcess
from footprint.text.escape import shortened
from footprint.verbs.watch.result import WatchResult


def watch_trace(result: WatchResult) -> Trace:
    """Return the cost of all processes and of each, the memory of each owner, the audits and the peak."""
    timeline = result.timeline
    owners = [_counter(f"owner {owner}", course) for owner, course in timeline.owners.items()]
    whole = TraceProcess(
        f"footprint watch: {timeline.began.target}", 0, timeline.ms, [_counter("cost", timeline.course), *owners], {}
    )
    instants = [TraceInstant(entry.ms, f"audit: {entry.moment}") for entry in timeline.taken]
    instants.append(TraceInstant(timeline.peak_ms, "peak"))
    every = sorted([*timeline.alive.values(), *timeline.ended.values()], key=lambda p: p.came.number)
    return Trace(whole, [_process(p, timeline.ms) for p in every], instants)


def _counter(name: str, course: Course) -> TraceCounter:
    return TraceCounter(name, [(round(1000 * at), round(value)) for at, value in course.points])


def _process(process: WatchedProcess, now_ms: int) -> TraceProcess:
    facts: dict[str, str | int] = {"pid": process.came.pid}
    if process.peak_resident_bytes is not None:
        facts["peak_resident_bytes"] = process.peak_resident_bytes
    if process.ended is not None and process.ended.exit_code is not None:
        facts["exit_code"] = process.ended.exit_code
    until_ms = now_ms if process.ended is None else process.ended.ms
    counters = [_counter("cost", process.course)] if process.course.values else []
    return TraceProcess(process.came.command, process.came.ms, until_ms, counters, facts)


_MOST_VALUES: Final = 20
_MOST_NAME_CHARS: Final = 60


def watch_metrics(result: WatchResult) -> list[MetricFamily]:
    """Return the figures of a watch, and its growth."""
    target = _target(result.timeline)
    growth = [({}, result.growth), *(({"owner": owner.owner}, owner.growth) for owner in result.owners[:_MOST_VALUES])]
    rates = [
        MetricSample({**target, **labels, "kind": trend.kind.value}, round(3600 * trend.slope.per_second))
        for labels, trend in growth
        if trend.slope is not None
    ]
    return [*timeline_metrics(result.timeline), MetricFamily("watch_growth_per_hour", "The growth in an hour.", rates)]


def timeline_metrics(timeline: Timeline) -> list[MetricFamily]:
    """Return the figures of the last tick: the cost of all processes, and of those that run the same program."""
    target = _target(timeline)
    programs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for process in timeline.alive.values():
        name = _program(process.came.command)
        programs[name] += process.cost_bytes
        counts[name] += 1
    owners = {owner: course.values[-1] for owner, course in timeline.owners.items() if course.values}
    whole = (
        (
            "watch_cost",
            "What all processes cost: private memory, files in memory of their own, kernel memory.",
            timeline.sums.cost_bytes,
            "bytes",
        ),
        ("watch_peak", "The largest cost at a tick.", timeline.peak_bytes, "bytes"),
        ("watch_processes", "The number of processes now.", len(timeline.alive), ""),
        ("watch_processes_seen", "The number of processes in all.", timeline.process_count, ""),
        ("watch_own_cpu", "The processor time of the watch itself.", timeline.own_cpu_ms / 1000, "seconds"),
    )
    return [
        *(MetricFamily(name, text, [MetricSample(target, value)], unit) for name, text, value, unit in whole),
        MetricFamily("watch_program_cost", "What processes cost, by program.", _samples(programs, "program", target)),
        MetricFamily(
            "watch_program_processes", "The processes now, by program.", _samples(counts, "program", target), ""
        ),
        MetricFamily("watch_owner", "What each owner costs at the last audit.", _samples(owners, "owner", target)),
    ]


def _target(timeline: Timeline) -> dict[str, str]:
    target = timeline.began.target
    processes = (*timeline.alive.values(), *timeline.ended.values())
    program = next((_program(process.came.command) for process in processes if str(process.came.pid) == target), "")
    return {name: shortened(value, _MOST_NAME_CHARS) for name, value in target_labels(target, program).items()}


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
