"""The JSON of `watch`, with what memory consists of over time: what each owner holds, and what each process costs."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from typing import Any, Final, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_of, rows_of
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import Signed, dataclass
from footprint.model.heap_account import HeapAccount
from footprint.model.over_time import WatchGap
from footprint.release.compare import OwnerChange, RowChange
from footprint.series.growth import GrowthKind, MappingGrowth
from footprint.series.timeline import OwnerGrowth, Timeline, WatchedProcess
from footprint.verbs.watch.result import WatchResult

_MOST_LAYERS: Final = 24
_MOST_MOMENTS: Final = 96


class WatchMoment(NamedTuple):
    """A moment of which the layers are known.

    Attributes:
        ms: The time.
        audit: Why a whole audit was made then: `start`, `peak`, `growth`, `end` or `signal`; null without one.
        cost_bytes: The cost of all processes at the last tick.
        layer_bytes: The bytes of each layer, in the order of their names.
        others_bytes: The bytes of all that have no layer.
    """

    ms: int
    audit: str | None
    cost_bytes: int
    layer_bytes: tuple[int, ...]
    others_bytes: int


class WatchLayers(NamedTuple):
    """What memory consists of over time; of a long watch, moments that are evenly spread, and those of audits.

    Attributes:
        names: Those that held most at some moment, the largest first.
        moments: The moments.
    """

    names: tuple[str, ...]
    moments: tuple[WatchMoment, ...]


def owner_layers(timeline: Timeline) -> WatchLayers | None:
    """Compute what each owner held; None where fewer than two moments are known."""
    times = sorted({ms for course in timeline.owners.values() for ms in course.times})
    return _layers(timeline, times, {owner: course.value_at for owner, course in timeline.owners.items()})


def process_layers(timeline: Timeline) -> WatchLayers | None:
    """Compute what each process cost; None where there are fewer than two processes, or moments."""
    every = [p for p in (*timeline.alive.values(), *timeline.ended.values()) if p.peak_cost_bytes]
    if len(every) < 2:
        return None
    costs: dict[str, Callable[[int], int]] = {}
    for p in every:
        name = f"{p.came.pid} {p.came.command}"
        # A PID can return.
        costs[f"{name} (from {p.came.ms:,} ms)" if name in costs else name] = _cost_at(p)
    return _layers(timeline, timeline.course.times, costs)


def _cost_at(process: WatchedProcess) -> Callable[[int], int]:
    return lambda ms: 0 if process.ended is not None and ms >= process.ended.ms else process.course.value_at(ms)


def _layers(
    timeline: Timeline, times: Iterable[int], value_at: Mapping[str, Callable[[int], int]]
) -> WatchLayers | None:
    audits = {entry.ms: entry.moment for entry in timeline.taken}
    spread = _spread(list(times), audits)
    if len(spread) < 2:
        return None
    values = {name: [value(ms) for ms in spread] for name, value in value_at.items()}
    names = nlargest(_MOST_LAYERS, values, key=lambda name: max(values[name]))
    others = [sum(column) for column in zip(*values.values(), strict=True)]
    moments = []
    for place, ms in enumerate(spread):
        layer_bytes = tuple([values[name][place] for name in names])
        cost_bytes = timeline.course.value_at(ms)
        moments.append(WatchMoment(ms, audits.get(ms), cost_bytes, layer_bytes, others[place] - sum(layer_bytes)))
    return WatchLayers(tuple(names), tuple(moments))


def _spread(times: list[int], audits: Mapping[int, str]) -> list[int]:
    """Choose moments that are evenly spread, the last one, and those of audits."""
    step = -(-len(times) // _MOST_MOMENTS) or 1
    return [ms for place, ms in enumerate(times) if not place % step or ms in audits or place == len(times) - 1]


@answer_table
class WatchTarget:
    """What was watched."""

    name: str = column("What the user named.", "timeline.began.target")
    series: str | None = column(
        "The file that keeps what was seen, all or a part of it; null where none does, or the disk took nothing."
    )
    time: int = column("When the watch began, in seconds since 1970.", "timeline.began.time")


@answer_table
class WatchFigures:
    """What all processes together cost over time: private memory, files in memory of their own, and kernel memory."""

    duration_ms: int = column("How long the watch went.", "timeline.ms")
    every_ms: int = column("The time between two ticks that was asked for.", "timeline.began.every_ms")
    tick_count: int = column("The number of ticks.", "timeline.tick_count")
    own_cpu_ms: int = column("The processor time of the watch itself, its audits included.", "timeline.own_cpu_ms")
    cost_bytes: int = column("The cost at the last tick with a process.", "timeline.last_cost_bytes")
    peak_bytes: int = column(
        "The largest cost at a tick; the peak of the cgroup, or what one process held at its own peak, where that is "
        "larger.",
        "peak.size_bytes",
    )
    peak_source: str = column("The counter of the cgroup, `ticks`, or the counter of a process.", "peak.source")
    is_peak_lower_bound: bool = column(
        "Whether more may have been held between two ticks, where nobody looked.", "peak.is_lower_bound"
    )
    peak_ms: int = column("The time of the tick with the largest cost.", "timeline.peak_ms")
    audited_bytes: int | None = column(
        "The most that an audit explains; null without an audit.", "near_peak.held_bytes"
    )
    audited_ms: int | None = column("When that was.", "near_peak.ms")
    usual_most_bytes: int = column("What was not exceeded in 95 % of the time.", "timeline.usual_most_bytes")
    process_count: int = column("The number of processes in all.", "timeline.process_count")
    most_process_count: int = column("The largest number at a time.", "timeline.most_process_count")
    started_count: int | None = column(
        "How many processes and threads the whole machine has started meanwhile; null where nobody knows.",
        "timeline.closed.fork_count",
    )
    seen_count: int | None = column("How many of them were seen to start; the same.", "timeline.closed.seen_count")
    seen_by: str | None = column(
        "How: `events`, `ptrace`, `polling`, or `named` where the processes were named by their PIDs, so that no other "
        "can belong to them; the same.",
        "timeline.closed.how",
    )


def _rate(place: int) -> Callable[[Any], int | None]:
    return lambda row: None if row.growth.slope is None else round(3600 * row.growth.slope[place])


@answer_table
class WatchGrowth:
    """How memory went over time."""

    owner: str | None = column(
        "The owner; null for the cost of all processes. Where that has a trend, those of the owners add up to it; "
        "`[between the audits]` is what the audits have not seen of it.",
        lambda row: row.owner or None,
    )
    kind: GrowthKind = column("How.", "growth.kind")
    bytes_per_hour: Signed | None = column("Its slope by Theil and Sen; null where there are too few values.", _rate(0))
    least_bytes_per_hour: Signed | None = column("The lower end of its interval of 95 %.", _rate(1))
    most_bytes_per_hour: Signed | None = column("The upper end.", _rate(2))
    since_ms: int = column(
        "From when on: what was before is its warm-up.", lambda row: round(1000 * row.growth.since_seconds)
    )
    first_bytes: int = column("What it held in the first audit; of all processes, at the first tick.")
    last_bytes: int = column("What it held in the last one.")


class WatchSample(NamedTuple):
    """The cost of all processes at a moment; of a long watch, moments that are evenly spread.

    Attributes:
        ms: The time.
        cost_bytes: The cost.
    """

    ms: int
    cost_bytes: int


class _ProcessNow(NamedTuple):
    process: WatchedProcess
    now_ms: int


@answer_table
class WatchProcess:
    """A process that was seen."""

    number: int = column("Its number in the watch: a later process can have the same PID.", "process.came.number")
    pid: int = column("Its PID.", "process.came.pid")
    parent_pid: int | None = column("The PID of its parent, where that is known.", "process.came.parent_pid")
    command: str = column("Its command line, or its name.", "process.came.command")
    came_ms: int = column("When it was first seen.", "process.came.ms")
    ended_ms: int | None = column("When it was seen to have ended; null for one that had not.", "process.ended.ms")
    lived_ms: int = column(
        "How long it lived: by taskstats, else from when it was first seen to its end, or to now.",
        lambda row: row.process.lived_ms(row.now_ms),
    )
    exit_code: int | None = column("Its exit code; null where it is not known.", "process.ended.exit_code")
    peak_resident_bytes: int | None = column(
        "The most resident memory that it had, where that is known.", "process.peak_resident_bytes"
    )
    peak_source: str = column(
        "How that is known: `taskstats`, `exit stop` or `status`.",
        lambda row: "status" if row.process.ended is None else row.process.ended.source,
    )
    peak_cost_bytes: int = column(
        "The largest cost at a tick; 0 for one that lived between two.", "process.peak_cost_bytes"
    )


@answer_table
class WatchAudit:
    """A whole audit that was made."""

    moment: str = column("Why: `start`, `peak`, `growth`, `last`, `end` or `signal`.")
    ms: int = column("When the processes were read.")
    held_bytes: int = column("What it explains: the cost of all processes then.")


@dataclass(frozen=True, kw_only=True)
class WatchJson(Envelope):
    """What a watch saw.

    Attributes:
        target: What was watched.
        watch: Its figures.
        growth: How the cost went, and that of each owner.
        samples: The cost over time.
        owner_layers: The cost of each owner over time; null where fewer than two moments are known.
        process_layers: The cost of each process over time; null where there are fewer than two.
        processes: The processes, those with the largest peaks first.
        audits: The audits.
        owner_changes: What changed by owner between the first audit and the last one, or that at the peak.
        changes: The rows that differ between these two.
        grown_mappings: The mappings that grew between these two, those that grew most first.
        gaps: What the watch cannot tell: gates fail on it, unless it is accepted by its name.
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
    gaps: tuple[WatchGap, ...]
    heap_account: HeapAccount | None
    notes: tuple[Note, ...]


