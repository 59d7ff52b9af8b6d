"""The part of a report that is about a family: one more worker, one more group, and many of them."""

from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Facts, Fold, Heading, Paragraph, Table
from footprint.formats.escape import shortened
from footprint.formats.sections.limits import limit_blocks
from footprint.model.group import CgroupComparison, Group, GroupProjection, ProcessClass
from footprint.model.projection import Model
from footprint.units import counted, format_bytes, plural

__all__ = ("cgroup_blocks", "family_blocks", "family_verdict")

_MADE: Final = {Model.FORK: "forked", Model.EXEC: "started", Model.THREADS: "a thread"}
_MOST_CLASSES: Final = 10
# Smaller differences are not explained.
_SMALL_BYTES: Final = 64 * 1024


def family_blocks(group: Group) -> list[Block]:
    """Write what one more worker and one more group cost, and what as many as were asked for cost."""
    projection = group.projection
    if projection is None:
        return cgroup_blocks(group.cgroup)
    workers = group.classes[0]
    others_count = len(group.members) - len(workers.pids)
    # A family is a master and its workers. Other groups have more, such as a second master with workers of its own.
    has_more = others_count > bool(workers.parent_pids) and projection.worker_count == len(workers.pids)
    among = f" among its {len(group.members):,} processes" if has_more else ""
    rows = [
        (
            f"one more {workers.noun}",
            format_bytes(workers.each_bytes),
            f"{workers.evidence.value}: the median of {counted(len(workers.pids), workers.noun)}",
        ),
        *((f"  {term.name}", format_bytes(term.size_bytes), term.evidence.value) for term in workers.terms),
        (
            "one more group",
            format_bytes(projection.per_group_bytes),
            f"{projection.evidence.value}: with {counted(projection.worker_count, workers.noun)}{among}",
        ),
    ]
    return [
        Heading("What one more costs"),
        Facts(tuple(rows)),
        Paragraph(_how(workers)),
        *_class_blocks(group.classes),
        *_many(projection, workers),
        *cgroup_blocks(group.cgroup),
    ]


def cgroup_blocks(cgroup: CgroupComparison | None) -> list[Block]:
    """Write the figures beside those of the control group."""
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


def _how(workers: ProcessClass) -> str:
    """Write how the workers start, and what shows it."""
    if workers.reasons:
        return f"A {workers.noun} is forked, as {workers.pids[-1]} shows: {', and '.join(workers.reasons)}."
    cause = "none shares memory with a parent since a fork" if workers.parent_pids else "their parent is not among them"
    return f"A {workers.noun} is a started copy: {cause}."


def _class_blocks(classes: Sequence[ProcessClass]) -> list[Block]:
    """List what kinds of processes there are, if there are several."""
    shown = [one for one in classes if one.parent_pids] or list(classes)
    if len(shown) < 2:
        return []
    rows = tuple(
        (str(len(one.pids)), _MADE[one.model], format_bytes(one.each_bytes), _range(one), shortened(one.command, 80))
        for one in shown[:_MOST_CLASSES]
    )
    rest = shown[_MOST_CLASSES:]
    footer = ((str(sum(len(one.pids) for one in rest)), "", "", "", f"[{len(rest)} more kinds]"),) if rest else ()
    columns = ("count", "how", "one more", "from - to", "command")
    return [Heading("Kinds of processes"), Table(columns, rows, frozenset({1}), footer)]


def _range(one: ProcessClass) -> str:
    if one.least_bytes == one.most_bytes:
        return "-"
    return f"{format_bytes(one.least_bytes)} - {format_bytes(one.most_bytes)}"


def _many(projection: GroupProjection, workers: ProcessClass) -> list[Block]:
    """Write what many groups cost, or how many fit."""
    groups = f"{counted(projection.count, 'group')} of {counted(projection.worker_count, workers.noun)}"
    sum_text = f"{projection.count:,} x {format_bytes(projection.per_group_bytes)}"
    whole = (
        "in all",
        format_bytes(projection.total_bytes),
        f"{projection.evidence.value}: {sum_text} + {format_bytes(projection.shared_once_bytes)} once",
    )
    if not projection.limits:
        is_asked = projection.count > 1 or projection.worker_count != len(workers.pids)
        return [Heading(f"{groups} {_verb('cost', projection.count)}"), Facts((whole,))] if is_asked else []
    first, worker_first = projection.limits[0], projection.worker_limits[0]
    facts = (
        (
            "groups",
            f"{first.count:,}",
            f"each with {counted(projection.worker_count, workers.noun)}; first hit: {first.name}",
        ),
        (f"or {plural(workers.noun)} in one group", f"{worker_first.count:,}", f"first hit: {worker_first.name}"),
        ("cost of the groups", whole[1], whole[2]),
        ("  page cache", format_bytes(projection.shared_once_bytes), "files that they map, paid once"),
    )
    return [Heading("How many fit"), Facts(facts), *limit_blocks(projection.limits, "groups")]


def family_verdict(group: Group) -> str:
    """Write the result in one line of 80 columns, as far as numbers and names are short enough."""
    many = counted(len(group.members), "process")
    if group.per_group.bytes is None:
        return f"{many}; what they cost together is not known from this input."
    together = f"{many} {_verb('cost', len(group.members))} {format_bytes(group.per_group.bytes)} together"
    projection = group.projection
    if projection is None:
        return f"{together} ({group.per_group.evidence.value})."
    workers = group.classes[0]
    worker = f"one more {workers.noun} {format_bytes(projection.per_worker_bytes)}"
    groups = f"{counted(projection.count, 'group')} of {counted(projection.worker_count, workers.noun)}"
    if projection.limits:
        hit = f"and then {projection.limits[0].name} is hit ({projection.evidence.value})"
        return f"{groups} {_verb('fit', projection.count)}, {hit}."
    if projection.count > 1 or projection.worker_count != len(workers.pids):
        total = format_bytes(projection.total_bytes)
        return f"{groups} {_verb('cost', projection.count)} {total}, {worker} ({projection.evidence.value})."
    return f"{together}, {worker} ({group.per_group.evidence.value})."


def _verb(verb: str, count: int) -> str:
    """Write what so many do: 1 group costs, 2 groups cost."""
    return f"{verb}s" if count == 1 else verb
