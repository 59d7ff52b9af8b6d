"""The report of `footprint run`."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Heading,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    note_blocks,
    rest_rows,
    sum_row,
)
from footprint.model.audit import Audit, separation_confidence
from footprint.model.costs import Spread, StartMeasurement, StartStage, processor_hours
from footprint.model.over_time import Peak, RunFailure, which_starts
from footprint.process.launch.moment import When
from footprint.text.units import counted, format_bytes, format_hours
from footprint.verbs.audit.text import audit_document
from footprint.verbs.run.result import RunResult, Start

MOMENTS: Final = {
    When.EXIT: "at its exit",
    When.SETTLED: "when its private memory had settled",
    When.TIME: "at the time asked for",
    When.OUTPUT: "at a line of its output",
    When.PEAK: "near its peak",
}

_MOST_HOLDERS: Final = 3
# An audit that explains this part of the peak was made near it.
_NEAR: Final = 0.9
# Of five starts of each of two programs alike, all of one are above all of the other in 0.8 % of the cases.
_SURE: Final = 0.99
_UNSURE: Final = "not sure"


def run_document(ran: RunResult, *, by: str = "owner", top: int = 20, has_whole_names: bool = False) -> Document:
    """Show where the memory of a program went that was run; `top` rows a table, 0 for all."""
    quiet = replace(ran.audit, notes=())
    failures = ran.audit.run_failures
    _, *blocks, verdict = audit_document(quiet, by=by, top=top, has_whole_names=has_whole_names)
    return (
        Heading(_title(ran)),
        Paragraph(_how(ran)),
        *_peak(ran),
        *blocks,
        *_starts(ran),
        *start_cost_blocks([ran]),
        *_children(
            ran.start, top, "Its other processes" if ran.start.moment is When.PEAK else "Processes that it started"
        ),
        *note_blocks(ran.notes, ran.audit.target),
        Verdict(f"{failure_text(failures, ran.start_count)}.", is_failure=True) if failures else verdict,
    )


def failure_text(failures: Sequence[RunFailure], start_count: int) -> str:
    """Describe in one line how a run failed, and in which of its starts."""
    return f"The run failed: {failure_causes(failures, start_count)}"


def failure_causes(failures: Sequence[RunFailure], start_count: int) -> str:
    """List how starts failed, and which of them."""
    causes = list(dict.fromkeys(failure.detail for failure in failures))
    starts = list(dict.fromkeys(failure.start for failure in failures))
    return f"{'; '.join(causes)}{which_starts(starts, start_count)}"


def _title(ran: RunResult) -> str:
    command = shlex.join(ran.command)
    return f"footprint run: {command if len(command) <= 80 else command[:77] + '...'}"


def _how(ran: RunResult) -> str:
    start = ran.start
    of_which = ""
    if start.children and start.moment is When.PEAK:
        of_which = f" The figures are those of the process that held most: {start.audit.pid}, {start.audit.command}."
    if start.signal is not None:
        end = f"ended by {start.signal}"
    else:
        end = "then ended by footprint" if start.exit_code is None else f"exit code {start.exit_code}"
    which = f"The median of {ran.start_count} starts, taken" if ran.start_count > 1 else "Taken"
    return f"{which} {MOMENTS[start.moment]}, {end}.{of_which}"


def _peak(ran: RunResult) -> list[Block]:
    peak, start = ran.peak, ran.start
    if peak is None:
        return []
    files = "page cache" if peak.has_kernel_memory else "pages of files"
    left_out = f", without {format_bytes(peak.page_cache_bytes)} of {files}" if peak.page_cache_bytes else ""
    count = f", {peak.process_count} processes seen" if peak.process_count > 1 else ""
    how = f"{peak.evidence.value} ({peak.source}{left_out}), {peak.seconds:.2f} s after its start{count}"
    holders = [
        ("resident then", format_bytes(holder.resident_bytes), f"process {holder.pid}: {holder.command}")
        for holder in peak.holders[:_MOST_HOLDERS]
    ]
    missed = ("resident then", "-", "the process that held most ended before it could be seen")
    rows = [("peak of it and all it started", format_bytes(peak.peak_bytes), how), *(holders or [missed])]
    rows.append(("held when it was read", format_bytes(start.read_at_bytes), _share(start.read_at_bytes, peak)))
    explained_bytes = start.explained_bytes
    if explained_bytes is not None:
        hint = ""
        if explained_bytes < _NEAR * peak.peak_bytes and start.read_at_bytes >= _NEAR * peak.peak_bytes:
            hint = "; the kernel charges up to 63 pages for each CPU before use" if peak.has_kernel_memory else ""
        elif explained_bytes < _NEAR * peak.peak_bytes and ran.when != When.PEAK:
            hint = "; --when peak explains it"
        rows.append(("explained by this audit", format_bytes(explained_bytes), _share(explained_bytes, peak) + hint))
    return [Facts(tuple(rows))]


def _share(size_bytes: int, peak: Peak) -> str:
    return f"{100 * size_bytes / peak.peak_bytes:.1f} % of the peak" if peak.peak_bytes else ""


def _starts(ran: RunResult) -> list[Block]:
    if ran.start_count == 1:
        return []
    figures = (("per process", ran.per_process), ("private memory", ran.private))
    rows = tuple((label, format_bytes(spread.median), _range(spread)) for label, spread in figures if spread)
    return [Heading(f"Over {ran.start_count} starts"), Facts(rows)]


def start_cost_blocks(runs: Sequence[RunResult]) -> list[Block]:
    """Write what the starts of one program cost, or of two and their difference; nothing where none was measured."""
    measured = [ran.start_cost for ran in runs if ran.start_cost]
    if not measured:
        return []
    calls = [cost.system_call_count for cost in measured]
    entry = [*_stage_rows(measured), ("system calls", [Spread(count, count, count) for count in calls])]
    blocks = _stage_blocks("the entry point", measured[0].start_count, entry)
    mains = [cost.main for cost in measured if cost.main]
    if len(mains) == len(measured):
        blocks += _stage_blocks("main", mains[0].start_count, _stage_rows(mains))
    else:
        blocks.append(Paragraph("Where main begins is not known, or a start without arguments does not reach it."))
    moments = [cost.moment for cost in measured if cost.moment]
    if len(moments) == len(measured):
        moment = f"the moment, {MOMENTS[runs[0].start.moment]}"
        blocks += _stage_blocks(moment, moments[0].start_count, _stage_rows(moments))
    if not any(cost.instructions for cost in measured):
        blocks.append(Paragraph("Instructions are not counted here: the kernel has no counter for us."))
    blocks += _daily_blocks(runs, measured)
    if any(_UNSURE in row for block in blocks if isinstance(block, Table) for row in block.rows):
        blocks.append(Paragraph(f"{_UNSURE}: too few starts for a difference; --starts 5 measures enough."))
    if 0 in calls and any(calls):
        blocks.append(Paragraph("A static program relocates itself behind its entry point: compare up to main."))
    return blocks


def _daily_blocks(runs: Sequence[RunResult], measured: Sequence[StartMeasurement]) -> list[Block]:
    """Write what so many starts a day take: of one program, or of two and the difference beyond their spread."""
    start_count = runs[0].starts_a_day
    if start_count is None:
        return []
    rows = []
    for place, stages in (
        ("to the entry point", measured),
        ("to main", [cost.main for cost in measured if cost.main]),
        ("to the moment", [cost.moment for cost in measured if cost.moment]),
    ):
        if len(stages) == len(measured):
            ranges = [stage.processor_us for stage in stages]
            hours = [processor_hours(span.median, start_count) for span in ranges]
            doubt = "" if len(stages) == 1 else _doubt(ranges, stages[0].start_count)
            signs = ["+" * (after > hours[0]) for after in hours[1:]]
            differences = [
                doubt or f"{sign}{format_hours(after - hours[0])}" for sign, after in zip(signs, hours[1:], strict=True)
            ]
            rows.append((*map(format_hours, hours), *differences, place))
    names = ("hours",) if len(measured) == 1 else ("before", "after", "difference")
    heading = Heading(f"Processor hours a day, of {counted(start_count, 'start')} a day")
    return [heading, Table((*names, ""), tuple(rows))]


def _stage_rows(stages: Sequence[StartMeasurement | StartStage]) -> list[tuple[str, list[Spread]]]:
    rows = [("processor time, us", [stage.processor_us for stage in stages])]
    rows += [("minor page faults", [stage.minor_faults for stage in stages])]
    rows += [("major page faults", [stage.major_faults for stage in stages])]
    counted = [stage.instructions for stage in stages if stage.instructions]
    return rows + [("instructions", counted)] * (len(counted) == len(stages))


def _stage_blocks(place: str, start_count: int, rows: Sequence[tuple[str, list[Spread]]]) -> list[Block]:
    is_one = len(rows[0][1]) == 1
    names = ("median", "spread") if is_one else ("before", "spread", "after", "spread", "difference")
    cells = tuple([(*_range_cells(ranges, start_count), label) for label, ranges in rows])
    count = counted(start_count, "start") + ("" if is_one else " each")
    return [Heading(f"From execve to {place}, {count}"), Table((*names, ""), cells)]


def _range_cells(ranges: Sequence[Spread], start_count: int) -> list[str]:
    spreads = ["" if start_count == 1 else f"{span.min:,} to {span.max:,}" for span in ranges]
    cells = [cell for span, spread in zip(ranges, spreads, strict=True) for cell in (f"{span.median:,}", spread)]
    if len(ranges) > 1:
        first, second = ranges
        difference = second.median - first.median
        share = 100 * difference / max(1, first.median)
        cells.append(_doubt(ranges, start_count) or f"{difference:+,} ({share:+.1f} %)")
    return cells


def _doubt(ranges: Sequence[Spread], start_count: int) -> str:
    """Return what stands in place of a difference that the spread of the starts covers, or so few starts show."""
    first, second = ranges
    if first.min <= second.max and second.min <= first.max:
        return "none"
    return "" if separation_confidence(start_count, start_count) >= _SURE else _UNSURE


def _range(spread: Spread) -> str:
    return f"median, from {format_bytes(spread.min)} to {format_bytes(spread.max)}"


def _children(start: Start, top: int, title: str) -> list[Block]:
    if not start.children:
        return []
    shown, rest = cut_at(start.children, top)
    columns = ("private", "per process", "pid", "command")
    total = sum_row(f"[{len(start.children)} in all, in no figure of the tables above]", len(columns))
    footer = (*rest_rows(len(rest), len(columns)), total)
    return [Heading(title), Table(columns, tuple(map(_child, shown)), frozenset(), footer)]


def _child(child: Audit) -> tuple[str, ...]:
    sizes = (child.totals.private.bytes, child.totals.per_process.bytes)
    return (*("-" if size is None else format_bytes(size) for size in sizes), str(child.pid), child.command)
