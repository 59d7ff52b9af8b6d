"""The report of `footprint whatif`."""

import shlex
from collections.abc import Sequence

from footprint.formats.document import (
    Block,
    Document,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    more,
    note_blocks,
)
from footprint.text.units import counted, format_bytes
from footprint.verbs.run.text import MOMENTS, start_cost_blocks
from footprint.verbs.whatif.builds_text import behaviour_blocks, behaviour_sentence
from footprint.verbs.whatif.result import OwnerSaving, Saving, WhatIf


def whatif_document(result: WhatIf, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Show what a program saves without some libraries; `top` rows a table, 0 for all."""
    command = shlex.join(result.command)
    moment = MOMENTS[result.before.start.moment]
    return (
        Heading(
            f"footprint whatif: {command if len(command) <= 60 else command[:57] + '...'}"
            f" without {dropped_names(result)}"
        ),
        Paragraph(
            f"{counted(result.before.start_count, 'start')} with and as many without, in turn, each taken {moment}; "
            f"no longer needed by {' and '.join(result.users)}."
        ),
        *_changes(result, top, Names([change.owner for change in result.changes], is_whole=has_whole_names)),
        *_figures(result),
        *start_cost_blocks((result.before, result.after)),
        *behaviour_blocks(result.behaviour, ("with", "without")),
        *_doubts(result),
        *note_blocks(result.notes),
        Verdict(_verdict(result), at_count=_at_count(result)),
    )


def dropped_names(result: WhatIf) -> str:
    """Join the names of all libraries that were dropped."""
    *others, last = result.dropped
    return f"{', '.join(others)} and {last}" if others else last


def _changes(result: WhatIf, top: int, names: Names) -> list[Block]:
    shown, rest = cut_at(result.changes, top)
    rows = tuple(_change(change, names.owner(change.owner)) for change in shown)
    footer = [_sum(rest, more(len(rest)))] if rest else []
    if result.thread_local_bytes:
        # Threads hold them in their stacks, the first thread in the heap.
        in_threads = format_bytes(result.thread_local_bytes)
        footer.append((in_threads, "", "", "", "[thread-local variables, in the rows of threads above]"))
    footer.append((format_bytes(result.predicted_bytes), *_sum(result.changes, "[total]")[1:]))
    columns = ("predicted", "saved", "before", "after", "owner")
    return [Heading("Whose private memory differs"), Table(columns, rows, frozenset(), tuple(footer))]


def _change(saving: OwnerSaving, label: str) -> tuple[str, ...]:
    sizes = (saving.predicted_bytes, saving.saved_bytes, saving.before_bytes, saving.after_bytes)
    return (*(format_bytes(size) if size else "-" for size in sizes), label)


def _sum(changes: Sequence[OwnerSaving], label: str) -> tuple[str, ...]:
    predicted_bytes = sum([change.predicted_bytes or 0 for change in changes])
    before_bytes, after_bytes = sum([c.before_bytes for c in changes]), sum([c.after_bytes for c in changes])
    return _change(OwnerSaving("", before_bytes, after_bytes, predicted_bytes), label)


def _figures(result: WhatIf) -> list[Block]:
    totals = result.before.audit.totals
    rows: list[tuple[str, ...]] = [(format_bytes(result.predicted_bytes), "", "", "", "", "private (predicted)")]
    if result.private is not None:
        rows.append(_figure(result.private, f"private ({totals.private.evidence.value})"))
    if result.kernel_bytes is not None:
        rows.append((format_bytes(result.kernel_bytes), "", "", "", "", f"kernel ({totals.kernel.evidence.value})"))
    if result.per_process is not None:
        rows.append(_figure(result.per_process, f"in all ({totals.per_process.evidence.value})"))
    columns = ("saved", "least", "most", "before", "after", "kind")
    return [Heading("What each process saves; least and most over all starts"), Table(columns, tuple(rows))]


def _figure(saving: Saving, label: str) -> tuple[str, ...]:
    sizes = (saving.bytes, saving.least_bytes, saving.most_bytes, saving.before_bytes, saving.after_bytes)
    return (*map(format_bytes, sizes), label)


def _doubts(result: WhatIf) -> list[Block]:
    if not result.doubts:
        return []
    return [Heading("What this run may not have shown"), *(Paragraph(f"{reason}.") for reason in result.doubts)]


def _verdict(result: WhatIf) -> str:
    subject = f"Without {dropped_names(result)} each process saves"
    behaviour = behaviour_sentence(result.behaviour)
    predicted = f"predicted: {format_bytes(result.predicted_bytes)}"
    private, whole = result.private, result.per_process
    if private is None:
        return f"{subject} what could not be measured ({predicted}). {behaviour}"
    sizes = f"{format_bytes(private.bytes)} of private memory ({predicted})"
    if whole is not None:
        sizes += f", {format_bytes(whole.bytes)} with the kernel's"
    return f"{subject} {sizes}{_at_count(result)}. {behaviour}"


def _at_count(result: WhatIf) -> str:
    saving = result.per_process or result.private
    if saving is None or result.count == 1:
        return ""
    return f"; {result.count:,} processes save {format_bytes(result.count * saving.bytes)}"
