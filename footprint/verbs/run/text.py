"""The report of `footprint run`."""

import shlex
from dataclasses import replace
from typing import Final

from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows, sum_row
from footprint.model.audit import Audit
from footprint.model.spread import Spread
from footprint.process.launch.moment import When
from footprint.units import format_bytes
from footprint.verbs.audit.text import audit_document
from footprint.verbs.run.result import RunResult, Start

__all__ = ("MOMENTS", "run_document")

MOMENTS: Final = {
    When.EXIT: "at its exit",
    When.SETTLED: "when its private memory had settled",
    When.TIME: "at the time asked for",
    When.OUTPUT: "at a line of its output",
}


def run_document(ran: RunResult, *, by: str = "owner", top: int = 20, has_whole_names: bool = False) -> Document:
    """Write where the memory of a program went that was run; `top` rows a table, 0 for all."""
    quiet = replace(ran.audit, notes=())
    _, *blocks, verdict = audit_document(quiet, by=by, top=top, has_whole_names=has_whole_names)
    return (
        Heading(_title(ran)),
        Paragraph(_how(ran)),
        *blocks,
        *_starts(ran),
        *_children(ran.start, top),
        *note_blocks(ran.notes, ran.audit.target),
        verdict,
    )


def _title(ran: RunResult) -> str:
    command = shlex.join(ran.command)
    return f"footprint run: {command if len(command) <= 80 else command[:77] + '...'}"


def _how(ran: RunResult) -> str:
    start = ran.start
    if start.signal is not None:
        end = f"ended by {start.signal}"
    else:
        end = "then ended by footprint" if start.exit_code is None else f"exit code {start.exit_code}"
    which = f"The median of {ran.start_count} starts, taken" if ran.start_count > 1 else "Taken"
    return f"{which} {MOMENTS[start.moment]}, {end}."


def _starts(ran: RunResult) -> list[Block]:
    if ran.start_count == 1:
        return []
    figures = (("per process", ran.per_process), ("private memory", ran.private))
    rows = tuple((label, format_bytes(known.median_bytes), _range(known)) for label, known in figures if known)
    return [Heading(f"Over {ran.start_count} starts"), Facts(rows)]


def _range(spread: Spread) -> str:
    return f"median, from {format_bytes(spread.min_bytes)} to {format_bytes(spread.max_bytes)}"


def _children(start: Start, top: int) -> list[Block]:
    if not start.children:
        return []
    shown, rest = cut_at(start.children, top)
    columns = ("private", "per process", "pid", "command")
    total = sum_row(f"[{len(start.children)} in all, counted in no figure above]", len(columns))
    footer = (*rest_rows(len(rest), len(columns)), total)
    return [Heading("Processes that it started"), Table(columns, tuple(map(_child, shown)), frozenset(), footer)]


def _child(child: Audit) -> tuple[str, ...]:
    sizes = (child.totals.private.bytes, child.totals.per_process.bytes)
    return (*("-" if size is None else format_bytes(size) for size in sizes), str(child.pid), child.command)
