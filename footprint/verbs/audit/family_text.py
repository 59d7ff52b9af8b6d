"""The part of a report that is about a family: one more worker, one more group, and many of them."""

from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Facts, Fold, Heading, Paragraph, Table, cache_remark, limit_blocks
from footprint.model.audit import Audit, WorkerProjection
from footprint.model.group import CgroupComparison, ProcessClass
from footprint.model.projection import Model, Projection
from footprint.text.escape import shortened
from footprint.text.units import counted, first_of, format_bytes, plural

_MADE: Final = {Model.FORK: "forked", Model.EXEC: "started", Model.THREADS: "a thread"}
_MOST_CLASSES: Final = 10
# Smaller differences are not explained.
_SMALL_BYTES: Final = 64 * 1024


def family_blocks(audit: Audit, *, is_brief: bool = False) -> list[Block]:
    """Show what one more worker and one more group cost, and what as many as were asked for cost.

    A brief report has neither the terms of a worker, how workers start, nor the kinds of processes.
    """
    group, projection, projected = audit.group, audit.projection, audit.group.workers
    if not projection.terms:
        return cgroup_blocks(group.cgroup)
    workers = group.classes[0]
    others_count = len(audit.members) - len(workers.pids)
    # A family is a master and its workers. Other groups have more, such as a second master with workers of its own.
    has_more = others_count > bool(workers.parent_pids) and projected.count == len(workers.pids)
    among = f" among its {len(audit.members):,} processes" if has_more else ""
    rows = [
        (
            f"one more {workers.noun}",
            format_bytes(workers.each_bytes),
            f"{workers.evidence.value}: the median of {counted(len(workers.pids), workers.noun)}",
        ),
        *(
            (f"  {term.name}", format_bytes(term.size_bytes), term.evidence.value)
            for term in (() if is_brief else workers.terms)
        ),
        (
            "one more group",
            format_bytes(projection.per_process_bytes),
            f"{projection.evidence.value}: with {counted(projected.count, workers.noun)}{among}",
        ),
    ]
    if is_brief and projection.per_process_bytes == audit.totals.per_process.bytes:
        rows.pop()
    how = [Paragraph(_how(workers, group.classes)), *_class_blocks(group.classes)]
    return [
        *([] if is_brief else [Heading("What one more costs")]),
        Facts(tuple(rows)),
        *([] if is_brief else how),
        *_many(projection, projected, workers),
        *cgroup_blocks(group.cgroup),
    ]


def cgroup_blocks(cgroup: CgroupComparison | None) -> list[Block]:
    """Show the figures beside those of the control group."""
    if cgroup is None:
        return []
    rows = tuple(
        (
            "-" if row.audited_bytes is None else format_bytes(row.audited_bytes),
            format_bytes(row.charged_bytes),
            format_bytes(row.difference_bytes),
            row.name if abs(row.difference_bytes) < _SMALL_BYTES else f"{row.name}: {row.cause}",
        )
        for row in cgroup.rows
    )
    audited_bytes = sum(row.audited_bytes or 0 for row in cgroup.rows)
    total = (
        format_bytes(audited_bytes),
        format_bytes(cgroup.total_bytes),
        format_bytes(cgroup.total_bytes - audited_bytes),
        "[total]",
    )
    slab = "" if cgroup.slab_bytes is None else f", {format_bytes(cgroup.slab_bytes)} of it in slab"
    return [
        Heading(f"Beside the control group {cgroup.path} (version {cgroup.version}{slab})"),
        Table(
            ("held", "charged", "difference", "memory: cause of the difference"), rows, frozenset(), (total,), Fold.TEXT
        ),
    ]


def _how(workers: ProcessClass, classes: Sequence[ProcessClass]) -> str:
    """Describe how the workers start, and what shows it; that there are none where all others are helpers."""
    helpers = [kind for kind in classes if kind.is_helper]
    if helpers and len(helpers) == len(classes) - 1 and not workers.parent_pids:
        names = first_of([shortened(helper.command.split(" ")[0].rsplit("/", 1)[-1], 30) for helper in helpers], 3)
        return f"It has no workers: its other processes are helpers ({names}), which each {workers.noun} brings along."
    if workers.reasons:
        return f"A {workers.noun} is forked, as {workers.pids[-1]} shows: {', and '.join(workers.reasons)}."
    cause = "none shares memory with a parent since a fork" if workers.parent_pids else "their parent is not among them"
    return f"A {workers.noun} is a started copy: {cause}."


