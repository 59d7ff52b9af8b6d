"""The report of `footprint watch`, and its lines while it goes on."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    note_blocks,
    rest_rows,
)
from footprint.series.growth import TRENDS, GrowthKind, GrowthTrend, MappingGrowth
from footprint.series.moments import WatchedPeak
from footprint.series.timeline import OwnerGrowth, Timeline, WatchedProcess, growth_shares
from footprint.text.escape import printable, shortened
from footprint.text.units import counted, format_bytes, format_minutes, format_rate
from footprint.verbs.diff.text import comparison_names, owner_blocks, variable_blocks
from footprint.verbs.watch.result import WatchResult

_KINDS: Final = {
    GrowthKind.GROWS: "grows",
    GrowthKind.STEADY: "does not grow",
    GrowthKind.WARMED_UP: "grew at first, and no longer",
    GrowthKind.SAW_TOOTH: "rises and falls, and what is left after each fall does not grow",
    GrowthKind.SHRINKS: "shrinks",
    GrowthKind.UNKNOWN: "was watched too short to tell whether it grows",
}
# An owner explains all of the growth from this part on.
_ALL: Final = 0.95
_MOST_NAME_CHARS: Final = 60
_MOST_COMMAND_CHARS: Final = 28


def watch_document(result: WatchResult, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Show what a watch saw; `top` rows a table, 0 for all."""
    timeline = result.timeline
    return (
        Heading(f"footprint watch: {target_name(timeline)}"),
        Paragraph(_how(result)),
        Facts(tuple(_facts(result))),
        *_owners(result, top, is_whole=has_whole_names),
        *_changes(result, top, is_whole=has_whole_names),
        *_heap(result, top, is_whole=has_whole_names),
        *_processes(timeline, top, is_whole=has_whole_names),
        *note_blocks(result.notes, timeline.began.target),
        Verdict(_verdict(result), is_failure=result.fails is not None),
    )


def target_name(timeline: Timeline) -> str:
    """Return the name of what is watched, shortened."""
    target = " ".join(timeline.began.target.split())
    return target if len(target) <= _MOST_NAME_CHARS else f"{target[: _MOST_NAME_CHARS - 3]}..."


def duration_text(ms: int) -> str:
    """Format a time: `850 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else format_minutes(seconds)


def _how(result: WatchResult) -> str:
    timeline = result.timeline
    work = f"{100 * timeline.own_cpu_ms / timeline.ms:.1f} % of a processor" if timeline.ms else "no time"
    parts = [f"Watched for {duration_text(timeline.ms)}: {counted(timeline.tick_count, 'tick')}"]
    parts.append(f"{counted(timeline.process_count, 'process')}, at most {timeline.most_process_count:,} at a time")
    part = "in part " if any(note.slug == "series-incomplete" for note in timeline.notes) else ""
    kept = f" Kept {part}in {result.series}." if result.series is not None else ""
    return f"{', '.join(parts)}. The watch itself took {work}, its audits included.{kept}"


def _facts(result: WatchResult) -> list[tuple[str, str, str]]:
    timeline = result.timeline
    rows = [
        (
            "cost at the end",
            format_bytes(timeline.last_cost_bytes),
            "private, own shared and kernel memory",
        )
    ]
    group = timeline.group_peak
    if group is not None:
        rows.append(("peak", format_bytes(group.peak_bytes), f"measured ({group.source}), without page cache"))
    elif result.peak.source != "ticks":
        rows.append(("peak", peak_text(result.peak), f"{result.peak.source}, less its pages of files"))
    at = f"at {duration_text(timeline.peak_ms)}"
    is_least = result.peak.is_lower_bound and result.peak.source == "ticks"
    rows.append(
        (
            "peak of the ticks",
            format_bytes(timeline.peak_bytes),
            f"{at}; more was possible between two" if is_least else at,
        )
    )
    near = result.near_peak
    if near is not None and result.peak.size_bytes:
        share = f"{100 * near.held_bytes / result.peak.size_bytes:.1f} % of the peak"
        if near.held_bytes > result.peak.size_bytes:
            share = "all of the peak, and kernel objects"
        distance_ms = near.ms - result.timeline.peak_ms
        way = "before" if distance_ms < 0 else "after"
        when = f", {duration_text(abs(distance_ms))} {way} the tick" if distance_ms else ""
        rows.append(("explained by the audit", format_bytes(near.held_bytes), f"{share}{when}"))
    rows.append(("95 % of the time", format_bytes(timeline.usual_most_bytes), "at most"))
    rows.append(("trend", trend_word(result.growth), f"it {_kind(result.growth)}"))
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
    return _rate(growth) if growth.kind in TRENDS else growth.kind.value


def _kind(growth: GrowthTrend) -> str:
    if growth.kind not in TRENDS:
        return _KINDS[growth.kind]
    since = f" since {duration_text(round(growth.since_seconds * 1000))}" if growth.since_seconds >= 1 else ""
    return f"{_KINDS[growth.kind]}{since}{_interval_in_brackets(growth)}"


def _rate(growth: GrowthTrend) -> str:
    return "" if growth.slope is None else format_rate(growth.slope.per_second)


def _interval(growth: GrowthTrend) -> str:
    slope = growth.slope
    if slope is None:
        return ""
    least, most = format_rate(slope.least), format_rate(slope.most)
    return least if least == most else f"{least} to {most}"


def _interval_in_brackets(growth: GrowthTrend) -> str:
    """Return the interval as it stands beside a rate, where it has another figure."""
    interval = _interval(growth)
    return f" ({interval})" if interval != _rate(growth) else ""


def _owners(result: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    """Show the table of growth by owner; those that only moved within the audits' noise are left out."""
    grown = [owner for owner in result.owners if owner.growth.kind is not GrowthKind.UNKNOWN]
    if not grown:
        return []
    names = Names([row.owner for row in grown], is_whole=is_whole)
    shown, rest = cut_at(grown, top)
    rows = tuple(_owner_row(row, result.growth, names) for row in shown)
    columns = ("by the hour", "interval of 95 %", "share", "kind", "owner")
    return [Heading("Growth by owner"), Table(columns, rows, frozenset({1, 3}), rest_rows(len(rest), len(columns)))]


