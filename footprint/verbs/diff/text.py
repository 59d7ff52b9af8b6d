"""The report of `footprint diff`."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footprint.findings.registry import Fact, fact_of
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
from footprint.model.finding import Finding
from footprint.model.row import MemoryKind
from footprint.release.compare import (
    Comparison,
    CostChange,
    OwnerChange,
    RowChange,
    RowStatus,
    TotalChange,
    covers_files,
    covers_heap,
)
from footprint.release.member_changes import MemberChange, MemberStatus
from footprint.release.new_libraries import link_text, root_text
from footprint.text.escape import shortened
from footprint.text.units import counted, format_bytes

if TYPE_CHECKING:
    from footprint.model.audit import Audit


# Those that are mapped shared, or mapped at all, are no cost.
_SHOWN: Final = (
    "per_process",
    "per_group",
    "private",
    "shared_between",
    "own_shared",
    "kernel",
    "per_worker",
    "shared_once",
    "shared_with_relatives",
    "mapped_writable",
    "floor",
    "ceiling",
)
_MOST_COMMAND_CHARS: Final = 80
_PARTS: Final = frozenset({"private", "shared_between", "own_shared", "kernel"})


def diff_document(comparison: Comparison, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Show what changed; `top` rows a table, 0 for all."""
    names = comparison_names(comparison, is_whole=has_whole_names)
    return (
        Heading(f"footprint diff: {_name(comparison.old)} -> {_name(comparison.new)}"),
        Paragraph(_origin(comparison)),
        *_totals(comparison),
        *_roots(comparison, top),
        *_members(comparison, top, is_whole=has_whole_names),
        *owner_blocks(comparison, top, names),
        *variable_blocks(comparison, top, names),
        *_findings("Findings that are new", comparison.new_findings),
        *_findings("Findings that are gone", comparison.fixed_findings),
        *_not_looked_into(comparison),
        *note_blocks(comparison.notes, comparison.new.target),
        Verdict(_verdict(comparison)),
    )


def comparison_names(diff: Comparison, *, is_whole: bool) -> Names:
    """Return the names of all owners that a comparison shows."""
    owners = [name for c in diff.owners for name in (c.owner, c.old_owner, c.left_with, c.came_with) if name]
    return Names([*owners, *(change.owner for change in diff.changes)], is_whole=is_whole)


def _origin(comparison: Comparison) -> str:
    sources = dict.fromkeys(audit.source for audit in (comparison.old, comparison.new))
    how = "Predicted from their files" if "prediction" in sources else f"Read from {' and '.join(sources)}"
    return f"{how}: {counted(comparison.same_count, 'row')} of the ledger as before, {len(comparison.changes):,} not."


def signed(size_bytes: int) -> str:
    """Format a change with its sign."""
    return "-" if not size_bytes else f"{'+' if size_bytes > 0 else ''}{format_bytes(size_bytes)}"


def percent_text(delta_bytes: int, old_bytes: int) -> str:
    """Format a change as a part of what was before; nothing where that is 0."""
    return f"{delta_bytes / old_bytes:+.1%}" if old_bytes and delta_bytes else ""


def _totals(comparison: Comparison) -> list[Block]:
    by_name = {total.name: total for total in comparison.totals}
    shown = [by_name[name] for name in _SHOWN if name in by_name]
    rows = tuple(
        _total(row, comparison.count) for row in shown if row.old.bytes or row.new.bytes or row.name != "own_shared"
    )
    columns = ("change", "%", *_at(comparison.count), "before", "now", "what")
    return [Heading(f"One {comparison.new.noun} costs"), Table(columns, rows)]


def _at(count: int) -> tuple[str, ...]:
    """Return the heading of the change at N processes; nothing for one."""
    return (f"at {count:,}",) if count > 1 else ()


