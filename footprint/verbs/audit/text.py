"""The report of `footprint audit`."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import nsmallest
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Heading,
    Names,
    Paragraph,
    Table,
    Verdict,
    cache_remark,
    cut_at,
    debug_file_blocks,
    limit_blocks,
    more,
    note_blocks,
)
from footprint.model.audit import Audit, GroupMember, program_path
from footprint.model.costs import MemoryFileCost
from footprint.model.heap_account import AllocatorAccount
from footprint.model.projection import FILES_TERM, Basis, LimitUnit, Model, Projection
from footprint.model.row import (
    NAMELESS,
    OF_OBJECTS,
    MemoryKind,
    OfWhich,
    Part,
    Row,
    RowSums,
    Total,
    file_name,
    kind_parts,
    sum_rows,
)
from footprint.text.escape import shortened
from footprint.text.units import counted, format_bytes

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf


def allocator_blocks(account: AllocatorAccount) -> list[Block]:
    """Show how much of the heap is in use, and how much is free but resident."""
    if not account.held_bytes:
        return []
    arenas = counted(account.arena_count, "arena")
    mapped = format_bytes(account.mapped_block_bytes)
    alone = f"; {mapped} in {counted(account.mapped_block_count, 'block')} of their own"
    facts = [
        (
            "in use",
            account.live_bytes,
            f"{counted(account.live_block_count, 'block')}, touched or not"
            + (alone if account.mapped_block_count else ""),
        ),
        ("headers, structures", account.overhead_bytes, arenas),
        ("free", account.free_bytes, "touched or not"),
    ]
    if account.allocator == "glibc":
        kept = "of the same size, by threads and fastbins"
        facts.append(("  kept for the next request", account.cached_bytes, kept))
    facts.append(("  in private memory", account.free_private_bytes, "free but resident"))
    if account.allocator == "glibc":
        facts.append(("    whole pages", account.trimmable_bytes, "malloc_trim(0) returns them to the kernel"))
    rows = tuple((label, format_bytes(size_bytes), remark) for label, size_bytes, remark in facts)
    part = ", as far as it could be read" if account.unread else ""
    size = format_bytes(account.held_bytes)
    heading = f"The heap as {account.allocator} has it, {size}{part}"
    if account.captured_at:
        moment = account.captured_at.replace("T", " ").replace("Z", " UTC")
        heading = f"The heap as {account.allocator} had it at {moment}, {size}{part}"
    return [Heading(heading), Facts(rows)]


_PARTS: Final = {
    Part.HEAP: "heap",
    Part.RUNTIME_HEAP: "heap of its runtime",
    Part.OBJECTS: "program and libraries",
    Part.STACKS: "stacks",
    Part.OTHER: "anonymous and other",
}
_MOST_MEMORY_FILES: Final = 3
_MOST_OF_WHICH: Final = 3
_LONGEST_COMMAND: Final = 28
_LONGEST_FILE_CHARS: Final = 40

_Key = tuple[str, ...]
_LONGEST_FUNCTION: Final = 60


_ATTRIBUTION: Final = attrgetter("attribution")


def _by_owner(row: Row) -> _Key:
    return (row.owner,)


def _by_kind(row: Row) -> _Key:
    return ("", row.kind.value)


def _by_section(row: Row) -> _Key:
    return row.owner, row.section or f"[{row.kind.value}]"


def _by_symbol(row: Row) -> _Key:
    section = "[heap]" if row.kind is MemoryKind.HEAP and row.symbol else row.section or ""
    return row.owner, section, row.symbol or row.name or f"[{row.kind.value}]"


GROUPINGS: Final[dict[str, Callable[[Row], _Key]]] = {
    "owner": _by_owner,
    "kind": _by_kind,
    "section": _by_section,
    "symbol": _by_symbol,
}


def audit_document(
    audit: Audit,
    *,
    by: str = "owner",
    top: int = 20,
    has_whole_names: bool = False,
    source_of: "SourceOf | None" = None,
) -> Document:
    """Show where the memory goes; `top` rows a table, 0 for all.

    `source_of` returns the group of source files of a row, where these are what the ledger is grouped by.
    """
    if audit.is_group:
        return _group_document(audit, by=by, top=top, has_whole_names=has_whole_names, source_of=source_of)
    names = Names({row.owner for row in audit.ledger}, is_whole=has_whole_names)
    return (
        Heading(title(audit)),
        Paragraph(origin(audit)),
        Heading(cost_heading(audit)),
        totals_facts(audit),
        *_reasons(audit.projection),
        *cost_at_count(audit),
        Heading(ledger_heading(audit, by)),
        ledger_table(
            audit.ledger,
            by,
            top,
            names,
            is_virtual=audit.totals.private.bytes is None,
            has_shared=not _is_prediction(audit),
            source_of=source_of,
        ),
        *_findings(audit, is_verbose=has_whole_names),
        *heap_blocks(audit, names, top),
        *_allocator(audit),
        *_symbols(audit, by, top, names),
        *_causes(audit),
        *debug_file_blocks(audit.debug_files, names, is_whole=has_whole_names),
        *note_blocks(audit.notes, audit.target),
        verdict(audit, names),
    )


def _group_document(
    audit: Audit,
    *,
    by: str,
    top: int,
    has_whole_names: bool,
    source_of: "SourceOf | None",
) -> Document:
    """Show where the memory of several processes goes, with what they share counted once."""
    from footprint.verbs.audit.family_text import family_blocks, family_verdict  # noqa: PLC0415 # few audits are of groups

    names = Names((row.owner for row in audit.ledger), is_whole=has_whole_names)
    return (
        Heading(f"footprint audit: {counted(len(audit.members), 'process')}  {audit.target}"),
        Paragraph(origin(audit)),
        Heading("Together they cost"),
        group_totals(audit),
        *family_blocks(audit),
        Heading("Each process by itself"),
        members_table(audit),
        Heading(f"Where the private memory of all is, by {by}"),
        ledger_table(
            audit.ledger,
            by,
            top,
            names,
            is_virtual=audit.totals.private.bytes is None,
            has_shared=False,
            source_of=source_of,
        ),
        *_findings(audit, is_verbose=has_whole_names),
        *debug_file_blocks(audit.debug_files, names, is_whole=has_whole_names),
        *note_blocks(audit.notes),
        Verdict(family_verdict(audit)),
    )


def group_totals(audit: Audit, *, has_parts: bool = True) -> Facts:
    """Show what a group costs together; `has_parts` for what its private and shared memory consists of."""
    totals = audit.totals
    rows: list[tuple[str, str, str]] = []

    def add(label: str, total: Total, remark: str = "") -> None:
        figure = "unknown" if total.bytes is None else format_bytes(total.bytes)
        rows.append((label, figure, total.evidence.value + remark))

    add("together", totals.per_process)
    add("  private memory", totals.private, ", of each alone")
    rows.extend(_private_parts(audit, "    ") if has_parts else ())
    add("  shared between them", totals.cow_shared, ", since they were forked, once")
    if audit.group.own_shared.bytes:
        add("  shared memory of their own", audit.group.own_shared, ", once")
        rows.extend(memory_file_facts(audit.memory_files) if has_parts else ())
    add("  kernel memory", totals.kernel, ": page tables, stacks, objects" if has_parts else "")
    add("files and shared memory", totals.shared_once, ", once")
    return Facts(tuple(rows))


def members_table(audit: Audit, top: int = 0) -> Table:
    """List the processes of a group: the `top` dearest ones and the sums of the others, 0 for all as they came."""

    def cost(member: GroupMember) -> int:
        return -(member.totals.per_process.bytes or 0)

    rows = []
    shown, rest = cut_at(sorted(audit.members, key=cost) if top else audit.members, top)
    for member in shown:
        totals = member.totals
        rows.append(
            (
                str(member.pid),
                _size(totals.private.bytes),
                _size(totals.cow_shared.bytes),
                _size(totals.kernel.bytes),
                _size(totals.per_process.bytes),
                shortened(member.command, _LONGEST_COMMAND if top else 80),
            )
        )
    of_rest = [group.totals for group in rest]
    columns_of_rest = zip(*((t.private, t.cow_shared, t.kernel, t.per_process) for t in of_rest), strict=True)
    sums = [_size(sum(total.bytes or 0 for total in totals)) for totals in columns_of_rest]
    footer = (("", *sums, f"[{len(rest):,} more: -v shows all]"),) if rest else ()
    columns = ("pid", "private", "COW-shared", "kernel", "per process", "command")
    return Table(columns, tuple(rows), frozenset(), footer)


def _size(size_bytes: int | None) -> str:
    return format_bytes(size_bytes) if size_bytes else "-"


def heap_blocks(audit: Audit, names: Names, top: int) -> list[Block]:
    """Show who asked for the heap, where a profile says it."""
    if audit.heap is None:
        return []
    from footprint.verbs.audit.heap_account_text import heap_account_blocks  # noqa: PLC0415 # few audits have one

    is_measured = audit.totals.private.bytes is not None
    sums = sum_rows([row for row in audit.ledger if row.owner == NAMELESS])
    nameless_bytes = sums.private_bytes if is_measured else sums.writable_bytes
    return heap_account_blocks(
        audit.heap, audit.allocator, names, top, nameless_bytes=nameless_bytes, is_measured=is_measured
    )


def _allocator(audit: Audit) -> list[Block]:
    if audit.allocator is None:
        return []

    return allocator_blocks(audit.allocator)


def _findings(audit: Audit, *, is_verbose: bool) -> list[Block]:
    if not audit.findings:
        return []
    from footprint.formats.finding_blocks import finding_blocks  # noqa: PLC0415 # few audits of processes have them

    return finding_blocks(audit.findings, audit.count, {program_path(audit)}, is_verbose=is_verbose)


def _reasons(projection: Projection) -> list[Block]:
    """Show how the N start, if that was seen."""
    if not projection.reasons:
        return []
    return [Paragraph(f"Projected as a forked worker: {', and '.join(projection.reasons)}.")]


def title(audit: Audit) -> str:
    """Return what is audited, in one line."""
    pid = f"process {audit.pid}" if audit.pid is not None else audit.target
    command = audit.command if len(audit.command) <= 60 else audit.command[:57] + "..."
    return f"footprint audit: {pid}{'  ' + command if command else ''}"


def _is_prediction(audit: "Audit") -> bool:
    return audit.source == "prediction"


def origin(audit: "Audit") -> str:
    """Describe what was read, when and where."""
    saved = "" if audit.saved_in is None else f"Saved in {audit.saved_in}. "
    if _is_prediction(audit):
        mappings = counted(audit.mapping_count, "mapping")
        return f"{saved}Predicted from its files, nothing was run: {mappings} at its start."
    when = "now" if audit.saved_in is None else "then"
    origin = saved + (
        f"Read from {'its' if audit.noun == 'process' else 'their'} {audit.source} {when}"
        if audit.is_live
        else f"Read from {audit.target}, a text of {audit.source}"
    )
    kernel = f", Linux {audit.host['kernel']} {audit.host['machine']}" if audit.host else ""
    return f"{origin}{kernel}: {counted(audit.mapping_count, 'mapping')}."


def cost_heading(audit: Audit) -> str:
    """Return what the figures of one process are: its cost, or the part of it that is known."""
    if audit.totals.per_process.bytes is not None:
        return "One process costs"
    return "One process holds" if audit.totals.private.bytes is not None else "One process maps"


def totals_facts(audit: Audit, *, has_parts: bool = True) -> Facts:
    """Show what a process costs; `has_parts` for what its private memory consists of, and for all that it maps."""
    totals = audit.totals
    rows: list[tuple[str, str, str]] = []

    def add(label: str, total: Total, remark: str = "") -> None:
        if total.bytes is not None:
            rows.append((label, format_bytes(total.bytes), f"{total.evidence.value}{remark}"))

    add("per process", totals.per_process)
    is_part = totals.per_process.bytes is not None
    add("  private memory" if is_part else "private memory", totals.private)
    if has_parts:
        rows.extend(_private_parts(audit, "    " if is_part else "  "))
        add("    its objects at start (startup minimum)", totals.startup_min)
        add("    its objects, all written (startup maximum)", totals.startup_max)
        rows.extend(
            ("  " + (row.name or "").strip("[]"), format_bytes(row.bytes or 0), row.evidence.value)
            for row in audit.ledger
            if row.kind is MemoryKind.KERNEL
        )
    else:
        add("  kernel memory", totals.kernel, ": page tables, stacks, objects")
    own_shared_bytes = totals.of_which.own_shared_bytes
    if own_shared_bytes:
        rows.append(("  shared memory of its own", format_bytes(own_shared_bytes), "derived: each copy makes its own"))
        rows.extend(memory_file_facts(audit.memory_files) if has_parts else ())
    if totals.shared_once.bytes is not None:
        add("shared, once per machine", totals.shared_once._replace(bytes=totals.shared_once.bytes - own_shared_bytes))
    if totals.cow_shared.bytes:
        add("COW-shared", totals.cow_shared)
    rows.extend(list(_of_which(totals.of_which))[: None if has_parts else _MOST_OF_WHICH])

    def says(pmap: str, total: Total, what: str = "") -> str:
        # Of a process that is not there, pmap says nothing.
        what = what if has_parts or audit.totals.private.bytes is None else ""
        return "" if _is_prediction(audit) else f", {pmap}: {(total.bytes or 0) // 1024}K{what}"

    add("mapped writable", totals.mapped_writable, says("pmap -d", totals.mapped_writable, " writeable/private"))
    if (totals.mapped_shared.bytes and has_parts) or totals.private.bytes is None:
        add("mapped shared", totals.mapped_shared, says("pmap -d", totals.mapped_shared, " shared"))
    if has_parts or totals.private.bytes is None:
        add("mapped", totals.mapped, says("pmap", totals.mapped))
    return Facts(tuple(rows))


def _private_parts(audit: Audit, indent: str) -> Iterable[tuple[str, str, str]]:
    """Describe what the private memory of a process or a group is made of; the parts add up to it."""
    private_bytes = audit.totals.private.bytes
    if not private_bytes or _is_prediction(audit):
        return []
    parts = kind_parts(audit.ledger)
    return [
        (f"{indent}{_PARTS[part.part]}", format_bytes(part.bytes), f"{part.bytes / private_bytes:.1%} of it")
        for part in parts
        if part.part in _PARTS
    ]


def memory_file_facts(files: Iterable[MemoryFileCost]) -> list[tuple[str, str, str]]:
    """Describe which files in memory are part of the cost: the largest ones, and the sum of the others."""
    kept = sorted([file for file in files if file.own_bytes], key=lambda file: -file.own_bytes)
    facts = []
    for usage in kept[:_MOST_MEMORY_FILES]:
        holds = ((usage.mapping_count, "mapping"), (usage.descriptor_count, "descriptor"))
        held_by = ", ".join(counted(count, noun) for count, noun in holds if count)
        name = shortened(file_name(usage.owner), _LONGEST_FILE_CHARS)
        facts.append((f"    {name}", format_bytes(usage.own_bytes), f"{usage.evidence}: {held_by}"))
    if others := kept[_MOST_MEMORY_FILES:]:
        facts.append((f"    {len(others)} more", format_bytes(sum(other.own_bytes for other in others)), ""))
    return facts


def _of_which(special: OfWhich) -> Iterable[tuple[str, str, str]]:
    """Describe which figures need an explanation, if there is such memory."""
    lines = (
        ("swapped out", special.swapped_bytes, "in private memory"),
        ("free for the kernel to take", special.lazy_free_bytes, "in private memory (LazyFree)"),
        ("locked", special.locked_bytes, "in memory that is never swapped"),
        ("in transparent huge pages", special.huge_page_bytes, "in private memory"),
        ("merged by KSM", special.ksm_bytes, "with equal pages"),
        ("huge pages, private", special.hugetlb_private_bytes, "of the reserved pool, in no total"),
        ("huge pages, shared", special.hugetlb_shared_bytes, "of the reserved pool, in no total"),
    )
    return [(f"  {label}", format_bytes(size_bytes), remark) for label, size_bytes, remark in lines if size_bytes]


def _subject(projection: Projection) -> str:
    """Name the N: `10,000 processes`, `One worker`."""
    if projection.count != 1:
        return f"{projection.count:,} {projection.model.nouns[1]}"
    if projection.basis is Basis.STARTED_COPY:
        return "One more started copy"
    return {Model.EXEC: "One process", Model.FORK: "One worker", Model.THREADS: "One more thread"}[projection.model]


def cost_at_count(audit: Audit, *, has_terms: bool = True) -> list[Block]:
    """Show what N cost, or how many fit, and every term that the cost of one process does not list, if N is asked."""
    projection = audit.projection
    is_asked = (
        projection.basis is Basis.STARTED_COPY
        or projection.count > 1
        or projection.model is not Model.EXEC
        or bool(projection.limits)
    )
    once = f" + {format_bytes(projection.shared_once_bytes)} once" if projection.shared_once_bytes else ""
    # What all pay once is of another kind than what each costs.
    kind, comma, restriction = projection.basis.phrase.partition(",")
    noun = projection.model.nouns[1]
    sum_text = f"{projection.count:,} x {format_bytes(projection.per_process_bytes)}{kind}{once}"
    blocks: list[Block] = []
    if projection.limits:
        room = "" if projection.memory_bytes is None else f" into {format_bytes(projection.memory_bytes)}"
        blocks.append(Heading(f"How many fit{room}"))
        first = f"; first hit: {projection.limits[0].name}" if len(projection.limits) > 1 else ""
        fits = (noun, f"{projection.count:,}", f"{projection.evidence.value}{comma}{restriction}{first}")
        cost = ("their cost", format_bytes(projection.total_bytes), sum_text)
        files = [term for term in projection.terms if term.name == FILES_TERM]
        cache = [("  page cache", format_bytes(file.size_bytes), cache_remark(projection.limits)) for file in files]
        blocks.append(Facts((fits, cost, *cache)))
        blocks.extend(limit_blocks(projection.limits, noun))
    elif is_asked:
        blocks.append(Heading(f"{_subject(projection)} {'costs' if projection.count == 1 else 'cost'}"))
        remark = f"{projection.evidence.value}: {sum_text}{comma}{restriction}"
        blocks.append(Facts((("in all", format_bytes(projection.total_bytes), remark),)))
    # A single term is in the sum already.
    if has_terms and is_asked and len(projection.terms) > 1:
        blocks.extend(_terms(projection, {(label.strip(), figure) for label, figure, _ in totals_facts(audit).rows}))
    return [*blocks, *_points(projection)]


def _terms(projection: Projection, shown: set[tuple[str, str]]) -> list[Block]:
    """List what each pays and what all pay once, but for lists of which every term and figure is shown already."""
    blocks: list[Block] = []
    for is_once, heading in ((False, "Each pays"), (True, "All pay once")):
        rows = tuple(
            (term.name, format_bytes(term.size_bytes), term.evidence.value)
            for term in projection.terms
            if term.is_once is is_once
        )
        if not shown.issuperset(
            ("shared, once per machine" if name == FILES_TERM else name, size) for name, size, _ in rows
        ):
            blocks += [Heading(heading), Facts(rows)]
    return blocks


def _points(projection: Projection) -> list[Block]:
    blocks: list[Block] = []
    if projection.points:
        rows = tuple(
            (
                point.name,
                format_bytes(point.each_bytes),
                f"{point.evidence.value}: {format_bytes(point.total_bytes)} for all"
                if projection.count != 1 or projection.model is Model.FORK
                else point.evidence.value,
            )
            for point in projection.points
        )
        life = "A worker in its life" if projection.model is Model.FORK else "From its start to full use, heap apart"
        blocks += [Heading(life), Facts(rows)]
    return blocks


def verdict(audit: Audit, names: Names) -> Verdict:
    """Return the result in one line."""
    return Verdict(_verdict(audit) + _heap_verdict(audit, names))


def _verdict(audit: Audit) -> str:
    projection = audit.projection
    basis = projection.basis.phrase
    noun = projection.model.nouns[1]
    if _is_prediction(audit):
        basis = f"{basis} at {'its' if projection.count == 1 else 'their'} start"
    cost = format_bytes(projection.per_process_bytes)
    if projection.limits:
        first = projection.limits[0]
        is_memory = first.unit is LimitUnit.BYTES and projection.memory_bytes == first.most
        fits = f"1 {projection.model.nouns[0]} fits" if projection.count == 1 else f"{projection.count:,} {noun} fit"
        fit = f"{fits} " + (f"into {format_bytes(first.most)}" if is_memory else f"before {first.name} is hit")
        return f"{fit}, at {cost} each{basis} ({projection.evidence.value})."
    if projection.count == 1:
        return f"{_subject(projection)} costs {cost}{basis} ({projection.evidence.value})."
    total = format_bytes(projection.total_bytes)
    return f"{projection.count:,} {noun} cost {total}, {cost} each{basis} ({projection.evidence.value})."


def _heap_verdict(audit: Audit, names: Names) -> str:
    """Describe how much of the cost is heap, and who asked for most of it, where a profile says it."""
    heap = audit.heap
    if heap is None or not heap.total_bytes:
        return ""
    first = next((share for share in heap.shares if not share.owner.startswith("[")), None)
    largest = ""
    if first is not None:
        function = shortened(names.symbol(first.function), _LONGEST_FUNCTION)
        largest = f"; {function} of {names.owner(first.owner)} asked for the most, {format_bytes(first.size_bytes)}"
    return f" {format_bytes(heap.total_bytes)} of each is heap{largest}."


def _together(groups: Sequence[RowSums]) -> RowSums:
    return RowSums(*map(sum, zip(*groups, strict=True))) if groups else RowSums(0, 0, 0, 0)


def ledger_heading(audit: Audit, by: str) -> str:
    """Return the heading of the table of owners, or of what else the ledger is grouped by."""
    what = "private memory" if audit.totals.private.bytes is not None else "mapped writable memory"
    return f"Where the {what} is, by {by}"


def ledger_table(
    rows: Iterable[Row],
    by: str,
    top: int,
    names: Names,
    *,
    is_virtual: bool,
    has_shared: bool = True,
    source_of: "SourceOf | None" = None,
) -> Table:
    """Group a ledger; where only virtual sizes are known, by what is writable."""
    if source_of is None:
        group_of = GROUPINGS[by]
    else:
        from footprint.attribution.source_groups import key_of_source  # noqa: PLC0415 # few answers are grouped so

        group_of = partial(key_of_source, source_of=source_of)
    kernel = MemoryKind.KERNEL
    groups: dict[_Key, list[Row]] = {}
    for row in rows:
        if row.kind is not kernel:
            groups.setdefault(group_of(row), []).append(row)

    def own_bytes(sums: RowSums) -> int:
        return sums.writable_bytes if is_virtual else sums.private_bytes

    def cells(sums: RowSums, label: str) -> tuple[str, ...]:
        share = f"{own_bytes(sums) / whole_bytes:.1%}" if whole_bytes else ""
        sizes = (own_bytes(sums), sums.mapped_bytes, *((sums.shared_bytes,) if has_shared and not is_virtual else ()))
        first, *others = (format_bytes(size) if size else "-" for size in sizes)
        return (first, share, *others, label)

    ordered = [(key, sum_rows(group)) for key, group in groups.items()]
    ordered.sort(key=lambda item: (-own_bytes(item[1]), -item[1].mapped_bytes, item[0]))
    total = _together([sums for _, sums in ordered])
    whole_bytes = own_bytes(total)
    shown, left_out = cut_at(ordered, top)
    assumed = {key for key, _ in shown if _is_assumed(groups[key])}
    shown_rows = tuple(cells(sums, _label(key, names) + (" *" if key in assumed else "")) for key, sums in shown)
    columns = ("writable", "of writable", "mapped") if is_virtual else ("private", "of private", "mapped", "shared")
    columns = columns if has_shared else columns[:3]
    footer = [cells(_together([sums for _, sums in left_out]), more(len(left_out)))] if left_out else []
    footer.append(cells(total, "[total]"))
    mark = " (* assumed from its place)" if assumed else ""
    return Table((*columns, by + mark), shown_rows, frozenset(), tuple(footer))


def _is_assumed(rows: Sequence[Row]) -> bool:
    """Return whether an owner is only likely: of its private bytes, or of its address space where it has none."""
    if not any(attribution.is_assumed for attribution in set(map(_ATTRIBUTION, rows))):
        return False
    costly = [row for row in rows if row.bytes != 0]
    return any(attribution.is_assumed for attribution in set(map(_ATTRIBUTION, costly or rows)))


def _label(key: _Key, names: Names) -> str:
    owner, *rest = key
    return "  ".join(dict.fromkeys(part for part in (names.owner(owner), *map(names.symbol, rest)) if part))


def _symbols(audit: Audit, by: str, top: int, names: Names) -> list[Block]:
    """List the variables that cost most: by what they keep private alone, or by their own bytes where that is more."""
    # What functions asked for is no variable.
    named = [row for row in audit.ledger if row.symbol is not None and row.bytes and row.kind is not MemoryKind.HEAP]
    if not named or by == "symbol":
        return []
    page_bytes = audit.page_bytes

    def order(row: Row) -> tuple[int, str, str]:
        # A page that relocations write is private with or without the variable.
        alone_bytes = 0 if row.relocated_bytes else row.sole_pages * page_bytes
        return -max(alone_bytes, row.bytes or 0), row.owner, row.symbol or ""

    shown = nsmallest(top, named, order) if top else sorted(named, key=order)
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
    named_bytes = sum([row.bytes or 0 for row in named])
    rest_bytes = named_bytes - sum([row.bytes or 0 for row in shown])
    rest = len(named) - len(shown)
    more = f"[{rest} more variables: --top 0 shows all]"
    footer = ((format_bytes(rest_bytes), "", "", "", "", more),) if rest else ()
    columns = ("private", "pages", "alone", "size", "section", "variable")
    heading = f"Variables in private pages, {format_bytes(named_bytes)}; alone: pages that nothing else named lies in"
    return [Heading(heading), Table(columns, rows, frozenset({4}), footer)]


def _is_loader(owner: str) -> bool:
    name = owner.rsplit("/", 1)[-1]
    return name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so", "ld-2."))


def _causes(audit: Audit) -> list[Block]:
    """Show why the private pages of files were written, as far as the files show it."""
    if _is_prediction(audit):
        return _predicted_causes(audit)
    is_told = False
    relocated_bytes = loader_bytes = sealed_bytes = written_bytes = 0
    loaders = {owner for owner in {row.owner for row in audit.ledger} if _is_loader(owner)}
    for row in audit.ledger:
        private_bytes, of_relocations_bytes = row.bytes, row.relocated_bytes
        if private_bytes and of_relocations_bytes is not None:
            is_told = True
            relocated_bytes += of_relocations_bytes
            if row.owner in loaders:
                loader_bytes += private_bytes - of_relocations_bytes
            elif row.is_writable:
                written_bytes += private_bytes - of_relocations_bytes
            else:
                sealed_bytes += private_bytes - of_relocations_bytes
    if not is_told:
        return []
    facts = (
        ("pages with relocations", format_bytes(relocated_bytes), "written by the loader at start"),
        ("pages of the loader itself", format_bytes(loader_bytes), "written by the loader"),
        ("other sealed pages", format_bytes(sealed_bytes), "written before they were made read-only (RELRO)"),
        ("other writable pages", format_bytes(written_bytes), "written by the program"),
    )
    return [Heading("Why pages of files are private"), Facts(facts)]


def _predicted_causes(audit: Audit) -> list[Block]:
    """Show why pages of files would be written; no part of the program has run yet."""
    rows = [row for row in audit.ledger if row.kind in OF_OBJECTS and row.bytes]
    relocated_bytes = sum([row.relocated_bytes or 0 for row in rows])
    other_bytes = sum([row.bytes or 0 for row in rows]) - relocated_bytes
    facts = (
        (
            "pages with relocations",
            format_bytes(relocated_bytes),
            "each holds addresses that depend on where it is loaded",
        ),
        (
            "other pages",
            format_bytes(other_bytes),
            "the loader's notes, the start of .bss, first steps of the C library",
        ),
    )
    return [Heading("Why pages of files will be private"), Facts(facts)]