def _owner_row(row: OwnerGrowth, whole: GrowthTrend, names: Names) -> tuple[str, ...]:
    share = row.share_of(whole)
    has_share = share is not None and whole.kind in TRENDS
    share_text = f"{100 * share:.0f} %" if has_share and share is not None else ""
    return (_rate(row.growth), _interval(row.growth), share_text, row.growth.kind.value, names.owner(row.owner))


def _changes(result: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    if result.comparison is None:
        return []
    first, last = result.compared
    title = f"From the audit at {duration_text(first.ms)} ({first.moment}) to {duration_text(last.ms)} ({last.moment})"
    names = comparison_names(result.comparison, is_whole=is_whole)
    blocks = [
        *owner_blocks(result.comparison, top, names),
        *variable_blocks(result.comparison, top, names),
        *_mappings(result.mappings, top, is_whole=is_whole),
    ]
    return [Heading(title), *blocks] if blocks else []


def _mappings(grown: Sequence[MappingGrowth], top: int, *, is_whole: bool) -> list[Block]:
    """Show the table of the mappings that grew."""
    if not grown:
        return []
    names = Names([m.name for m in grown], is_whole=is_whole)
    shown, rest = cut_at(grown, top)
    rows = tuple(
        (
            f"+{format_bytes(m.delta_bytes)}",
            format_bytes(m.before_bytes),
            format_bytes(m.now_bytes),
            str(m.pid),
            f"{m.start_addr:x}-{m.end_addr:x}",
            names.owner(m.name) if m.name else "-",
        )
        for m in shown
    )
    columns = ("private", "before", "now", "pid", "addresses", "name")
    return [Heading("Mappings that grew"), Table(columns, rows, frozenset({4}), rest_rows(len(rest), len(columns)))]


def _heap(result: WatchResult, top: int, *, is_whole: bool) -> list[Block]:
    """Show who asked for what is in the heap at the end."""
    if result.split is None:
        return []
    from footprint.verbs.audit.text import heap_blocks  # noqa: PLC0415 # few watches have a profile

    return heap_blocks(result.split, Names([row.owner for row in result.split.ledger], is_whole=is_whole), top)


def _processes(timeline: Timeline, top: int, *, is_whole: bool) -> list[Block]:
    """Show the table of processes: a row for all that ran one command, with the figures of the largest."""
    if timeline.process_count < 2:
        return []
    groups: dict[str, list[WatchedProcess]] = {}
    for p in [*timeline.alive.values(), *timeline.ended.values()]:
        groups.setdefault(p.came.command, []).append(p)
    rows = sorted([(min(of, key=_order), len(of)) for of in groups.values()], key=lambda row: _order(row[0]))
    shown, _ = cut_at(rows, top)
    columns = ("peak RSS", "known by", "peak cost", "lived", "pid", "command")
    hidden = timeline.process_count - sum(count for _, count in shown)
    lines = tuple(_process_row(p, count, timeline.ms, is_whole=is_whole) for p, count in shown)
    footer = rest_rows(hidden, len(columns))
    return [Heading("Processes"), Table(columns, lines, frozenset({1}), footer)]


def _order(process: WatchedProcess) -> tuple[int, int]:
    return -(process.peak_resident_bytes or 0), process.came.number


def _process_row(p: WatchedProcess, count: int, now_ms: int, *, is_whole: bool) -> tuple[str, ...]:
    peak_bytes = p.peak_resident_bytes
    lived = duration_text(p.lived_ms(now_ms))
    of_which = "" if count == 1 else f" [1 of {count:,}]"
    command = p.came.command if is_whole else command_text(p.came.command, _MOST_COMMAND_CHARS - len(of_which))
    return (
        "-" if peak_bytes is None else format_bytes(peak_bytes),
        "status" if p.ended is None else p.ended.source,
        format_bytes(p.peak_cost_bytes) if p.peak_cost_bytes else "-",
        f"{lived}+" if p.ended is None else lived,
        str(p.came.pid),
        f"{command}{of_which}",
    )


def command_text(command: str, most: int = _MOST_COMMAND_CHARS) -> str:
    """Format a command line for a row of a table: its program without folders, and cut."""
    text = printable(" ".join(command.split()))
    if len(text) > most and text.startswith("/"):
        program, space, words = text.partition(" ")
        text = f"{program.rpartition('/')[2]}{space}{words}"
    return shortened(text, most)


def growth_text(growth: GrowthTrend, owners: Sequence[OwnerGrowth]) -> str:
    """Write how memory went, and whose growth it is: `grows 3.2 MiB/h (2.9 MiB/h to 3.4 MiB/h), all of it [heap]`."""
    if growth.kind not in TRENDS:
        return _KINDS[growth.kind]
    text = f"{_KINDS[growth.kind]} {_rate(growth)}{_interval_in_brackets(growth)}"
    shares = growth_shares(growth, owners)
    if not shares:
        return text
    owner, share = max(shares, key=itemgetter(1))
    part = "all of it" if share >= _ALL else f"{100 * share:.0f} % of it"
    return f"{text}, {part} {owner.rpartition('/')[2]}"


def _named(timeline: Timeline) -> str:
    """Return the name of what is watched, where that is a PID with its program before it."""
    name = target_name(timeline)
    members = (*timeline.alive.values(), *timeline.ended.values())
    commands = [member.came.command for member in members if str(member.came.pid) == name]
    program = command_text(commands[0]).partition(" ")[0].rpartition("/")[2] if commands else ""
    return f"{program} {name}".strip()


def _verdict(result: WatchResult) -> str:
    text = growth_text(result.growth, result.owners)
    verdict = f"{_named(result.timeline)} {text}; its peak is {peak_text(result.peak)}."
    if result.fails is None or result.growth.kind in TRENDS:
        return verdict if result.fails is None else f"Failed: {verdict}"
    return f"Failed: {verdict} Not told: {result.fails}."


def failure_text(result: WatchResult) -> str:
    """Describe why a watch fails."""
    is_growth = result.growth.kind in TRENDS or result.fails is None
    return growth_text(result.growth, result.owners) if is_growth else str(result.fails)


def peak_text(peak: WatchedPeak) -> str:
    """Format a peak: a lower bound as such."""
    return f"{'at least ' if peak.is_lower_bound else ''}{format_bytes(peak.size_bytes)}"


def tick_line(timeline: Timeline) -> str:
    """Format a tick as a line, for a pipe."""
    cost, peak = format_bytes(timeline.sums.cost_bytes), format_bytes(timeline.peak_bytes)
    count = counted(len(timeline.alive), "process")
    return f"{duration_text(timeline.ms):>12}  cost {cost:>10}  peak {peak:>10}  {count}"
