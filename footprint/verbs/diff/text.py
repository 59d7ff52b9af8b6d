"""The report of `footprint diff`."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footprint.findings.registry import Fact, fact_of
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import shortened
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, more
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
from footprint.units import counted, format_bytes

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = (
    "comparison_names",
    "diff_document",
    "many_text",
    "owner_blocks",
    "percent_text",
    "signed",
    "variable_blocks",
)

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


def diff_document(found: Comparison, *, top: int = 20, has_whole_names: bool = False) -> Document:
    """Write what changed; `top` rows a table, 0 for all."""
    names = comparison_names(found, is_whole=has_whole_names)
    return (
        Heading(f"footprint diff: {_name(found.old)} -> {_name(found.new)}"),
        Paragraph(_origin(found)),
        *_totals(found),
        *_roots(found, top),
        *_members(found, top, is_whole=has_whole_names),
        *owner_blocks(found, top, names),
        *variable_blocks(found, top, names),
        *_findings("Findings that are new", found.new_findings),
        *_findings("Findings that are gone", found.fixed_findings),
        *_not_looked_into(found),
        *note_blocks(found.notes, found.new.target),
        Verdict(_verdict(found)),
    )


def comparison_names(found: Comparison, *, is_whole: bool) -> Names:
    """Return the names of all owners that a comparison shows."""
    owners = [name for one in found.owners for name in (one.owner, one.old_owner, one.left_with, one.came_with) if name]
    return Names([*owners, *(one.owner for one in found.changes)], is_whole=is_whole)


def _origin(found: Comparison) -> str:
    sources = dict.fromkeys(one.source for one in (found.old, found.new))
    how = "Predicted from their files" if "prediction" in sources else f"Read from {' and '.join(sources)}"
    return f"{how}: {counted(found.same_count, 'row')} of the ledger as before, {len(found.changes):,} not."


def signed(size_bytes: int) -> str:
    """Write a change with its sign."""
    return "-" if not size_bytes else f"{'+' if size_bytes > 0 else ''}{format_bytes(size_bytes)}"


def percent_text(delta_bytes: int, old_bytes: int) -> str:
    """Write a change as a part of what was before; nothing where that is 0."""
    return f"{delta_bytes / old_bytes:+.1%}" if old_bytes and delta_bytes else ""


def _totals(found: Comparison) -> list[Block]:
    by_name = {one.name: one for one in found.totals}
    shown = [by_name[name] for name in _SHOWN if name in by_name]
    rows = tuple(
        _total(one, found.count) for one in shown if one.old.bytes or one.new.bytes or one.name != "own_shared"
    )
    columns = ("change", "%", *_at(found.count), "before", "now", "what")
    return [Heading(f"One {found.new.noun} costs"), Table(columns, rows)]


def _at(count: int) -> tuple[str, ...]:
    """Return the heading of the change at N processes; nothing for one."""
    return (f"at {count:,}",) if count > 1 else ()


def _total(one: TotalChange, count: int) -> tuple[str, ...]:
    label = f"  {one.figure.title}" if one.name in _PARTS else one.figure.title
    if one.old.bytes is None or one.new.bytes is None:
        sizes = ("?" if size is None else format_bytes(size) for size in (one.old.bytes, one.new.bytes))
        return ("?", "", *("?" for _ in _at(count)), *sizes, label)
    evidence = one.old.evidence.value if one.old.evidence is one.new.evidence else "both ways"
    noise = "; within the spread of the starts" if one.is_noise and one.new.bytes != one.old.bytes else ""
    delta_bytes = one.new.bytes - one.old.bytes
    return (
        signed(delta_bytes),
        percent_text(delta_bytes, one.old.bytes),
        *(signed(one.delta_at_count(count) or 0) for _ in _at(count)),
        format_bytes(one.old.bytes),
        format_bytes(one.new.bytes),
        f"{label} ({evidence}){noise}",
    )


def _roots(found: Comparison, top: int) -> list[Block]:
    """List the new libraries that brought others, or that an object needs now."""
    if not found.roots:
        return []
    shown, rest = cut_at(found.roots, top)
    rows = [
        (
            format_bytes(one.retained_bytes),
            *(format_bytes(one.retained_bytes * found.count) for _ in _at(found.count)),
            f"{one.library_count:,}",
            f"{root_text(one)}; it {link}" if (link := link_text(one)) else root_text(one),
        )
        for one in shown
    ]
    if rest:
        rows.append(("", *("" for _ in _at(found.count)), "", more(len(rest))))
    columns = ("retained", *_at(found.count), "libraries", "came with")
    return [Heading("Libraries that are new"), Table(columns, tuple(rows))]


def _members(found: Comparison, top: int, *, is_whole: bool) -> list[Block]:
    """List the processes of a group that came, went or changed."""
    if not found.members:
        return []
    changed = [one for one in found.members if one.status is not MemberStatus.SAME]
    counts = Counter(one.status for one in found.members)
    others = [status for status in MemberStatus if status is not MemberStatus.SAME]
    told = [f"{counts[status]:,} {status.value}" for status in others if counts[status]]
    stayed = Paragraph(f"{', '.join(told) or 'None changed'}; {counts[MemberStatus.SAME]:,} as before.")
    if not changed:
        return [Heading("Processes"), stayed]
    shown, rest = cut_at(changed, top)
    rows = tuple([_member(one, is_whole=is_whole) for one in shown])
    footer = []
    if rest:
        footer.append((*_member_sum(rest), "", "", more(len(rest))))
    if len(changed) > 1:
        footer.append((*_member_sum(changed), "", "", "[total]"))
    columns = ("private", "before", "now", "what", "pid", "command")
    return [Heading("Processes"), stayed, Table(columns, rows, frozenset({3}), tuple(footer))]


def _member(one: MemberChange, *, is_whole: bool) -> tuple[str, ...]:
    sizes = ("?" if size is None else format_bytes(size) if size else "-" for size in (one.old_bytes, one.new_bytes))
    change = "?" if one.delta_bytes is None else signed(one.delta_bytes)
    command = one.command if is_whole else shortened(one.command, _MOST_COMMAND_CHARS)
    return (change, *sizes, one.status.value, str(one.pid or one.old_pid or "-"), command)


def _member_sum(changes: Sequence[MemberChange]) -> tuple[str, str, str]:
    known = [one.delta_bytes for one in changes if one.delta_bytes is not None]
    return signed(sum(known)) if len(known) == len(changes) else "?", "", ""


def owner_blocks(found: Comparison, top: int, names: Names) -> list[Block]:
    """List the owners that changed."""
    changed = found.owners
    if not changed:
        return []
    shown, rest = cut_at(changed, top)
    rows = tuple(_owner(one, names, found.count) for one in shown)
    footer = [_sum(rest, more(len(rest)), found.count)] if rest else []
    if len(changed) > 1:
        footer.append(_sum(changed, "[total]", found.count))
    is_virtual = any(one.old_bytes is None or one.new_bytes is None for one in changed)
    what = "writable" if is_virtual else "private"
    heading = Heading("Owners that changed")
    columns = (what, *_at(found.count), "mapped", "before", "now", "owner")
    return [heading, Table(columns, rows, frozenset(), tuple(footer))]


def _owner(one: OwnerChange, names: Names, count: int) -> tuple[str, ...]:
    label = names.owner(one.owner)
    if one.is_new:
        label += f"  (came with {names.owner(one.came_with)})" if one.came_with else "  (new)"
    elif one.is_gone:
        label += f"  (gone with {names.owner(one.left_with)})" if one.left_with else "  (gone)"
    elif one.old_owner is not None and names.owner(one.old_owner) != names.owner(one.owner):
        label += f"  (was {names.owner(one.old_owner)})"
    if one.is_noise and one.delta_bytes:
        label += "; within the spread of the starts"
    before, now = (
        (one.old_writable_bytes, one.new_writable_bytes)
        if one.old_bytes is None or one.new_bytes is None
        else (one.old_bytes, one.new_bytes)
    )
    return (*_deltas([one], count), format_bytes(before), format_bytes(now), label)


def _deltas(changes: Sequence[OwnerChange | RowChange], count: int) -> tuple[str, ...]:
    """Return the first cells of a row: the growth, in one process and in N, and that of the virtual size."""
    delta_bytes = sum(one.delta_bytes for one in changes)
    mapped_bytes = sum(one.new_mapped_bytes - one.old_mapped_bytes for one in changes)
    return (signed(delta_bytes), *(signed(delta_bytes * count) for _ in _at(count)), signed(mapped_bytes))


def _sum(changes: Sequence[OwnerChange | RowChange], label: str, count: int) -> tuple[str, ...]:
    return (*_deltas(changes, count), "", "", label)


def variable_blocks(found: Comparison, top: int, names: Names) -> list[Block]:
    """List variables. Bytes without a name (padding, tails of pages, heaps) are in the rows of the owners."""
    named = [one for one in found.changes if one.symbol is not None]
    if not named:
        return []
    # What a new library contains is no news beside the library itself.
    new = {one.owner for one in found.owners if one.is_new and one.is_object} if found.roots else set()
    brought = [one for one in named if one.status is RowStatus.ADDED and one.owner in new]
    changed = [
        one
        for one in named
        if one.status is not RowStatus.SHIFTED and not (one.status is RowStatus.ADDED and one.owner in new)
    ]
    changed.sort(key=lambda one: -max(abs(one.delta_bytes), abs(one.mapped_delta_bytes)))
    shown, rest = cut_at(changed, top)
    rows = tuple(_variable(one, names, found.count) for one in shown)
    footer = [_sum(rest, more(len(rest)), found.count)] if rest else []
    if brought:
        footer.append(_sum(brought, f"[{counted(len(brought), 'variable')} of new libraries]", found.count))
    shifted = [one for one in named if one.status is RowStatus.SHIFTED]
    if shifted:
        label = f"[{counted(len(shifted), 'variable')} as large as before, in other pages]"
        footer.append(_sum(shifted, label, found.count))
    is_virtual = any(one.old_bytes is None or one.new_bytes is None for one in named)
    columns = ("writable" if is_virtual else "private", *_at(found.count), "size", "what", "section", "variable")
    texts = frozenset({len(columns) - 3, len(columns) - 2})
    has_heap = any(one.kind is MemoryKind.HEAP for one in named)
    heading = f"Variables{', and who asked for heap,' if has_heap else ''} that changed"
    return [Heading(heading), Table(columns, rows, texts, tuple(footer))]


def _variable(one: RowChange, names: Names, count: int) -> tuple[str, ...]:
    label = f"{names.symbol(one.symbol or '')}  ({names.owner(one.owner)})"
    if one.before is not None:
        owner, section, symbol = one.before
        if one.status is RowStatus.RENAMED:
            label += f", was {names.symbol(symbol or '')}"
        else:
            label += f", was in {section or 'no section'}"
            if owner != one.owner:
                label += f" of {names.owner(owner)}"
    section = "[heap]" if one.kind is MemoryKind.HEAP else one.section or ""
    return (*_deltas([one], count), one.status.value, section, label)


def _findings(title: str, findings: Sequence[Finding]) -> list[Block]:
    if not findings:
        return []
    rows = tuple(
        (format_bytes(one.saving_bytes) if one.saving_bytes else "-", one.rule, one.confidence.value, one.message)
        for one in findings
    )
    return [Heading(title), Table(("saving", "rule", "confidence", "finding"), rows, frozenset({1, 2}))]


def _not_looked_into(found: Comparison) -> list[Block]:
    """Write that findings are not compared, if only one side was searched."""
    blocks: list[Block] = []
    sides = (found.old, found.new)
    without = [_name(one) for one in sides if not covers_files(one)]
    if len(without) == 1:
        text = f"Findings are not compared: {without[0]} was not looked into for them (audit --findings)."
        blocks.append(Paragraph(text))
    without = [_name(one) for one in sides if not covers_heap(one)]
    if len(without) == 1 and any(fact_of(one.rule) is Fact.HEAP for side in sides for one in side.findings):
        text = f"Findings on the heap are not compared: {without[0]} was joined with no profile (audit --heap)."
        blocks.append(Paragraph(text))
    return blocks


def _name(audit: "Audited") -> str:
    return audit.saved_in or audit.target


def _ceiling(found: Comparison) -> str:
    """Write the change of the startup maximum, for a start that costs as much as before."""
    total = found.total("ceiling")
    delta_bytes = None if total is None else total.delta_bytes
    if not delta_bytes:
        return ""
    return f" at its start, and can ever write {format_bytes(abs(delta_bytes))} {'more' if delta_bytes > 0 else 'less'}"


def _verdict(found: Comparison) -> str:
    for name, what in (
        ("per_process", "costs"),
        ("per_group", "costs"),
        ("private", "holds"),
        ("mapped_writable", "maps"),
    ):
        total = found.total(name)
        delta_bytes = None if total is None else total.delta_bytes
        if total is None or delta_bytes is None:
            continue
        many = many_text(found, delta_bytes)
        if not delta_bytes:
            same = (
                f"One {found.new.noun} {what} as much as before, {format_bytes(total.new.bytes or 0)}{_ceiling(found)}"
            )
            return f"{same}{many}."
        percent = percent_text(delta_bytes, total.old.bytes or 0)
        text = f"One {found.new.noun} {what} {_more_or_less(delta_bytes)}"
        text += f" ({percent})" if percent else ""
        return text + many + ("; the starts spread as far." if total.is_noise else ".")
    return f"Neither tells what one {found.new.noun} costs."


def many_text(found: Comparison, each_bytes: int) -> str:
    """Write the change of what N cost, with what all pay once, behind that of one; nothing where there is no more."""
    cost = found.cost or CostChange(each_bytes, 0, found.count)
    if found.count == 1 or not (each_bytes or cost.delta_at_count_bytes):
        return ""
    text = f", {found.count:,} of them {_more_or_less(cost.delta_at_count_bytes)}"
    if cost.each_delta_bytes != each_bytes:
        text += f" ({_more_or_less(cost.each_delta_bytes)} each, with what it shares now)"
    if cost.once_delta_bytes:
        text += f", with {_more_or_less(cost.once_delta_bytes)} that all pay once"
    return text


def _more_or_less(delta_bytes: int) -> str:
    if not delta_bytes:
        return "as much as before"
    return f"{format_bytes(abs(delta_bytes))} {'more' if delta_bytes > 0 else 'less'}"
