"""The report of `footprint audit` for several processes."""

from footprint.attribution.source_groups import SourceOf
from footprint.formats.document import Block, Document, Facts, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import shortened
from footprint.formats.sections.debug_files import debug_file_blocks
from footprint.formats.sections.names import Names
from footprint.formats.sections.notes import note_blocks
from footprint.model.group import Group
from footprint.model.totals import Total
from footprint.units import counted, format_bytes
from footprint.verbs.audit.family_text import family_blocks, family_verdict
from footprint.verbs.audit.text import ledger_table, origin

__all__ = ("group_document", "group_projection_document")


def group_document(
    group: Group,
    *,
    by: str = "owner",
    top: int = 20,
    has_whole_names: bool = False,
    source_of: SourceOf | None = None,
) -> Document:
    """Write where the memory of several processes goes, with what they share counted once."""
    names = Names((row.owner for row in group.ledger), is_whole=has_whole_names)
    return (
        Heading(f"footprint audit: {counted(len(group.members), 'process')}  {group.target}"),
        Paragraph(origin(group)),
        Heading("Together they cost"),
        _totals(group),
        *family_blocks(group),
        Heading("Each for itself"),
        _members(group),
        Heading(f"Where the private memory of all is, by {by}"),
        ledger_table(
            group.ledger,
            by,
            top,
            names,
            is_virtual=group.private.bytes is None,
            has_shared=False,
            source_of=source_of,
        ),
        *_findings(group, is_verbose=has_whole_names),
        *debug_file_blocks(group.debug_files, names, is_whole=has_whole_names),
        *note_blocks(group.notes),
        Verdict(family_verdict(group)),
    )


def _findings(group: Group, *, is_verbose: bool) -> list[Block]:
    if not group.findings:
        return []
    from footprint.formats.sections.findings import finding_blocks  # noqa: PLC0415 # few groups have them

    return finding_blocks(group.findings, group.count, is_verbose=is_verbose)


def group_projection_document(group: Group) -> Document:
    """Write what many groups cost, or how many fit."""
    return (
        Heading(f"footprint project: {counted(len(group.members), 'process')}"),
        Heading("Together they cost"),
        _totals(group),
        *family_blocks(group),
        *note_blocks(group.notes),
        Verdict(family_verdict(group)),
    )


def _totals(group: Group) -> Facts:
    rows: list[tuple[str, str, str]] = []

    def add(label: str, total: Total, remark: str = "") -> None:
        figure = "unknown" if total.bytes is None else format_bytes(total.bytes)
        rows.append((label, figure, total.evidence.value + remark))

    add("together", group.per_group)
    add("  private memory", group.private, ", of each alone")
    add("  shared between them", group.shared_between, ", since they were forked, once")
    if group.own_shared.bytes:
        add("  shared memory of their own", group.own_shared, ", once")
    add("  kernel memory", group.kernel, ": page tables, stacks, objects")
    add("files and shared memory", group.shared_once, ", once")
    return Facts(tuple(rows))


def _members(group: Group) -> Table:
    rows = []
    for member in group.members:
        totals = member.totals
        rows.append(
            (
                str(member.pid),
                _size(totals.private.bytes),
                _size(totals.cow_shared.bytes),
                _size(totals.kernel.bytes),
                _size(totals.per_process.bytes),
                shortened(member.command, 80),
            )
        )
    return Table(("pid", "private", "COW-shared", "kernel", "per process", "command"), tuple(rows))


def _size(size_bytes: int | None) -> str:
    return format_bytes(size_bytes) if size_bytes else "-"
