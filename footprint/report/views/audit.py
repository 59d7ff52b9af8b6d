"""The reports of `footprint audit` and `footprint project`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from footprint.audit.audit import Audit
from footprint.audit.layout import Kind
from footprint.audit.ledger import Row
from footprint.audit.projection import Basis, Model, Projection
from footprint.audit.totals import OfWhich, Total
from footprint.evidence import Evidence, weakest
from footprint.report.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.report.views.findings import finding_blocks
from footprint.report.views.names import Names
from footprint.report.views.notes import note_blocks
from footprint.units import counted, format_bytes

__all__ = ("GROUPINGS", "audit_report", "ledger_table", "projection_report")

_BASIS_TEXT: Final = {
    Basis.PER_PROCESS: "",
    Basis.STARTED_COPY: ", with what it shares now",
    Basis.REWRITTEN: " at most, if everything is rewritten",
    Basis.PRIVATE: " of private memory, kernel memory not counted",
    Basis.MAPPED_WRITABLE: " of mapped writable memory, an upper bound",
}


_Key = tuple[str, ...]


def _by_owner(row: Row) -> _Key:
    return (row.owner,)


def _by_kind(row: Row) -> _Key:
    return ("", row.kind.value)


def _by_section(row: Row) -> _Key:
    return row.owner, row.section or f"[{row.kind.value}]"


def _by_symbol(row: Row) -> _Key:
    return row.owner, row.section or "", row.symbol or row.name or f"[{row.kind.value}]"


GROUPINGS: Final[dict[str, Callable[[Row], _Key]]] = {
    "owner": _by_owner,
    "kind": _by_kind,
    "section": _by_section,
    "symbol": _by_symbol,
}


def audit_report(audit: Audit, *, by: str = "owner", top: int = 20, has_whole_names: bool = False) -> Document:
    """Say where the memory of a process goes; `top` rows a table, 0 for all."""
    names = Names((row.owner for row in audit.ledger), is_whole=has_whole_names)
    return (
        Heading(_title("audit", audit)),
        Paragraph(_origin(audit)),
        Heading(_cost_heading(audit)),
        _totals(audit),
        *_cost_at_count(audit.projection, has_terms=audit.projection.basis is Basis.STARTED_COPY),
        Heading(_ledger_heading(audit, by)),
        ledger_table(audit.ledger, by, top, names, is_virtual=audit.totals.private.bytes is None),
        *_symbols(audit, by, top, names),
        *_causes(audit),
        *finding_blocks(audit.findings, audit.projection.count, is_verbose=has_whole_names),
        *note_blocks(audit.notes, audit.target),
        Verdict(_verdict(audit)),
    )


def projection_report(audit: Audit) -> Document:
    """Say what N processes cost, or how many fit."""
    return (
        Heading(_title("project", audit)),
        Paragraph(_origin(audit)),
        Heading(_cost_heading(audit)),
        _totals(audit),
        *_cost_at_count(audit.projection, has_terms=True),
        *note_blocks(audit.notes, audit.target),
        Verdict(_verdict(audit)),
    )


def _title(verb: str, audit: Audit) -> str:
    pid = f"process {audit.pid}" if audit.pid is not None else audit.target
    command = audit.command if len(audit.command) <= 60 else audit.command[:57] + "..."
    return f"footprint {verb}: {pid}{'  ' + command if command else ''}"


def _origin(audit: Audit) -> str:
    if audit.source == "prediction":
        return f"Predicted from its files, nothing was run: {counted(audit.mapping_count, 'mapping')} at its start."
    origin = (
        f"Read from its {audit.source} now" if audit.is_live else f"Read from {audit.target}, a text of {audit.source}"
    )
    kernel = f", Linux {audit.host['kernel']} {audit.host['machine']}" if audit.host else ""
    return f"{origin}{kernel}: {counted(audit.mapping_count, 'mapping')}."


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
    add("    its objects, written at start (floor)", totals.floor)
    add("    its objects, if all is written (ceiling)", totals.ceiling)
    rows.extend(
        ("  " + (row.name or "").strip("[]"), format_bytes(row.bytes or 0), row.evidence.value)
        for row in audit.ledger
        if row.kind is Kind.KERNEL
    )
    add("shared, once per machine", totals.shared_once)
    if totals.shared_with_relatives.bytes:
        add("shared with fork relatives", totals.shared_with_relatives)
    rows.extend(_of_which(totals.of_which))
    writable_kib = (totals.mapped_writable.bytes or 0) // 1024
    add("mapped writable", totals.mapped_writable, f", pmap -d: {writable_kib}K writeable/private")
    if totals.mapped_shared.bytes or totals.private.bytes is None:
        add("mapped shared", totals.mapped_shared, f", pmap -d: {(totals.mapped_shared.bytes or 0) // 1024}K shared")
    add("mapped", totals.mapped, f", pmap: {(totals.mapped.bytes or 0) // 1024}K")
    return Facts(tuple(rows))


def _of_which(special: OfWhich) -> Iterable[tuple[str, str, str]]:
    """Say what of the figures behaves in its own way, where there is such memory."""
    lines = (
        ("swapped out", special.swapped_bytes, "in private memory"),
        ("free for the kernel to take", special.lazy_free_bytes, "in private memory (LazyFree)"),
        ("locked", special.locked_bytes, "in memory that is never swapped"),
        ("in transparent huge pages", special.huge_page_bytes, "in private memory"),
        ("merged by KSM", special.ksm_bytes, "with equal pages"),
        ("huge pages, private", special.hugetlb_private_bytes, "of the reserved pool, in no total"),
        ("huge pages, shared", special.hugetlb_shared_bytes, "of the reserved pool, in no total"),
        ("shared memory of its own", special.own_shared_bytes, "in shared; each started copy has its own"),
    )
    return [(f"  {label}", format_bytes(size_bytes), remark) for label, size_bytes, remark in lines if size_bytes]


_NOUNS: Final = {Model.EXEC: "processes", Model.FORK: "workers", Model.THREADS: "threads"}


def _subject(projection: Projection) -> str:
    """Name the N: `10,000 processes`, `One worker`."""
    if projection.count != 1:
        return f"{projection.count:,} {_NOUNS[projection.model]}"
    if projection.basis is Basis.STARTED_COPY:
        return "One more started copy"
    return {Model.EXEC: "One process", Model.FORK: "One worker", Model.THREADS: "One more thread"}[projection.model]


def _cost_at_count(projection: Projection, *, has_terms: bool) -> list[Block]:
    """Say what N cost, or how many fit; with every term where that is the question."""
    once = f" + {format_bytes(projection.shared_once_bytes)} once" if projection.shared_once_bytes else ""
    basis = _BASIS_TEXT[projection.basis]
    noun = _NOUNS[projection.model]
    sum_text = f"{projection.count:,} x {format_bytes(projection.per_process_bytes)}{once}"
    blocks: list[Block] = []
    if projection.memory_bytes is not None:
        blocks.append(Heading(f"In {format_bytes(projection.memory_bytes)} fit"))
        fits = (noun, f"{projection.count:,}", f"{projection.evidence.value}{basis}")
        blocks.append(Facts((fits, ("their cost", format_bytes(projection.total_bytes), sum_text))))
    elif projection.count > 1 or has_terms:
        blocks.append(Heading(f"{_subject(projection)} {'costs' if projection.count == 1 else 'cost'}"))
        remark = f"{projection.evidence.value}: {sum_text}{basis}"
        blocks.append(Facts((("in all", format_bytes(projection.total_bytes), remark),)))
    if has_terms:
        blocks.extend(_terms(projection))
    return [*blocks, *_points(projection)]


def _terms(projection: Projection) -> list[Block]:
    blocks: list[Block] = []
    for is_once, heading in ((False, "Each pays"), (True, "All pay once")):
        rows = tuple(
            (term.name, format_bytes(term.size_bytes), term.evidence.value)
            for term in projection.terms
            if term.is_once is is_once
        )
        if rows:
            blocks += [Heading(heading), Facts(rows)]
    return blocks


def _points(projection: Projection) -> list[Block]:
    blocks: list[Block] = []
    if projection.points:
        rows = tuple(
            (
                point.name,
                format_bytes(point.each_bytes),
                f"{point.evidence.value}: {format_bytes(point.total_bytes)} for all",
            )
            for point in projection.points
        )
        life = "A worker in its life" if projection.model is Model.FORK else "From its start to every variable written"
        blocks += [Heading(life), Facts(rows)]
    return blocks


def _verdict(audit: Audit) -> str:
    projection = audit.projection
    basis = _BASIS_TEXT[projection.basis]
    noun = _NOUNS[projection.model]
    one = format_bytes(projection.per_process_bytes)
    if projection.memory_bytes is not None:
        fit = f"{projection.count:,} {noun} fit into {format_bytes(projection.memory_bytes)}"
        return f"{fit}, at {one} each{basis} ({projection.evidence.value})."
    if projection.count == 1:
        return f"{_subject(projection)} costs {one}{basis} ({projection.evidence.value})."
    total = format_bytes(projection.total_bytes)
    return f"{projection.count:,} {noun} cost {total}, {one} each{basis} ({projection.evidence.value})."


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


def ledger_table(
    rows: Iterable[Row], by: str, top: int, names: Names, *, is_virtual: bool, has_shared: bool = True
) -> Table:
    """Group a ledger; where only virtual sizes are known, by what is writable."""
    group_of = GROUPINGS[by]
    groups: dict[_Key, _Group] = {}
    for row in rows:
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
        return (shown[0], share, *(shown[1:] if has_shared else shown[1:2]), label)

    ordered = sorted(groups.items(), key=lambda item: (-own(item[1]), -item[1].mapped_bytes, item[0]))
    shown_groups = ordered[:top] if top else ordered
    shown_rows = tuple(
        cells(group, _label(key, names) + (" *" if group.is_assumed else "")) for key, group in shown_groups
    )
    columns = ("writable", "share", "mapped") if is_virtual else ("private", "share", "mapped", "shared")
    columns = columns if has_shared else columns[:3]
    footer = []
    if rest := ordered[len(shown_groups) :]:
        footer.append(cells(_add_up(group for _, group in rest), f"[{len(rest)} more: --top 0 shows all]"))
    footer.append(cells(_add_up(group for _, group in ordered), "[total]"))
    mark = " (* assumed from its place)" if any(group.is_assumed for _, group in shown_groups) else ""
    return Table((*columns, by + mark), shown_rows, frozenset(), tuple(footer))


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


def _label(key: _Key, names: Names) -> str:
    owner, *rest = key
    return "  ".join(dict.fromkeys(part for part in (names.owner(owner), *map(names.symbol, rest)) if part))


def _symbols(audit: Audit, by: str, top: int, names: Names) -> list[Block]:
    """List the variables that cost most: by what they keep private alone, or by their own bytes where that is more."""
    named = [row for row in audit.ledger if row.symbol is not None and row.bytes]
    if not named or by == "symbol":
        return []
    page_bytes = audit.page_bytes

    def cost(row: Row) -> int:
        # A page that relocations write is private with or without the variable.
        return max(0 if row.relocated_bytes else row.sole_pages * page_bytes, row.bytes or 0)

    named.sort(key=lambda row: (-cost(row), row.owner, row.symbol or ""))
    shown = named[:top] if top else named
    rows = tuple(
        (
            format_bytes(row.bytes or 0),
            str(row.pages),
            format_bytes(row.sole_pages * page_bytes) if row.sole_pages else "-",
            format_bytes(row.mapped_bytes),
            row.section or "",
            f"{names.symbol(row.symbol or '')}  ({names.owner(row.owner)})",
        )
        for row in shown
    )
    rest = named[len(shown) :]
    rest_bytes = sum(row.bytes or 0 for row in rest)
    more = f"[{len(rest)} more variables: --top 0 shows all]"
    footer = ((format_bytes(rest_bytes), "", "", "", "", more),) if rest else ()
    columns = ("private", "pages", "alone", "size", "section", "variable")
    named_bytes = sum(row.bytes or 0 for row in named)
    heading = f"Variables in private pages, {format_bytes(named_bytes)}; alone: pages that nothing else named lies in"
    return [Heading(heading), Table(columns, rows, frozenset({4}), footer)]


def _is_loader(owner: str) -> bool:
    name = owner.rsplit("/", 1)[-1]
    return name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so", "ld-2."))


def _causes(audit: Audit) -> list[Block]:
    """Say why the private pages of files were written, where the files tell."""
    rows = [row for row in audit.ledger if row.relocated_bytes is not None and row.bytes]
    if not rows:
        return []
    loader_bytes = sum((row.bytes or 0) - (row.relocated_bytes or 0) for row in rows if _is_loader(row.owner))
    relocated_bytes = sum(row.relocated_bytes or 0 for row in rows)
    rows = [row for row in rows if not _is_loader(row.owner)]
    sealed_bytes = sum((row.bytes or 0) - (row.relocated_bytes or 0) for row in rows if not row.is_writable)
    written_bytes = sum((row.bytes or 0) - (row.relocated_bytes or 0) for row in rows if row.is_writable)
    facts = (
        ("pages with relocations", format_bytes(relocated_bytes), "written by the loader at start"),
        ("pages of the loader itself", format_bytes(loader_bytes), "written by the loader"),
        ("other sealed pages", format_bytes(sealed_bytes), "written before they were made read-only (RELRO)"),
        ("other writable pages", format_bytes(written_bytes), "written by the program"),
    )
    return [Heading("Why pages of files are private"), Facts(facts)]
