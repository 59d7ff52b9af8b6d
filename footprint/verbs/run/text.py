"""The report of `footprint run`."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.formats.report_parts import cut_at, rest_rows, sum_row
from footprint.model.audit import Audit, Spread
from footprint.model.costs import MeasuredRange
from footprint.model.over_time import Peak
from footprint.model.run_failure import RunFailure, which_starts
from footprint.process.launch.moment import When
from footprint.text.units import format_bytes
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
        *start_cost_blocks([ran], ran.audit.projection.count),
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
        hint = (
            "" if ran.when == When.PEAK or explained_bytes >= _NEAR * peak.peak_bytes else "; --when peak explains it"
        )
        rows.append(
            ("explained by this audit", format_bytes(explained_bytes), f"{_share(explained_bytes, peak)}{hint}")
        )
    return [Facts(tuple(rows))]


def _share(size_bytes: int, peak: Peak) -> str:
    return f"{100 * size_bytes / peak.peak_bytes:.1f} % of the peak" if peak.peak_bytes else ""


def _starts(ran: RunResult) -> list[Block]:
    if ran.start_count == 1:
        return []
    figures = (("per process", ran.per_process), ("private memory", ran.private))
    rows = tuple((label, format_bytes(spread.median_bytes), _range(spread)) for label, spread in figures if spread)
    return [Heading(f"Over {ran.start_count} starts"), Facts(rows)]


def start_cost_blocks(runs: Sequence[RunResult], count: int) -> list[Block]:
    """Write what the starts of one program cost, or of two and their difference; nothing where none was measured."""
    measured = [ran.start_cost for ran in runs if ran.start_cost]
    if not measured:
        return []
    rows = [("processor time, us", [cost.processor_us for cost in measured])]
    rows += [("minor page faults", [cost.minor_faults for cost in measured])]
    rows += [("major page faults", [cost.major_faults for cost in measured])]
    calls = [cost.system_call_count for cost in measured]
    rows += [("system calls", [MeasuredRange(calls_of_one, calls_of_one, calls_of_one) for calls_of_one in calls])]
    names = ("median", "spread") if len(measured) == 1 else ("before", "spread", "after", "spread", "difference")
    cells = tuple([(*_range_cells(ranges), label) for label, ranges in rows])
    hours = " before, and ".join([f"{c.processor_us.median * count / 3.6e9:.3g} processor hours" for c in measured])
    after = " after" if len(measured) > 1 else ""
    return [
        Heading(f"From execve to the entry point, {measured[0].start_count} starts each"),
        Table((*names, ""), cells),
        *([Paragraph(f"{count:,} starts take {hours}{after}.")] if count > 1 else []),
    ]


def _range_cells(ranges: Sequence[MeasuredRange]) -> list[str]:
    cells = [cell for span in ranges for cell in (f"{span.median:,}", f"{span.min:,} to {span.max:,}")]
    if len(ranges) > 1:
        first, second = ranges
        overlaps = first.min <= second.max and second.min <= first.max
        difference = second.median - first.median
        cells.append("none" if overlaps else f"{difference:+,} ({100 * difference / max(1, first.median):+.1f} %)")
    return cells


def _range(spread: Spread) -> str:
    return f"median, from {format_bytes(spread.min_bytes)} to {format_bytes(spread.max_bytes)}"


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