def watch_members(result: WatchResult, version: str) -> Json:
    """Return the members of the answer."""
    timeline = result.timeline
    began, costs = timeline.began, timeline.course.values or [0]
    every = [*timeline.alive.values(), *timeline.ended.values()]
    every.sort(key=lambda p: (-(p.peak_resident_bytes or 0), p.came.number))
    return encode(
        WatchJson(
            tool=Tool("footprint", version),
            host=began.host,
            target=row_of(WatchTarget, result),
            watch=row_of(WatchFigures, result),
            growth=rows_of(WatchGrowth, [OwnerGrowth("", costs[0], costs[-1], result.growth), *result.owners]),
            samples=tuple([WatchSample(round(at * 1000), round(value)) for at, value in timeline.course.points]),
            owner_layers=owner_layers(timeline),
            process_layers=process_layers(timeline),
            processes=rows_of(WatchProcess, [_ProcessNow(p, timeline.ms) for p in every]),
            audits=rows_of(WatchAudit, timeline.taken),
            owner_changes=() if result.comparison is None else result.comparison.owners,
            changes=() if result.comparison is None else result.comparison.changes,
            grown_mappings=result.mappings,
            gaps=result.gaps,
            heap_account=None if result.split is None else result.split.heap,
            notes=result.notes,
        )
    )
