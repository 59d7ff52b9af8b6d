"""The JSON of an audit: what `audit` prints, and what a saved audit is."""

from typing import TYPE_CHECKING, Annotated, Literal

from footprint.errors import Note
from footprint.formats.audit_rows import (
    DebugFile,
    ProcessTotals,
    SourceCost,
    debug_file_rows,
    parts_of,
    process_target,
    process_totals,
    shown_names,
    shown_rows,
    source_costs,
)
from footprint.formats.finding_rows import FailedFinding, finding_rows
from footprint.formats.page_maps_json import PageMapRow, page_map_rows
from footprint.json.answer import Envelope, Json, LargeTable, Tool, in_memory, write
from footprint.json.codec import Columns, encode, encode_columns, shape_of
from footprint.members import ABSENT, LATER, Absent, Later, dataclass
from footprint.model.audit import Audit, ProcessTarget
from footprint.model.costs import MappingCost, MemoryFileCost, ObjectCost
from footprint.model.finding import Finding, SearchedRule
from footprint.model.heap_account import AllocatorAccount, HeapAccount
from footprint.model.projection import Projection
from footprint.model.row import Row
from footprint.model.run_failure import RunFailure
from footprint.model.totals import KindPart

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf


@dataclass(frozen=True, kw_only=True)
class AuditJson(Envelope):
    """The audit of one process or program.

    The `bytes` of all rows of `ledger` but those of kind `kernel` add up to `private_bytes`, those of kind `kernel` to
    `kernel_bytes`. `mapped_bytes` adds up to `mapped_bytes`, over the rows with `is_writable` to
    `mapped_writable_bytes`; `shared_bytes` adds up to `shared_once_bytes`.

    Attributes:
        target: The process or program.
        totals: The figures of the whole.
        ledger: The rows that add up to the totals.
        sources: The same but for kind `kernel`, by source file, folder or component; the member is absent without `--by
            file`, `dir` or `component`.
        parts: What the cost is made of, by kind of memory: the `bytes` add up to `per_process_bytes`, or where that is
            not known to `private_bytes`. The member is absent where only virtual sizes are known.
        projection: The cost of as many processes as were asked about.
        findings: What the process could do without.
        debug_files: The files that the names of stripped owners are from.
        searched_rules: The rules that were run; empty where none was, and in files of earlier versions.
        objects: The files of the process in load order, with what leaves with each; empty for a process that was
            neither searched for findings nor saved in a file.
        heap_account: What the heap is made of, by an allocator profile; null where none was joined.
        allocator: The heap as the allocator of the process accounts for it; null where it was not read.
        page_maps: The pages of objects one by one, for the report of a saved audit. The member is absent where no file
            of an object could be read, in what `run` saves, and in baselines.
        mappings: The mappings with private bytes, of each owner, the largest first: at most 1,000. What an owner has
            in others is one row for each kind of memory, so the `bytes` and the `mapped_bytes` of an owner add up to
            those of its rows in `ledger`, if no allocator profile was joined. The member is absent of a program, where
            private bytes are not known, in what `run` saves, and in baselines.
        memory_files: What the files in memory cost that it maps or holds open. Their `own_bytes` add up to
            `own_shared_bytes`. The member is absent where there is none.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
        run_failures: How the program failed that was run for this audit; the member is absent if it did not, and in
            what `run` saves, where it is in `run`.
    """

    verb: Annotated[Literal["audit"], Later("audit")] = "audit"
    target: ProcessTarget
    totals: ProcessTotals
    ledger: tuple[Row, ...]
    sources: tuple[SourceCost, ...] | Absent = ABSENT
    parts: tuple[KindPart, ...] | Absent = ABSENT
    projection: Projection
    findings: tuple[Finding, ...]
    debug_files: Annotated[tuple[DebugFile, ...], Later(())]
    searched_rules: Annotated[tuple[SearchedRule, ...], Later(())]
    objects: Annotated[tuple[ObjectCost, ...], Later(())]
    heap_account: Annotated[HeapAccount | None, LATER]
    allocator: Annotated[AllocatorAccount | None, LATER]
    page_maps: tuple[PageMapRow, ...] | Absent = ABSENT
    mappings: tuple[MappingCost, ...] | Absent = ABSENT
    memory_files: tuple[MemoryFileCost, ...] | Absent = ABSENT
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT
    run_failures: tuple[RunFailure, ...] | Absent = ABSENT


def audit_json(audit: Audit, version: str) -> str:
    """Write an audit."""
    return write(written_members(audit, version))


def audit_members(audit: Audit, version: str) -> Json:
    """Return the members of an audit."""
    return in_memory(written_members(audit, version))


def written_members(audit: Audit, version: str, source_of: "SourceOf | None" = None) -> Json:
    """Return the members of an audit as they are written: of one process, without an object for each row."""
    if audit.is_group:
        from footprint.formats.group_json import group_answer  # noqa: PLC0415 # few audits are of groups

        return encode(group_answer(audit, version, source_of))
    members = encode(_answer(audit, version, (), source_of))
    ledger, shape = shown_rows(audit.ledger), shape_of(Row)
    members["ledger"] = LargeTable(lambda: [list(shape.write(ledger))], lambda: [shape.texts(ledger)])
    return members


def audit_columns(audit: Audit, version: str) -> Json:
    """Return the members of an audit, its tables by columns."""
    if audit.is_group:
        from footprint.formats.group_json import group_answer  # noqa: PLC0415 # few audits are of groups

        return encode_columns(group_answer(audit, version))
    encoded = encode_columns(_answer(audit, version, audit.ledger))
    if audit.ledger:
        keys, cells = encoded["ledger"]
        shown = dict(zip(keys, cells, strict=True)) | {"name": shape_of(str | None).write(shown_names(audit.ledger))}
        encoded["ledger"] = Columns(keys, tuple(shown.values()))
    return encoded


def audit_answer(audit: Audit, version: str) -> AuditJson:
    """Return the answer that the audit of one process is."""
    return _answer(audit, version, shown_rows(audit.ledger))


def _answer(audit: Audit, version: str, ledger: tuple[Row, ...], source_of: "SourceOf | None" = None) -> AuditJson:
    return AuditJson(
        tool=Tool("footprint", version),
        host=audit.host,
        target=process_target(audit),
        totals=process_totals(audit.totals),
        parts=parts_of(audit),
        ledger=ledger,
        sources=source_costs(audit.ledger, source_of),
        projection=audit.projection,
        findings=finding_rows(audit.findings, audit.projection.count, audit.ledger),
        searched_rules=audit.searched_rules,
        debug_files=debug_file_rows(audit.debug_files),
        objects=audit.objects,
        heap_account=audit.heap,
        allocator=audit.allocator,
        page_maps=page_map_rows(audit.page_maps) if audit.page_maps else ABSENT,
        mappings=audit.mappings or ABSENT,
        memory_files=audit.memory_files or ABSENT,
        notes=audit.notes,
        run_failures=audit.run_failures or ABSENT,
    )
