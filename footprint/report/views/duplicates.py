"""The report of `footprint duplicates`."""

from collections.abc import Callable, Sequence

from footprint.audit.finding import Finding
from footprint.elf import shown_name
from footprint.findings.duplicate_statics import Copies, Cost, Origin
from footprint.findings.linked_twice import Duplicates
from footprint.report.document import Block, Document, Heading, Paragraph, Table, Verdict
from footprint.report.views.findings import finding_blocks
from footprint.report.views.notes import note_blocks
from footprint.units import counted, format_bytes

__all__ = ("duplicates_report",)

_MOST_UNITS = 3
_MOST_LARGE = 10


def duplicates_report(found: Duplicates, *, count: int = 1, top: int = 20, has_linker_names: bool = False) -> Document:
    """Say what files hold several times; `top` rows a table, 0 for all."""
    show = (lambda name: name) if has_linker_names else shown_name
    placed = [(file.file, one) for file in found.files for one in file.copies]
    real = [(file, one) for file, one in placed if one.origin is not Origin.STREAM_INIT]
    real.sort(key=lambda item: (-item[1].waste_bytes, item[1].name, item[0]))
    blocks: list[Block] = [Heading(_title(found))]
    blocks.extend(_copies_table(real, top, show, has_file=len(found.files) > 1))
    blocks.extend(_stream_inits(placed))
    twice = [one for one in found.findings if one.rule == "linked-twice"]
    if twice:
        blocks.append(Heading("Linked in several times"))
        blocks.extend(Paragraph(f"{one.message}. Remedy: {one.remedy}.") for one in (twice[:top] if top else twice))
    blocks.extend(_large([one for one in found.findings if one.rule == "large-static"], top))
    copies = [one for one in found.findings if one.rule == "duplicate-static"]
    blocks.extend(finding_blocks([one for one in copies if one.saving_bytes][: top or None], count))
    blocks.extend(note_blocks(found.notes))
    return (*blocks, Verdict(_verdict(real, count)))


def _title(found: Duplicates) -> str:
    name = f"process {found.pid}" if found.pid is not None else ", ".join(found.targets[:3])
    if len(found.targets) > 3:
        name += f" and {len(found.targets) - 3} more"
    variables = counted(sum(one.variable_count for one in found.files), "variable")
    units = counted(sum(one.unit_count for one in found.files), "source file")
    return f"{name}: {variables} from {units}"


def _copies_table(
    placed: Sequence[tuple[str, Copies]], top: int, show: Callable[[str], str], *, has_file: bool
) -> list[Block]:
    if not placed:
        return [Paragraph("nothing is there more than once, as far as its symbols tell")]
    shown = placed[:top] if top else placed
    rows = tuple(
        (
            format_bytes(one.waste_bytes),
            str(len(one.copies)),
            format_bytes(one.size_bytes),
            one.cost.value,
            one.confidence.value,
            one.section,
            f"{show(one.name)}{f'  ({file})' if has_file else ''}  {_where(one)}",
        )
        for file, one in shown
    )
    rest = placed[len(shown) :]
    rest_bytes = sum(one.waste_bytes for _, one in rest)
    footer = ((format_bytes(rest_bytes), *[""] * 5, f"[{len(rest)} more: --top 0 shows all]"),) if rest else ()
    columns = ("waste", "copies", "size", "cost", "confidence", "section", "name")
    return [Table(columns, rows, frozenset({3, 4, 5}), footer)]


def _where(one: Copies) -> str:
    """Say where it is declared, or from which source files the copies are."""
    if one.location is not None:
        return f"{one.location.file}:{one.location.line}"
    if not one.units:
        return ""
    more = f" and {len(one.units) - _MOST_UNITS} more" if len(one.units) > _MOST_UNITS else ""
    return f"in {', '.join(one.units[:_MOST_UNITS])}{more}"


def _large(findings: Sequence[Finding], top: int) -> list[Block]:
    """List large variables: those that nothing uses first, then those that the file need not hold."""
    if not findings:
        return []
    kinds = ("dead-code", "zero-filled", "buffer")
    ordered = sorted(findings, key=lambda one: kinds.index(one.kind))
    shown = ordered[: min(top, _MOST_LARGE)] if top else ordered
    rows = tuple((one.kind, one.message) for one in shown)
    rest = len(ordered) - len(shown)
    footer = (("", f"[{rest} more: --top 0 shows all]"),) if rest else ()
    return [Heading("Variables of a page and more"), Table(("kind", "variable"), rows, frozenset({0}), footer)]


def _stream_inits(placed: Sequence[tuple[str, Copies]]) -> list[Block]:
    count = sum(len(one.copies) for _, one in placed if one.origin is Origin.STREAM_INIT)
    if not count:
        return []
    text = (
        f"<iostream> is included in {counted(count, 'source file')}: each runs its initialiser at start (a byte each)"
    )
    return [Paragraph(text)]


def _verdict(placed: Sequence[tuple[str, Copies]], count: int) -> str:
    waste: dict[Cost, int] = {}
    for _, one in placed:
        waste[one.cost] = waste.get(one.cost, 0) + one.waste_bytes
    if not waste:
        return "There is nothing to save by having one of each."
    parts = ", ".join(f"{format_bytes(waste[cost])} {cost.value}" for cost in Cost if cost in waste)
    own_bytes = sum(size for cost, size in waste.items() if cost is not Cost.SHARED)
    many = f"; up to {format_bytes(own_bytes * count)} in {count:,} processes" if count > 1 and own_bytes else ""
    return f"One of each instead of all copies saves {parts}{many}."
