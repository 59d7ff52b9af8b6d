"""What each verb's report says, in which order: totals and the cost at N first, then what is large, then notes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from footprint.audit.audit import Audit, Total
from footprint.audit.layout import Kind, OwnedMap
from footprint.audit.ledger import Row
from footprint.audit.measured import held_bytes
from footprint.audit.projection import Basis, Projection
from footprint.elf import Contents, SectionContents, Variable, shown_name
from footprint.errors import Note
from footprint.evidence import Evidence, weakest
from footprint.process import Mapping
from footprint.report.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.units import format_bytes

__all__ = ("GROUPINGS", "audit_report", "maps_report", "projection_report", "symbols_report")

_BASIS_TEXT: Final = {
    Basis.PER_PROCESS: "",
    Basis.PRIVATE: " of private memory, kernel memory not counted",
    Basis.MAPPED_WRITABLE: " of mapped writable memory, an upper bound",
}


def _by_owner(row: Row) -> str:
    return row.owner


def _by_kind(row: Row) -> str:
    return row.kind.value


def _by_section(row: Row) -> str:
    return f"{row.owner}  {row.section or f'[{row.kind.value}]'}"


def _by_symbol(row: Row) -> str:
    name = shown_name(row.symbol) if row.symbol else row.name or f"[{row.kind.value}]"
    return f"{row.owner}  {row.section or ''}  {name}"


GROUPINGS: Final[dict[str, Callable[[Row], str]]] = {
    "owner": _by_owner,
    "kind": _by_kind,
    "section": _by_section,
    "symbol": _by_symbol,
}


def audit_report(audit: Audit, *, by: str = "owner", top: int = 20, has_whole_names: bool = False) -> Document:
    """Say where the memory of a process goes; `top` rows a table, 0 for all."""
    short = {} if has_whole_names else _short_names(row.owner for row in audit.ledger)
    return (
        Heading(_title(audit)),
        Paragraph(_origin(audit)),
        Heading(_cost_heading(audit)),
        _totals(audit),
        *_cost_at_count(audit.projection),
        Heading(_ledger_heading(audit, by)),
        _ledger_table(audit, by, top, short),
        *_symbols(audit, by, top, short),
        *_notes(audit.notes, audit.target),
        Verdict(_verdict(audit)),
    )


def projection_report(audit: Audit) -> Document:
    """Say what N processes cost, or how many fit."""
    return (
        Heading(_title(audit)),
        Paragraph(_origin(audit)),
        Heading(_cost_heading(audit)),
        _totals(audit),
        *_cost_at_count(audit.projection),
        *_notes(audit.notes, audit.target),
        Verdict(_verdict(audit)),
    )


def _title(audit: Audit) -> str:
    pid = f"process {audit.pid}" if audit.pid is not None else audit.target
    command = audit.command if len(audit.command) <= 60 else audit.command[:57] + "..."
    return f"footprint audit: {pid}{'  ' + command if command else ''}"


def _origin(audit: Audit) -> str:
    origin = (
        f"Read from its {audit.source} now" if audit.is_live else f"Read from {audit.target}, a text of {audit.source}"
    )
    kernel = f", Linux {audit.host['kernel']} {audit.host['machine']}" if audit.host else ""
    return f"{origin}{kernel}; {audit.mapping_count} mappings, pages of {format_bytes(audit.page_bytes)}."


def _cost_heading(audit: Audit) -> str:
    if audit.totals.per_process.bytes is not None:
        return "One process costs"
    return "One process holds" if audit.totals.private.bytes is not None else "One process maps"


def _totals(audit: Audit) -> Facts:
    totals = audit.totals
    rows: list[tuple[str, str, str]] = []

    def add(label: str, total: Total, remark: str = "") -> None:
        if total.bytes is not None:
            rows.append((label, format_bytes(total.bytes), f"{total.evidence.value}{remark}"))

    add("per process", totals.per_process)
    is_part = totals.per_process.bytes is not None
    add("  private memory" if is_part else "private memory", totals.private)
    rows.extend(
        ("  " + (row.name or "").strip("[]"), format_bytes(row.bytes or 0), row.evidence.value)
        for row in audit.ledger
        if row.kind is Kind.KERNEL
    )
    add("shared, once per machine", totals.shared_once)
    if totals.shared_with_relatives.bytes:
        add("shared with fork relatives", totals.shared_with_relatives)
    writable_kib = (totals.mapped_writable.bytes or 0) // 1024
    add("mapped writable", totals.mapped_writable, f": {writable_kib}K writeable/private in pmap -d")
    if totals.mapped_shared.bytes or totals.private.bytes is None:
        add("mapped shared", totals.mapped_shared, f": {(totals.mapped_shared.bytes or 0) // 1024}K shared in pmap -d")
    add("mapped", totals.mapped, f": {(totals.mapped.bytes or 0) // 1024}K in pmap")
    return Facts(tuple(rows))


def _cost_at_count(projection: Projection) -> list[Block]:
    once = f" + {format_bytes(projection.shared_once_bytes)} once" if projection.shared_once_bytes else ""
    basis = _BASIS_TEXT[projection.basis]
    sum_text = f"{projection.count:,} x {format_bytes(projection.per_process_bytes)}{once}"
    if projection.memory_bytes is not None:
        heading = f"In {format_bytes(projection.memory_bytes)} fit"
        fits = ("processes", f"{projection.count:,}", f"{projection.evidence.value}{basis}")
        return [Heading(heading), Facts((fits, ("their cost", format_bytes(projection.total_bytes), sum_text)))]
    if projection.count == 1:
        return []
    heading = f"{projection.count:,} processes cost"
    remark = f"{projection.evidence.value}: {sum_text}{basis}"
    return [Heading(heading), Facts((("in all", format_bytes(projection.total_bytes), remark),))]


def _verdict(audit: Audit) -> str:
    projection = audit.projection
    basis = _BASIS_TEXT[projection.basis]
    one = format_bytes(projection.per_process_bytes)
    if projection.memory_bytes is not None:
        fit = f"{projection.count:,} processes fit into {format_bytes(projection.memory_bytes)}"
        return f"{fit}, at {one} each{basis} ({projection.evidence.value})."
    if projection.count == 1:
        return f"One process costs {one}{basis} ({projection.evidence.value})."
    total = format_bytes(projection.total_bytes)
    return f"{projection.count:,} processes cost {total}, {one} each{basis} ({projection.evidence.value})."


@dataclass(slots=True)
class _Group:
    """The sums of the rows of one group."""

    private_bytes: int = 0
    mapped_bytes: int = 0
    writable_bytes: int = 0
    shared_bytes: int = 0
    evidence: Evidence = Evidence.MEASURED
    is_assumed: bool = False


def _ledger_heading(audit: Audit, by: str) -> str:
    what = "private memory" if audit.totals.private.bytes is not None else "mapped writable memory"
    return f"Where the {what} is, by {by}"


def _ledger_table(audit: Audit, by: str, top: int, short: dict[str, str]) -> Table:
    """Group the ledger; where only virtual sizes are known, by what is writable."""
    is_virtual = audit.totals.private.bytes is None
    group_of = GROUPINGS[by]
    groups: dict[str, _Group] = {}
    for row in audit.ledger:
        if row.kind is Kind.KERNEL:
            continue
        group = groups.setdefault(group_of(row), _Group())
        group.private_bytes += row.bytes or 0
        group.mapped_bytes += row.mapped_bytes
        group.writable_bytes += row.mapped_bytes if row.is_writable else 0
        group.shared_bytes += row.shared_bytes or 0
        if row.bytes or is_virtual:
            group.evidence = weakest((group.evidence, row.evidence))
        group.is_assumed |= row.attribution.is_assumed
    whole_bytes = sum(g.writable_bytes if is_virtual else g.private_bytes for g in groups.values())

    def own(group: _Group) -> int:
        return group.writable_bytes if is_virtual else group.private_bytes

    def cells(group: _Group, label: str) -> tuple[str, ...]:
        share = f"{own(group) / whole_bytes:.1%}" if whole_bytes else ""
        shown = tuple(format_bytes(size) if size else "-" for size in _columns(group, is_virtual=is_virtual))
        return (shown[0], share, *shown[1:], label)

    ordered = sorted(groups.items(), key=lambda item: (-own(item[1]), -item[1].mapped_bytes, item[0]))
    shown_groups = ordered[:top] if top else ordered
    rows = tuple(
        cells(group, _label(key, by, short) + (" *" if group.is_assumed else "")) for key, group in shown_groups
    )
    columns = ("writable", "share", "mapped") if is_virtual else ("private", "share", "mapped", "shared")
    footer = []
    if rest := ordered[len(shown_groups) :]:
        footer.append(cells(_add_up(group for _, group in rest), f"[{len(rest)} more: --top 0 shows all]"))
    footer.append(cells(_add_up(group for _, group in ordered), "[total]"))
    mark = " (* assumed from its place)" if any(group.is_assumed for _, group in shown_groups) else ""
    return Table((*columns, by + mark), rows, frozenset(), tuple(footer))


def _columns(group: _Group, *, is_virtual: bool) -> tuple[int, ...]:
    if is_virtual:
        return group.writable_bytes, group.mapped_bytes
    return group.private_bytes, group.mapped_bytes, group.shared_bytes


def _add_up(groups: Iterable[_Group]) -> _Group:
    total = _Group()
    for group in groups:
        total.private_bytes += group.private_bytes
        total.mapped_bytes += group.mapped_bytes
        total.writable_bytes += group.writable_bytes
        total.shared_bytes += group.shared_bytes
    return total


def _label(key: str, by: str, short: dict[str, str]) -> str:
    if by == "kind":
        return key
    owner, *rest = key.split("  ")
    return "  ".join([short.get(owner, owner), *(part for part in rest if part)])


def _short_names(owners: Iterable[str]) -> dict[str, str]:
    """Give the last part of each path, where it names only one of them."""
    last_parts: dict[str, set[str]] = {}
    for owner in owners:
        if owner.startswith("/"):
            last_parts.setdefault(owner.rsplit("/", 1)[-1], set()).add(owner)
    return {paths.pop(): last for last, paths in last_parts.items() if last and len(paths) == 1}


def _symbols(audit: Audit, by: str, top: int, short: dict[str, str]) -> list[Block]:
    """List the largest variables among the private bytes; by symbol, the ledger itself has done so."""
    named = [row for row in audit.ledger if row.symbol is not None and row.bytes]
    if not named or by == "symbol":
        return []
    shown = named[:top] if top else named
    rows = tuple(
        (
            format_bytes(row.bytes or 0),
            str(row.pages),
            row.section or "",
            f"{shown_name(row.symbol or '')}  ({short.get(row.owner, row.owner)})",
        )
        for row in shown
    )
    rest = named[len(shown) :]
    rest_bytes = sum(row.bytes or 0 for row in rest)
    footer = ((format_bytes(rest_bytes), "", "", f"[{len(rest)} more variables: --top 0 shows all]"),) if rest else ()
    named_bytes = sum(row.bytes or 0 for row in named)
    heading = f"Largest variables in wholly private mappings, {format_bytes(named_bytes)} in all"
    return [Heading(heading), Table(("own", "pages", "section", "variable"), rows, frozenset({2}), footer)]


def _notes(notes: Sequence[Note], target: str = "") -> list[Block]:
    """List the notes; what is about the whole target does not name it again."""
    if not notes:
        return []
    about = {"", target, f"pid {target}"}
    lines = [
        f"{note.slug}: {note.detail}" if note.subject in about else f"{note.slug}: {note.subject}: {note.detail}"
        for note in notes
    ]
    return [Heading("Notes"), *(Paragraph(line) for line in lines)]


def symbols_report(
    files: Sequence[Contents], notes: Sequence[Note] = (), *, top: int = 20, has_linker_names: bool = False
) -> Document:
    """Say what the writable memory of files holds, the largest variables first."""
    blocks: list[Block] = []
    for contents in files:
        blocks.append(Heading(f"{contents.file}: {_symbols_origin(contents)}"))
        if contents.sections:
            blocks.append(_sections_table(contents.sections))
        blocks.extend(_variables_table(contents, top, (lambda name: name) if has_linker_names else shown_name))
        if contents.stray_count:
            count = contents.stray_count
            blocks.append(Paragraph(f"{count} symbols say they lie in one of these sections, and do not: left out"))
    blocks.extend(_notes(notes))
    return (*blocks, Verdict(_symbols_verdict(files)))


def _symbols_origin(contents: Contents) -> str:
    if not contents.sections:
        return "no writable section"
    if contents.symbols_from is None:
        return "no symbol table"
    stripped = ", stripped: only exported names" if contents.symbols_from == ".dynsym" else ""
    return f"{contents.symbol_count:,} symbols in {contents.symbols_from}{stripped}"


def _sections_table(sections: Sequence[SectionContents]) -> Table:
    rows = []
    for one in sections:
        named_bytes = one.named_bytes
        residue = ", ".join(f"{size:,} {cause.value}" for cause, size in one.residue_bytes.items())
        share = f"{named_bytes / one.size_bytes:.1%}"
        rows.append((f"{one.size_bytes:,}", f"{named_bytes:,}", share, one.kind.value, one.section.name, residue))
    return Table(("bytes", "named", "", "kind", "section", "without a name, and why"), tuple(rows), frozenset({3, 4}))


def _variables_table(contents: Contents, top: int, show: Callable[[str], str]) -> list[Block]:
    placed: list[tuple[Variable, SectionContents]] = [
        (variable, one) for one in contents.sections for variable in one.variables
    ]
    if not placed:
        return []
    placed.sort(key=lambda item: (-item[0].size_bytes, item[0].name))
    shown = placed[:top] if top else placed
    rows = tuple(
        (
            f"{variable.size_bytes:,}" if variable.size_bytes else "no size",
            one.section.name,
            _variable_text(variable, show),
        )
        for variable, one in shown
    )
    rest = placed[len(shown) :]
    rest_bytes = sum(variable.size_bytes for variable, _ in rest)
    footer = ((f"{rest_bytes:,}", "", f"[{len(rest):,} more: --top 0 shows all]"),) if rest else ()
    return [Table(("bytes", "section", "variable"), rows, frozenset({1}), footer)]


def _variable_text(variable: Variable, show: Callable[[str], str]) -> str:
    shown = show(variable.name)
    if not variable.aliases:
        return shown
    aliases = ", ".join(map(show, variable.aliases[:3]))
    more = f" and {len(variable.aliases) - 3} more" if len(variable.aliases) > 3 else ""
    return f"{shown}  (also {aliases}{more})"


def _symbols_verdict(files: Sequence[Contents]) -> str:
    total_bytes = sum(one.size_bytes for contents in files for one in contents.sections)
    named_bytes = sum(one.named_bytes for contents in files for one in contents.sections)
    share = f" ({named_bytes / total_bytes:.1%})" if total_bytes else ""
    where = "" if len(files) == 1 else f" in {len(files)} files"
    return f"Symbols name {named_bytes:,} of {total_bytes:,} bytes of writable and thread-local memory{where}{share}."


def maps_report(owned: OwnedMap, *, has_whole_names: bool = False) -> Document:
    """Say of each mapping whose it is, and what it holds."""
    mappings = owned.memory.mappings
    short = {} if has_whole_names else _short_names(part.owner for part in owned.parts)
    has_counters = any(mapping.counters.keys for mapping in mappings)
    is_assumed = any(part.attribution.is_assumed for part in owned.parts)
    heading = "owner (* assumed from its place)" if is_assumed else "owner"
    columns = ("address", "KiB", *(("resident", "private") if has_counters else ()), "perm", "kind", heading)
    rows = []
    previous = None
    for part in owned.parts:
        mapping = part.mapping
        # A mapping of several owners has its counters once, on its first line.
        counters = _counter_cells(mapping, is_first=mapping is not previous) if has_counters else ()
        previous = mapping
        label = short.get(part.owner, part.owner) + (" *" if part.attribution.is_assumed else "")
        size = str(part.size_bytes // 1024)
        rows.append((f"{part.start_addr:x}", size, *counters, mapping.permissions, part.kind.value, label))
    mapped_bytes = sum(mapping.size_bytes for mapping in mappings)
    sums = _counter_sums(mappings) if has_counters else ()
    footer = (("", str(mapped_bytes // 1024), *sums, "", "", "[total]"),)
    table = Table(columns, tuple(rows), frozenset({len(columns) - 3, len(columns) - 2}), footer)
    writable_bytes = sum(mapping.size_bytes for mapping in mappings if mapping.is_mapped_writable)
    amounts = f"{format_bytes(mapped_bytes)} mapped, {format_bytes(writable_bytes)} of it writable and private"
    pid = f"process {owned.pid}" if owned.pid is not None else owned.target
    title = Heading(f"footprint maps: {pid}{'  ' + owned.command if owned.command else ''}")
    return (title, table, *_notes(owned.notes, owned.target), Verdict(f"{len(mappings):,} mappings, {amounts}."))


def _counter_cells(mapping: Mapping, *, is_first: bool) -> tuple[str, str]:
    if not is_first:
        return "", ""
    return _kib(mapping.counters.get("Rss")), _kib(held_bytes(mapping).private_bytes)


def _counter_sums(mappings: Iterable[Mapping]) -> tuple[str, str]:
    resident_bytes = private_bytes = 0
    for mapping in mappings:
        resident_bytes += mapping.counters.get("Rss") or 0
        private_bytes += held_bytes(mapping).private_bytes or 0
    return _kib(resident_bytes), _kib(private_bytes)


def _kib(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else str(size_bytes // 1024)
