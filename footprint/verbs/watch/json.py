"""The JSON of `watch`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.heap_account_json import HeapAccountMembers, heap_account_members
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Signed
from footprint.release.compare import OwnerChange, RowChange
from footprint.series.grown_mappings import MappingGrowth
from footprint.series.growth import GrowthKind, GrowthTrend
from footprint.series.timeline import WatchedProcess
from footprint.verbs.watch.layers import WatchLayers, owner_layers, process_layers
from footprint.verbs.watch.result import WatchResult

__all__ = ("WatchJson", "watch_members")


class WatchTarget(NamedTuple):
    """What was watched.

    Attributes:
        name: What the user named.
        series: The file that keeps what was seen, all or a part of it; null where none does, or the disk took nothing.
        time: When the watch began, in seconds since 1970.
    """

    name: str
    series: str | None
    time: int


class WatchFigures(NamedTuple):
    """What all processes together cost over time: private memory, page tables and kernel stacks.

    Attributes:
        duration_ms: How long the watch went.
        every_ms: The time between two ticks that was asked for.
        tick_count: The number of ticks.
        own_cpu_ms: The processor time of the watch itself, its audits included.
        cost_bytes: The cost at the last tick with a process.
        peak_bytes: The largest cost at a tick; the peak of the cgroup where that is larger.
        peak_source: The counter of the cgroup, or `ticks`.
        peak_ms: The time of the tick with the largest cost.
        audited_bytes: The most that an audit explains; null without an audit.
        audited_ms: When that was.
        usual_most_bytes: What was not exceeded in 95 % of the time.
        process_count: The number of processes in all.
        most_process_count: The largest number at a time.
        started_count: How many processes and threads the whole machine has started meanwhile; null where nobody knows.
        seen_count: How many of them were seen to start; the same.
        seen_by: How: `events`, `ptrace`, `polling`, or `named` where the processes were named by their PIDs, so that no
            other can belong to them; the same.
    """

    duration_ms: int
    every_ms: int
    tick_count: int
    own_cpu_ms: int
    cost_bytes: int
    peak_bytes: int
    peak_source: str
    peak_ms: int
    audited_bytes: int | None
    audited_ms: int | None
    usual_most_bytes: int
    process_count: int
    most_process_count: int
    started_count: int | None
    seen_count: int | None
    seen_by: str | None


class WatchGrowth(NamedTuple):
    """How memory went over time.

    Attributes:
        owner: The owner; null for the cost of all processes.
        kind: How.
        bytes_per_hour: Its slope by Theil and Sen; null where there are too few values.
        least_bytes_per_hour: The lower end of its interval of 95 %.
        most_bytes_per_hour: The upper end.
        since_ms: From when on: what was before is its warm-up.
        first_bytes: What it held in the first audit; of all processes, at the first tick.
        last_bytes: What it held in the last one.
    """

    owner: str | None
    kind: GrowthKind
    bytes_per_hour: Signed | None
    least_bytes_per_hour: Signed | None
    most_bytes_per_hour: Signed | None
    since_ms: int
    first_bytes: int
    last_bytes: int


class WatchSample(NamedTuple):
    """The cost of all processes at a moment; of a long watch, moments that are evenly spread.

    Attributes:
        ms: The time.
        cost_bytes: The cost.
    """

    ms: int
    cost_bytes: int


class WatchProcess(NamedTuple):
    """A process that was seen.

    Attributes:
        number: Its number in the watch: a later process can have the same PID.
        pid: Its PID.
        parent_pid: The PID of its parent, where that is known.
        command: Its command line, or its name.
        came_ms: When it was first seen.
        ended_ms: When it was seen to have ended; null for one that had not.
        lived_ms: How long it lived: by taskstats, else from when it was first seen to its end, or to now.
        exit_code: Its exit code; null where it is not known.
        peak_resident_bytes: The most resident memory that it had, where that is known.
        peak_source: How that is known: `taskstats`, `exit stop` or `status`.
        peak_cost_bytes: The largest cost at a tick; 0 for one that lived between two.
    """

    number: int
    pid: int
    parent_pid: int | None
    command: str
    came_ms: int
    ended_ms: int | None
    lived_ms: int
    exit_code: int | None
    peak_resident_bytes: int | None
    peak_source: str
    peak_cost_bytes: int


class WatchAudit(NamedTuple):
    """A whole audit that was made.

    Attributes:
        moment: Why: `start`, `peak`, `growth`, `end` or `signal`.
        ms: When the processes were read.
        held_bytes: What it explains: private memory and kernel memory.
    """

    moment: str
    ms: int
    held_bytes: int


@dataclass(frozen=True, kw_only=True)
class WatchJson(Envelope):
    """What a watch saw.

    Attributes:
        target: What was watched.
        watch: Its figures.
        growth: How the cost went, and the private memory of each owner.
        samples: The cost over time.
        owner_layers: The private memory of each owner over time; null where fewer than two moments are known.
        process_layers: The cost of each process over time; null where there are fewer than two.
        processes: The processes, those with the largest peaks first.
        audits: The audits.
        owner_changes: What changed by owner between the first audit and the last one, or that at the peak.
        changes: The rows that differ between these two.
        grown_mappings: The mappings that grew between these two, those that grew most first.
        heap_account: What the heap is made of at the end, by an allocator profile; null where none was named.
        notes: What the reader of the figures must know.
    """

    verb: Literal["watch"] = "watch"
    target: WatchTarget
    watch: WatchFigures
    growth: tuple[WatchGrowth, ...]
    samples: tuple[WatchSample, ...]
    owner_layers: WatchLayers | None
    process_layers: WatchLayers | None
    processes: tuple[WatchProcess, ...]
    audits: tuple[WatchAudit, ...]
    owner_changes: tuple[OwnerChange, ...]
    changes: tuple[RowChange, ...]
    grown_mappings: tuple[MappingGrowth, ...]
    heap_account: HeapAccountMembers | None
    notes: tuple[Note, ...]


def watch_members(found: WatchResult, version: str) -> Json:
    """Return the members of the answer."""
    timeline = found.timeline
    began = timeline.began
    every = [*timeline.alive.values(), *timeline.ended.values()]
    every.sort(key=lambda one: (-(one.peak_resident_bytes or 0), one.came.number))
    return encode(
        WatchJson(
            tool=Tool("footprint", version),
            host=began.host,
            target=WatchTarget(began.target, found.series, began.time),
            watch=_figures(found),
            growth=tuple(_growth(found)),
            samples=tuple([WatchSample(round(at * 1000), round(value)) for at, value in timeline.course.points]),
            owner_layers=owner_layers(timeline),
            process_layers=process_layers(timeline),
            processes=tuple([_process(one, timeline.ms) for one in every]),
            audits=tuple([WatchAudit(one.moment, one.ms, one.held_bytes) for one in timeline.taken]),
            owner_changes=() if found.comparison is None else found.comparison.owners,
            changes=() if found.comparison is None else found.comparison.changes,
            grown_mappings=found.mappings,
            heap_account=_heap(found),
            notes=found.notes,
        )
    )


def _heap(found: WatchResult) -> HeapAccountMembers | None:
    account = None if found.split is None else found.split.heap
    return None if account is None else heap_account_members(account)


def _figures(found: WatchResult) -> WatchFigures:
    timeline, closed, near = found.timeline, found.timeline.closed, found.near_peak
    group = timeline.group_peak
    is_group = group is not None and group.peak_bytes >= timeline.peak_bytes
    return WatchFigures(
        duration_ms=timeline.ms,
        every_ms=timeline.began.every_ms,
        tick_count=timeline.tick_count,
        own_cpu_ms=timeline.own_cpu_ms,
        cost_bytes=timeline.last_cost_bytes,
        peak_bytes=found.timeline.most_bytes,
        peak_source=group.source if group is not None and is_group else "ticks",
        peak_ms=timeline.peak_ms,
        audited_bytes=None if near is None else near.audit.held_bytes,
        audited_ms=None if near is None else near.audit.ms,
        usual_most_bytes=timeline.usual_most_bytes,
        process_count=timeline.process_count,
        most_process_count=timeline.most_process_count,
        started_count=None if closed is None else closed.fork_count,
        seen_count=None if closed is None else closed.seen_count,
        seen_by=None if closed is None else closed.how,
    )


def _growth(found: WatchResult) -> Iterator[WatchGrowth]:
    values = found.timeline.course.values or [0]
    yield _trend(None, found.growth, values[0], values[-1])
    for one in found.owners:
        yield _trend(one.owner, one.growth, one.first_bytes, one.last_bytes)


def _trend(owner: str | None, growth: GrowthTrend, first_bytes: int, last_bytes: int) -> WatchGrowth:
    slope = growth.slope
    rates = (None, None, None) if slope is None else tuple(round(3600 * one) for one in slope)
    since_ms = round(1000 * growth.since_seconds)
    return WatchGrowth(owner, growth.kind, rates[0], rates[1], rates[2], since_ms, first_bytes, last_bytes)


def _process(one: WatchedProcess, now_ms: int) -> WatchProcess:
    came, ended = one.came, one.ended
    return WatchProcess(
        number=came.number,
        pid=came.pid,
        parent_pid=came.parent_pid,
        command=came.command,
        came_ms=came.ms,
        ended_ms=None if ended is None else ended.ms,
        lived_ms=one.lived_ms(now_ms),
        exit_code=None if ended is None else ended.exit_code,
        peak_resident_bytes=one.peak_resident_bytes,
        peak_source="status" if ended is None else ended.source,
        peak_cost_bytes=one.peak_cost_bytes,
    )
