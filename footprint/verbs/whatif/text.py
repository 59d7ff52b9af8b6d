"""The report of `footprint whatif`."""

import shlex
from collections.abc import Sequence

from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, more
from footprint.units import counted, format_bytes
from footprint.verbs.run.text import MOMENTS
from footprint.verbs.whatif.behaviour_text import behaviour_blocks, behaviour_sentence
from footprint.verbs.whatif.result import OwnerSaving, Saving, WhatIf

__all__ = ("whatif_document",)


def whatif_document(found: WhatIf, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Write what a program saves without some libraries; `top` rows a table, 0 for all."""
    command = shlex.join(found.command)
    moment = MOMENTS[found.before.start.moment]
    return (
        Heading(
            f"footprint whatif: {command if len(command) <= 60 else command[:57] + '...'} without {_dropped(found)}"
        ),
        Paragraph(
            f"{counted(found.before.start_count, 'start')} with and as many without, in turn, each taken {moment}; "
            f"no longer needed by {' and '.join(found.users)}."
        ),
        *_changes(found, top, Names([one.owner for one in found.changes], is_whole=has_whole_names)),
        *_figures(found),
        *behaviour_blocks(found.behaviour, ("with", "without")),
        *_doubts(found),
        *note_blocks(found.notes),
        Verdict(_verdict(found), at_count=_at_count(found)),
    )


def _dropped(found: WhatIf) -> str:
    return " and ".join(found.dropped)


def _changes(found: WhatIf, top: int, names: Names) -> list[Block]:
    shown, rest = cut_at(found.changes, top)
    rows = tuple(_change(one, names.owner(one.owner)) for one in shown)
    footer = [_sum(rest, more(len(rest)))] if rest else []
    if found.thread_local_bytes:
        # Threads hold them in their stacks, the first thread in the heap.
        in_threads = format_bytes(found.thread_local_bytes)
        footer.append((in_threads, "", "", "", "[thread-local variables, in the rows of threads above]"))
    footer.append((format_bytes(found.predicted_bytes), *_sum(found.changes, "[total]")[1:]))
    columns = ("predicted", "saved", "before", "after", "owner")
    return [Heading("Whose private memory differs"), Table(columns, rows, frozenset(), tuple(footer))]


def _change(one: OwnerSaving, label: str) -> tuple[str, ...]:
    sizes = (one.predicted_bytes, one.saved_bytes, one.before_bytes, one.after_bytes)
    return (*(format_bytes(size) if size else "-" for size in sizes), label)


def _sum(changes: Sequence[OwnerSaving], label: str) -> tuple[str, ...]:
    predicted_bytes = sum([one.predicted_bytes or 0 for one in changes])
    before_bytes, after_bytes = sum([one.before_bytes for one in changes]), sum([one.after_bytes for one in changes])
    return _change(OwnerSaving("", before_bytes, after_bytes, predicted_bytes), label)


def _figures(found: WhatIf) -> list[Block]:
    totals = found.before.audit.totals
    rows: list[tuple[str, ...]] = [(format_bytes(found.predicted_bytes), "", "", "", "", "private (predicted)")]
    if found.private is not None:
        rows.append(_figure(found.private, f"private ({totals.private.evidence.value})"))
    if found.kernel_bytes is not None:
        rows.append((format_bytes(found.kernel_bytes), "", "", "", "", f"kernel ({totals.kernel.evidence.value})"))
    if found.per_process is not None:
        rows.append(_figure(found.per_process, f"in all ({totals.per_process.evidence.value})"))
    columns = ("saved", "least", "most", "before", "after", "kind")
    return [Heading("What each process saves; least and most over all starts"), Table(columns, tuple(rows))]


def _figure(saving: Saving, label: str) -> tuple[str, ...]:
    sizes = (saving.bytes, saving.least_bytes, saving.most_bytes, saving.before_bytes, saving.after_bytes)
    return (*map(format_bytes, sizes), label)


def _doubts(found: WhatIf) -> list[Block]:
    if not found.doubts:
        return []
    return [Heading("What this run may not have shown"), *(Paragraph(f"{reason}.") for reason in found.doubts)]


def _verdict(found: WhatIf) -> str:
    subject = f"Without {_dropped(found)} each process saves"
    behaviour = behaviour_sentence(found.behaviour)
    predicted = f"predicted: {format_bytes(found.predicted_bytes)}"
    private, whole = found.private, found.per_process
    if private is None:
        return f"{subject} what could not be measured ({predicted}). {behaviour}"
    sizes = f"{format_bytes(private.bytes)} of private memory ({predicted})"
    if whole is not None:
        sizes += f", {format_bytes(whole.bytes)} with the kernel's"
    return f"{subject} {sizes}{_at_count(found)}. {behaviour}"


def _at_count(found: WhatIf) -> str:
    saving = found.per_process or found.private
    if saving is None or found.count == 1:
        return ""
    return f"; {found.count:,} processes save {format_bytes(found.count * saving.bytes)}"