def _class_blocks(classes: Sequence[ProcessClass]) -> list[Block]:
    """List what kinds of processes there are, if there are several."""
    shown = [kind for kind in classes if kind.parent_pids] or list(classes)
    if len(shown) < 2:
        return []
    rows = tuple(
        (str(len(k.pids)), _MADE[k.model], format_bytes(k.each_bytes), _range(k), shortened(k.command, 80))
        for k in shown[:_MOST_CLASSES]
    )
    rest = shown[_MOST_CLASSES:]
    footer = ((str(sum(len(kind.pids) for kind in rest)), "", "", "", f"[{len(rest)} more kinds]"),) if rest else ()
    columns = ("count", "how", "one more", "from - to", "command")
    return [Heading("Kinds of processes"), Table(columns, rows, frozenset({1}), footer)]


def _range(kind: ProcessClass) -> str:
    if kind.least_bytes == kind.most_bytes:
        return "-"
    return f"{format_bytes(kind.least_bytes)} - {format_bytes(kind.most_bytes)}"


def _many(projection: Projection, projected: WorkerProjection, workers: ProcessClass) -> list[Block]:
    """Show what many groups cost, or how many fit."""
    groups = f"{counted(projection.count, 'group')} of {counted(projected.count, workers.noun)}"
    sum_text = f"{projection.count:,} x {format_bytes(projection.per_process_bytes)}"
    whole = (
        "in all",
        format_bytes(projection.total_bytes),
        f"{projection.evidence.value}: {sum_text} + {format_bytes(projection.shared_once_bytes or 0)} once",
    )
    if not projection.limits:
        is_asked = projection.count > 1 or projected.count != len(workers.pids)
        return [Heading(f"{groups} {_verb('cost', projection.count)}"), Facts((whole,))] if is_asked else []
    first, worker_first = projection.limits[0], projected.limits[0]
    facts = (
        (
            "groups",
            f"{first.count:,}",
            f"each with {counted(projected.count, workers.noun)}; first hit: {first.name}",
        ),
        (f"or {plural(workers.noun)} in one group", f"{worker_first.count:,}", f"first hit: {worker_first.name}"),
        ("cost of the groups", whole[1], whole[2]),
        ("  page cache", format_bytes(projection.shared_once_bytes or 0), cache_remark(projection.limits)),
    )
    return [Heading("How many fit"), Facts(facts), *limit_blocks(projection.limits, "groups")]


def family_verdict(audit: Audit) -> str:
    """Return the result in one line of 80 columns, as far as numbers and names are short enough."""
    many = counted(len(audit.members), "process")
    if audit.totals.per_process.bytes is None:
        return f"{many}; what they cost together is not known from this input."
    together = f"{many} {_verb('cost', len(audit.members))} {format_bytes(audit.totals.per_process.bytes)} together"
    group, projection, projected = audit.group, audit.projection, audit.group.workers
    if not projection.terms:
        return f"{together} ({audit.totals.per_process.evidence.value})."
    workers = group.classes[0]
    worker = f"one more {workers.noun} {format_bytes(projected.each_bytes)}"
    groups = f"{counted(projection.count, 'group')} of {counted(projected.count, workers.noun)}"
    if projection.limits:
        hit = f"and then {projection.limits[0].name} is hit ({projection.evidence.value})"
        return f"{groups} {_verb('fit', projection.count)}, {hit}."
    if projection.count > 1 or projected.count != len(workers.pids):
        total = format_bytes(projection.total_bytes)
        return f"{groups} {_verb('cost', projection.count)} {total}, {worker} ({projection.evidence.value})."
    return f"{together}, {worker} ({audit.totals.per_process.evidence.value})."


def _verb(verb: str, count: int) -> str:
    """Return a verb for a number: 1 group costs, 2 groups cost."""
    return f"{verb}s" if count == 1 else verb