def _total(change: TotalChange, count: int) -> tuple[str, ...]:
    label = f"  {change.figure.title}" if change.name in _PARTS else change.figure.title
    if change.old.bytes is None or change.new.bytes is None:
        sizes = ("?" if size is None else format_bytes(size) for size in (change.old.bytes, change.new.bytes))
        return ("?", "", *("?" for _ in _at(count)), *sizes, label)
    evidence = change.old.evidence.value if change.old.evidence is change.new.evidence else "both ways"
    noise = "; within the spread of the starts" if change.is_noise and change.new.bytes != change.old.bytes else ""
    delta_bytes = change.new.bytes - change.old.bytes
    return (
        signed(delta_bytes),
        percent_text(delta_bytes, change.old.bytes),
        *(signed(change.delta_at_count(count) or 0) for _ in _at(count)),
        format_bytes(change.old.bytes),
        format_bytes(change.new.bytes),
        f"{label} ({evidence}){noise}",
    )


def _roots(comparison: Comparison, top: int) -> list[Block]:
    """List the new libraries that brought others, or that an object needs now."""
    if not comparison.roots:
        return []
    shown, rest = cut_at(comparison.roots, top)
    rows = [
        (
            signed(root.delta_bytes),
            *(signed(root.delta_bytes * comparison.count) for _ in _at(comparison.count)),
            f"{root.brought_count:,}",
            f"{root_text(root)}; it {link}" if (link := link_text(root)) else root_text(root),
        )
        for root in shown
    ]
    if rest:
        rows.append(("", *("" for _ in _at(comparison.count)), "", more(len(rest))))
    is_virtual = any(owner.is_new and owner.new_bytes is None for owner in comparison.owners)
    columns = ("writable" if is_virtual else "private", *_at(comparison.count), "libraries", "came with")
    return [Heading("Libraries that are new"), Table(columns, tuple(rows))]


def _members(comparison: Comparison, top: int, *, is_whole: bool) -> list[Block]:
    """List the processes of a group that came, went or changed."""
    if not comparison.members:
        return []
    changed = [member for member in comparison.members if member.status is not MemberStatus.SAME]
    counts = Counter(member.status for member in comparison.members)
    others = [status for status in MemberStatus if status is not MemberStatus.SAME]
    counts_shown = [f"{counts[status]:,} {status.value}" for status in others if counts[status]]
    stayed = Paragraph(f"{', '.join(counts_shown) or 'None changed'}; {counts[MemberStatus.SAME]:,} as before.")
    if not changed:
        return [Heading("Processes"), stayed]
    shown, rest = cut_at(changed, top)
    rows = tuple([_member(change, is_whole=is_whole) for change in shown])
    footer = []
    if rest:
        footer.append((*_member_sum(rest), "", "", more(len(rest))))
    if len(changed) > 1:
        footer.append((*_member_sum(changed), "", "", "[total]"))
    columns = ("private", "before", "now", "what", "pid", "command")
    return [Heading("Processes"), stayed, Table(columns, rows, frozenset({3}), tuple(footer))]


def _member(row: MemberChange, *, is_whole: bool) -> tuple[str, ...]:
    sizes = ("?" if size is None else format_bytes(size) if size else "-" for size in (row.old_bytes, row.new_bytes))
    change = "?" if row.delta_bytes is None else signed(row.delta_bytes)
    command = row.command if is_whole else shortened(row.command, _MOST_COMMAND_CHARS)
    return (change, *sizes, row.status.value, str(row.pid or row.old_pid or "-"), command)


def _member_sum(changes: Sequence[MemberChange]) -> tuple[str, str, str]:
    deltas = [change.delta_bytes for change in changes if change.delta_bytes is not None]
    return signed(sum(deltas)) if len(deltas) == len(changes) else "?", "", ""


