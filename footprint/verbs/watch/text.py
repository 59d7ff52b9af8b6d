"""The report of `footprint watch`, and its lines while it goes on."""

from collections.abc import Iterable, Sequence
from typing import Final

from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import printable, shortened
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.series.grown_mappings import MappingGrowth
from footprint.series.growth import GrowthKind, GrowthTrend
from footprint.series.timeline import OwnerGrowth, Timeline, WatchedProcess
from footprint.units import counted, format_bytes, format_minutes, format_rate
from footprint.verbs.diff.text import comparison_names, owner_blocks, variable_blocks
from footprint.verbs.watch.result import WatchResult

__all__ = ("command_text", "duration_text", "growth_text", "target_name", "tick_line", "trend_word", "watch_document")

_KINDS: Final = {
    GrowthKind.GROWS: "grows",
    GrowthKind.STEADY: "does not grow",
    GrowthKind.WARMED_UP: "grew at first, and no longer",
    GrowthKind.SAW_TOOTH: "rises and falls, and what is left after each fall does not grow",
    GrowthKind.SHRINKS: "shrinks",
    GrowthKind.UNKNOWN: "was watched too short to tell whether it grows",
}
_TRENDS: Final = frozenset({GrowthKind.GROWS, GrowthKind.SHRINKS})
# An owner explains all of the growth from this part on.
_ALL: Final = 0.95
_MOST_NAME_CHARS: Final = 60
_MOST_COMMAND_CHARS: Final = 28