def owner_blocks(comparison: Comparison, top: int, names: Names) -> list[Block]:
    """List the owners that changed."""
    changed = comparison.owners
    if not changed:
        return []
    shown, rest = cut_at(changed, top)
    rows = tuple(_owner(change, names, comparison.count) for change in shown)
    footer = [_sum(rest, more(len(rest)), comparison.count)] if rest else []
    if len(changed) > 1:
        footer.append(_sum(changed, "[total]", comparison.count))
    is_virtual = any(change.old_bytes is None or change.new_bytes is None for change in changed)
    what = "writable" if is_virtual else "private"
    heading = Heading("Owners that changed")
    columns = (what, *_at(comparison.count), "mapped", "before", "now", "owner")
    return [heading, Table(columns, rows, frozenset(), tuple(footer))]


def _owner(change: OwnerChange, names: Names, count: int) -> tuple[str, ...]:
    label = names.owner(change.owner)
    if change.is_new:
        label += f"  (came with {names.owner(change.came_with)})" if change.came_with else "  (new)"
    elif change.is_gone:
        label += f"  (gone with {names.owner(change.left_with)})" if change.left_with else "  (gone)"
    elif change.old_owner is not None and names.owner(change.old_owner) != names.owner(change.owner):
        label += f"  (was {names.owner(change.old_owner)})"
    if change.is_noise and change.delta_bytes:
        label += "; within the spread of the starts"
    before, now = (
        (change.old_writable_bytes, change.new_writable_bytes)
        if change.old_bytes is None or change.new_bytes is None
        else (change.old_bytes, change.new_bytes)
    )
    return (*_deltas([change], count), format_bytes(before), format_bytes(now), label)


def _deltas(changes: Sequence[OwnerChange | RowChange], count: int) -> tuple[str, ...]:
    """Return the first cells of a row: the growth, in one process and in N, and that of the virtual size."""
    delta_bytes = sum(change.delta_bytes for change in changes)
    mapped_bytes = sum(change.new_mapped_bytes - change.old_mapped_bytes for change in changes)
    return (signed(delta_bytes), *(signed(delta_bytes * count) for _ in _at(count)), signed(mapped_bytes))


def _sum(changes: Sequence[OwnerChange | RowChange], label: str, count: int) -> tuple[str, ...]:
    return (*_deltas(changes, count), "", "", label)


def variable_blocks(comparison: Comparison, top: int, names: Names) -> list[Block]:
    """List variables. Bytes without a name (padding, tails of pages, heaps) are in the rows of the owners."""
    named = [change for change in comparison.changes if change.symbol is not None]
    if not named:
        return []
    # What a new library contains is no news beside the library itself.
    new = (
        {owner.owner for owner in comparison.owners if owner.is_new and owner.is_object} if comparison.roots else set()
    )
    brought = [change for change in named if change.status is RowStatus.ADDED and change.owner in new]
    changed = [
        change
        for change in named
        if change.status is not RowStatus.SHIFTED and not (change.status is RowStatus.ADDED and change.owner in new)
    ]
    changed.sort(key=lambda change: -max(abs(change.delta_bytes), abs(change.mapped_delta_bytes)))
    shown, rest = cut_at(changed, top)
    rows = tuple(_variable(change, names, comparison.count) for change in shown)
    footer = [_sum(rest, more(len(rest)), comparison.count)] if rest else []
    if brought:
        footer.append(_sum(brought, f"[{counted(len(brought), 'variable')} of new libraries]", comparison.count))
    shifted = [change for change in named if change.status is RowStatus.SHIFTED]
    if shifted:
        label = f"[{counted(len(shifted), 'variable')} as large as before, in other pages]"
        footer.append(_sum(shifted, label, comparison.count))
    is_virtual = any(change.old_bytes is None or change.new_bytes is None for change in named)
    columns = ("writable" if is_virtual else "private", *_at(comparison.count), "size", "what", "section", "variable")
    texts = frozenset({len(columns) - 3, len(columns) - 2})
    has_heap = any(change.kind is MemoryKind.HEAP for change in named)
    heading = f"Variables{', and who asked for heap,' if has_heap else ''} that changed"
    return [Heading(heading), Table(columns, rows, texts, tuple(footer))]


def _variable(change: RowChange, names: Names, count: int) -> tuple[str, ...]:
    label = f"{names.symbol(change.symbol or '')}  ({names.owner(change.owner)})"
    if change.before is not None:
        owner, section, symbol = change.before
        if change.status is RowStatus.RENAMED:
            label += f", was {names.symbol(symbol or '')}"
        else:
            label += f", was in {section or 'no section'}"
            if owner != change.owner:
                label += f" of {names.owner(owner)}"
    section = "[heap]" if change.kind is MemoryKind.HEAP else change.section or ""
    return (*_deltas([change], count), change.status.value, section, label)


def _findings(title: str, findings: Sequence[Finding]) -> list[Block]:
    if not findings:
        return []
    rows = tuple(
        (format_bytes(f.saving_bytes) if f.saving_bytes else "-", f.rule, f.confidence.value, f.message)
        for f in findings
    )
    return [Heading(title), Table(("saving", "rule", "confidence", "finding"), rows, frozenset({1, 2}))]


def _not_looked_into(comparison: Comparison) -> list[Block]:
    """Show that findings are not compared, if only one side was searched."""
    blocks: list[Block] = []
    sides = (comparison.old, comparison.new)
    without = [_name(side) for side in sides if not covers_files(side)]
    if len(without) == 1:
        text = f"Findings are not compared: {without[0]} was not looked into for them (audit --findings)."
        blocks.append(Paragraph(text))
    without = [_name(side) for side in sides if not covers_heap(side)]
    if len(without) == 1 and any(fact_of(finding.rule) is Fact.HEAP for side in sides for finding in side.findings):
        text = f"Findings on the heap are not compared: {without[0]} was joined with no profile (audit --heap)."
        blocks.append(Paragraph(text))
    return blocks


def _name(audit: "Audit") -> str:
    return audit.saved_in or audit.target


def _ceiling(comparison: Comparison) -> str:
    """Return the change of the startup maximum, for a start that costs as much as before."""
    total = comparison.total("ceiling")
    delta_bytes = None if total is None else total.delta_bytes
    if not delta_bytes:
        return ""
    return f" at its start, and can ever write {format_bytes(abs(delta_bytes))} {'more' if delta_bytes > 0 else 'less'}"


def _verdict(diff: Comparison) -> str:
    for name, what in (
        ("per_process", "costs"),
        ("per_group", "costs"),
        ("private", "holds"),
        ("mapped_writable", "maps"),
    ):
        total = diff.total(name)
        delta_bytes = None if total is None else total.delta_bytes
        if total is None or delta_bytes is None:
            continue
        many = many_text(diff, delta_bytes)
        if not delta_bytes:
            same = f"One {diff.new.noun} {what} as much as before, {format_bytes(total.new.bytes or 0)}{_ceiling(diff)}"
            return f"{same}{many}."
        percent = percent_text(delta_bytes, total.old.bytes or 0)
        text = f"One {diff.new.noun} {what} {_more_or_less(delta_bytes)}"
        text += f" ({percent})" if percent else ""
        return text + many + ("; the starts spread as far." if total.is_noise else ".")
    return f"Neither tells what one {diff.new.noun} costs."


def many_text(comparison: Comparison, each_bytes: int) -> str:
    """Return the change of what N cost, with what all pay once, behind that of one; nothing where there is no more."""
    cost = comparison.cost or CostChange(each_bytes, 0, comparison.count)
    if comparison.count == 1 or not (each_bytes or cost.delta_at_count_bytes):
        return ""
    text = f", {comparison.count:,} of them {_more_or_less(cost.delta_at_count_bytes)}"
    if cost.each_delta_bytes != each_bytes:
        text += f" ({_more_or_less(cost.each_delta_bytes)} each, with what it shares now)"
    if cost.once_delta_bytes:
        text += f", with {_more_or_less(cost.once_delta_bytes)} that all pay once"
    return text


def _more_or_less(delta_bytes: int) -> str:
    if not delta_bytes:
        return "as much as before"
    return f"{format_bytes(abs(delta_bytes))} {'more' if delta_bytes > 0 else 'less'}"