def watch_document(found: WatchResult, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Write what a watch saw; `top` rows a table, 0 for all."""
    timeline = found.timeline
    return (
        Heading(f"footprint watch: {target_name(timeline)}"),
        Paragraph(_how(found)),
        Facts(tuple(_facts(found))),
        *_owners(found, top, is_whole=has_whole_names),
        *_changes(found, top, is_whole=has_whole_names),
        *_heap(found, top, is_whole=has_whole_names),
        *_processes(timeline, top, is_whole=has_whole_names),
        *note_blocks(found.notes, timeline.began.target),
        Verdict(_verdict(found), is_failure=found.fails is not None),
    )


def target_name(timeline: Timeline) -> str:
    """Return the name of what is watched, shortened."""
    target = " ".join(timeline.began.target.split())
    return target if len(target) <= _MOST_NAME_CHARS else f"{target[: _MOST_NAME_CHARS - 3]}..."


def duration_text(ms: int) -> str:
    """Write a time: `850 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else format_minutes(seconds)


def _how(found: WatchResult) -> str:
    timeline = found.timeline
    work = f"{100 * timeline.own_cpu_ms / timeline.ms:.1f} % of a processor" if timeline.ms else "no time"
    parts = [f"Watched for {duration_text(timeline.ms)}: {counted(timeline.tick_count, 'tick')}"]
    parts.append(f"{counted(timeline.process_count, 'process')}, at most {timeline.most_process_count:,} at a time")
    part = "in part " if any(note.slug == "series-incomplete" for note in timeline.notes) else ""
    kept = f" Kept {part}in {found.series}." if found.series is not None else ""
    return f"{', '.join(parts)}. The watch itself took {work}, its audits included.{kept}"


def _facts(found: WatchResult) -> list[tuple[str, str, str]]:
    timeline = found.timeline
    rows = [
        ("cost at the end", format_bytes(timeline.last_cost_bytes), "private memory, page tables and kernel stacks")
    ]
    group = timeline.group_peak
    if group is not None:
        rows.append(("peak", format_bytes(group.peak_bytes), f"measured ({group.source}), without page cache"))
    at = f"at {duration_text(timeline.peak_ms)}"
    rows.append(("peak of the ticks", format_bytes(timeline.peak_bytes), at))
    near = found.near_peak
    if near is not None and found.timeline.most_bytes:
        share = f"{100 * near.audit.held_bytes / found.timeline.most_bytes:.1f} % of the peak"
        if near.audit.held_bytes > found.timeline.most_bytes:
            share = "all of the peak, and kernel objects"
        way = "before" if near.distance_ms < 0 else "after"
        when = f", {duration_text(abs(near.distance_ms))} {way} the tick" if near.distance_ms else ""
        rows.append(("explained by the audit", format_bytes(near.audit.held_bytes), f"{share}{when}"))
    rows.append(("95 % of the time", format_bytes(timeline.usual_most_bytes), "at most"))
    rows.append(("trend", trend_word(found.growth), f"it {_kind(found.growth)}"))
    closed = timeline.closed
    if closed is not None and closed.how != "named":
        how = {
            "events": "by events of the kernel",
            "ptrace": "by ptrace",
            "polling": "by looking: short ones may be missed (be root for events of the kernel)",
        }.get(closed.how, closed.how)
        missed = closed.fork_count - closed.seen_count
        rows.append(("starts not seen", f"{missed:,}", f"of {closed.fork_count:,} on the whole machine; {how}"))
    return rows


def trend_word(growth: GrowthTrend) -> str:
    """Return the rate of what grows or shrinks; what has no trend has a kind, and no rate."""
    return _rate(growth) if growth.kind in _TRENDS else growth.kind.value


def _kind(growth: GrowthTrend) -> str:
    if growth.kind not in _TRENDS:
        return _KINDS[growth.kind]
    since = f" since {duration_text(round(growth.since_seconds * 1000))}" if growth.since_seconds >= 1 else ""
    return f"{_KINDS[growth.kind]}{since} ({_interval(growth)})"


def _rate(growth: GrowthTrend) -> str:
    return "" if growth.slope is None else format_rate(growth.slope.per_second)


def _interval(growth: GrowthTrend) -> str:
    slope = growth.slope
    return "" if slope is None else f"{format_rate(slope.least)} to {format_rate(slope.most)}"


def _owners(found: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    """Write the table of growth by owner; those that only moved within the audits' noise are left out."""
    grown = [one for one in found.owners if one.growth.kind is not GrowthKind.UNKNOWN]
    if not grown:
        return []
    names = Names([one.owner for one in grown], is_whole=is_whole)
    shown, rest = cut_at(grown, top)
    rows = tuple(_owner_row(one, found.growth, names) for one in shown)
    columns = ("by the hour", "interval of 95 %", "share", "kind", "owner")
    return [Heading("Growth by owner"), Table(columns, rows, frozenset({1, 3}), rest_rows(len(rest), len(columns)))]


def _owner_row(one: OwnerGrowth, whole: GrowthTrend, names: Names) -> tuple[str, ...]:
    share = _share(one, whole)
    has_share = share is not None and whole.kind in _TRENDS
    share_text = f"{100 * share:.0f} %" if has_share and share is not None else ""
    return (_rate(one.growth), _interval(one.growth), share_text, one.growth.kind.value, names.owner(one.owner))


def _share(one: OwnerGrowth, whole: GrowthTrend) -> float | None:
    """Return which part of the growth of the whole is that of an owner."""
    if whole.slope is None or one.growth.slope is None or not whole.slope.per_second:
        return None
    return one.growth.slope.per_second / whole.slope.per_second


def _changes(found: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    if found.comparison is None:
        return []
    first, last = found.compared
    title = f"From the audit at {duration_text(first.ms)} ({first.moment}) to {duration_text(last.ms)} ({last.moment})"
    names = comparison_names(found.comparison, is_whole=is_whole)
    blocks = [
        *owner_blocks(found.comparison, top, names),
        *variable_blocks(found.comparison, top, names),
        *_mappings(found.mappings, top, is_whole=is_whole),
    ]
    return [Heading(title), *blocks] if blocks else []


def _mappings(grown: Sequence[MappingGrowth], top: int, *, is_whole: bool) -> list[Block]:
    """Write the table of the mappings that grew."""
    if not grown:
        return []
    names = Names([one.name for one in grown], is_whole=is_whole)
    shown, rest = cut_at(grown, top)
    rows = tuple(
        (
            f"+{format_bytes(one.delta_bytes)}",
            format_bytes(one.before_bytes),
            format_bytes(one.now_bytes),
            str(one.pid),
            f"{one.start_addr:x}-{one.end_addr:x}",
            names.owner(one.name) if one.name else "-",
        )
        for one in shown
    )
    columns = ("private", "before", "now", "pid", "addresses", "name")
    return [Heading("Mappings that grew"), Table(columns, rows, frozenset({4}), rest_rows(len(rest), len(columns)))]


def _heap(found: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    """Write who asked for what is in the heap at the end."""
    if found.split is None:
        return []
    from footprint.verbs.audit.text import heap_blocks  # noqa: PLC0415 # few watches have a profile

    return heap_blocks(found.split, Names([row.owner for row in found.split.ledger], is_whole=is_whole), top)


def _processes(timeline: Timeline, top: int, *, is_whole: bool) -> list[Block]:
    """Write the table of processes: a row for all that ran one command, with the figures of the largest."""
    if timeline.process_count < 2:
        return []
    groups: dict[str, list[WatchedProcess]] = {}
    for one in [*timeline.alive.values(), *timeline.ended.values()]:
        groups.setdefault(one.came.command, []).append(one)
    rows = sorted([(_largest(of), len(of)) for of in groups.values()], key=lambda row: _order(row[0]))
    shown, _ = cut_at(rows, top)
    columns = ("peak RSS", "known by", "peak cost", "lived", "pid", "command")
    hidden = timeline.process_count - sum(count for _, count in shown)
    lines = tuple(_process_row(one, count, timeline.ms, is_whole=is_whole) for one, count in shown)
    footer = rest_rows(hidden, len(columns))
    return [Heading("Processes"), Table(columns, lines, frozenset({1}), footer)]


def _largest(processes: Iterable[WatchedProcess]) -> WatchedProcess:
    return min(processes, key=_order)


def _order(one: WatchedProcess) -> tuple[int, int]:
    return -(one.peak_resident_bytes or 0), one.came.number


def _process_row(one: WatchedProcess, count: int, now_ms: int, *, is_whole: bool) -> tuple[str, ...]:
    peak_bytes = one.peak_resident_bytes
    lived = duration_text(one.lived_ms(now_ms))
    of_which = "" if count == 1 else f" [1 of {count:,}]"
    command = one.came.command if is_whole else command_text(one.came.command, _MOST_COMMAND_CHARS - len(of_which))
    return (
        "-" if peak_bytes is None else format_bytes(peak_bytes),
        "status" if one.ended is None else one.ended.source,
        format_bytes(one.peak_cost_bytes) if one.peak_cost_bytes else "-",
        f"{lived}+" if one.ended is None else lived,
        str(one.came.pid),
        f"{command}{of_which}",
    )


def command_text(command: str, most: int = _MOST_COMMAND_CHARS) -> str:
    """Write a command line for a row of a table: its program without folders, and cut."""
    text = printable(" ".join(command.split()))
    if len(text) > most and text.startswith("/"):
        program, space, words = text.partition(" ")
        text = f"{program.rpartition('/')[2]}{space}{words}"
    return shortened(text, most)


def growth_text(growth: GrowthTrend, owners: Sequence[OwnerGrowth]) -> str:
    """Write how memory went, and whose growth it is: `grows 3.2 MiB/h (2.9 MiB/h to 3.4 MiB/h), all of it [heap]`."""
    if growth.kind not in _TRENDS:
        return _KINDS[growth.kind]
    text = f"{_KINDS[growth.kind]} {_rate(growth)} ({_interval(growth)})"
    shares = _shares(growth, owners)
    if not shares:
        return text
    share, owner = max(shares)
    part = "all of it" if share >= _ALL else f"{100 * share:.0f} % of it"
    return f"{text}, {part} {owner.rpartition('/')[2]}"


def _shares(growth: GrowthTrend, owners: Sequence[OwnerGrowth]) -> list[tuple[float, str]]:
    """Return which part of the growth is that of each owner: by the slopes, else by the first and last audit."""
    shares = [(share, one.owner) for one in owners if (share := _share(one, growth)) is not None]
    if shares:
        return shares
    whole = sum(one.last_bytes - one.first_bytes for one in owners)
    is_alike = growth.slope is not None and whole * growth.slope.per_second > 0
    return [((one.last_bytes - one.first_bytes) / whole, one.owner) for one in owners] if is_alike else []


def _verdict(found: WatchResult) -> str:
    text = growth_text(found.growth, found.owners)
    failure = "Failed: " if found.fails is not None else ""
    return f"{failure}{target_name(found.timeline)} {text}; its peak is {format_bytes(found.timeline.most_bytes)}."


def tick_line(timeline: Timeline) -> str:
    """Write a tick as a line, for a pipe."""
    cost, peak = format_bytes(timeline.sums.cost_bytes), format_bytes(timeline.peak_bytes)
    count = counted(len(timeline.alive), "process")
    return f"{duration_text(timeline.ms):>12}  cost {cost:>10}  peak {peak:>10}  {count}"
