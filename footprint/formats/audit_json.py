"""The JSON of an audit of one process or program: what `audit` prints, and what a saved audit is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, get_args

from footprint.attribution.source_groups import key_of_source
from footprint.elf import shown_name
from footprint.errors import Note
from footprint.formats.codec import Columns, encode, encode_columns, like, shape_of
from footprint.formats.finding_rows import FailedFinding, FindingRow, finding_rows
from footprint.formats.heap_account_json import HeapAccountMembers, heap_account_members
from footprint.formats.json import Envelope, Json, Tool, write
from footprint.formats.page_maps_json import PageMapRow, page_map_rows
from footprint.members import ABSENT, LATER, Absent, Later
from footprint.model.allocator_account import AllocatorAccount
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence
from footprint.model.finding import SearchedRule
from footprint.model.mapping_cost import MappingCost
from footprint.model.object_cost import ObjectCost
from footprint.model.projection import Projection
from footprint.model.row import MemoryKind, Row, sum_rows
from footprint.model.run_failure import RunFailure
from footprint.model.totals import OfWhich, Totals
from footprint.records import records

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf
    from footprint.model.audited import Audited

__all__ = (
    "AuditJson",
    "DebugFile",
    "ProcessTarget",
    "ProcessTotals",
    "SourceCost",
    "TotalName",
    "audit_answer",
    "audit_columns",
    "audit_json",
    "audit_members",
    "debug_file_rows",
    "process_target",
    "process_totals",
    "shown_rows",
    "source_costs",
)


class ProcessTarget(NamedTuple):
    """The process, program or group that an answer is about.

    Attributes:
        name: The target, as the user named it.
        pid: The process; null where it is not known, and for a group.
        command: The command line or the name of the process, of a group that of the first.
        source: What was read: `smaps`, `pmap -d`, `prediction`, ...
        is_live: Whether it was read from a running process.
        mapping_count: The number of mappings.
        page_bytes: The size of a page.
    """

    name: str
    pid: int | None
    command: str
    source: str
    is_live: bool
    mapping_count: int
    page_bytes: int


TotalName = Literal[
    "private_bytes",
    "kernel_bytes",
    "per_process_bytes",
    "shared_once_bytes",
    "shared_with_relatives_bytes",
    "mapped_writable_bytes",
    "mapped_shared_bytes",
    "mapped_bytes",
    "floor_bytes",
    "ceiling_bytes",
]


class ProcessTotals(NamedTuple):
    """The figures of a whole process; null where the input cannot tell.

    Attributes:
        evidence: How each figure that is not null is known.
        of_which: Kinds of memory in these figures that behave in their own way.
    """

    private_bytes: int | None
    kernel_bytes: int | None
    per_process_bytes: int | None
    shared_once_bytes: int | None
    shared_with_relatives_bytes: int | None
    mapped_writable_bytes: int | None
    mapped_shared_bytes: int | None
    mapped_bytes: int | None
    floor_bytes: int | None
    ceiling_bytes: int | None
    evidence: Mapping[TotalName, Evidence]
    of_which: OfWhich


class DebugFile(NamedTuple):
    """The file that has the symbols of a stripped object.

    Attributes:
        owner: The object, as the ledger has it.
        file: The file that the names of its variables are from.
    """

    owner: str
    file: str


class SourceCost(NamedTuple):
    """The memory of the variables that the source files of one group declare: one file, folder or component.

    Attributes:
        source: The group; null for memory whose source file is not known.
        owner: The object or the name in brackets that such memory belongs to; null where `source` is known.
        name: What that memory is, or why its source file is not known; null where `source` is known.
        bytes: Private bytes; null where only virtual sizes are known.
        mapped_bytes: Virtual size.
        shared_bytes: Resident bytes that are paid once per machine; null where unknown.
    """

    source: str | None
    owner: str | None
    name: str | None
    bytes: int | None
    mapped_bytes: int
    shared_bytes: int | None


def source_costs(ledger: Iterable[Row], source_of: "SourceOf | None") -> tuple[SourceCost, ...] | Absent:
    """Add up a ledger, but for memory of the kernel, by groups of source files; the most private bytes first."""
    if source_of is None:
        return ABSENT
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in ledger:
        if row.kind is not MemoryKind.KERNEL:
            groups.setdefault(key_of_source(row, source_of), []).append(row)
    found = []
    for (owner, label), rows in groups.items():
        source, name = (None, label) if owner else (label, None)
        sums = sum_rows(rows)
        private_bytes = None if all(row.bytes is None for row in rows) else sums.private_bytes
        shared_bytes = None if all(row.shared_bytes is None for row in rows) else sums.shared_bytes
        found.append(SourceCost(source, owner or None, name, private_bytes, sums.mapped_bytes, shared_bytes))
    return tuple(sorted(found, key=lambda one: (-(one.bytes or 0), -one.mapped_bytes, one.source or "", str(one))))


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
        projection: The cost of as many processes as were asked about.
        findings: What the process could do without.
        debug_files: The files that the names of stripped owners are from.
        searched_rules: The rules that were run; empty where none was, and in files of earlier versions.
        objects: The files of the process in load order, with what leaves with each; empty for a process that was
            neither searched for findings nor saved in a file.
        heap_account: What the heap is made of, by an allocator profile; null where none was joined.
        allocator: The heap as the allocator of a live process accounts for it; null where it was not read.
        page_maps: The pages of objects one by one, for the report of a saved audit. The member is absent where no file
            of an object could be read, in what `run` saves, and in baselines.
        mappings: The mappings with private bytes, of each owner, the largest first: at most 1,000. What an owner has
            in others is one row for each kind of memory, so the `bytes` and the `mapped_bytes` of an owner add up to
            those of its rows in `ledger`, if no allocator profile was joined. The member is absent of a program, where
            private bytes are not known, in what `run` saves, and in baselines.
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
    projection: Projection
    findings: tuple[FindingRow, ...]
    debug_files: Annotated[tuple[DebugFile, ...], Later(())]
    searched_rules: Annotated[tuple[SearchedRule, ...], Later(())]
    objects: Annotated[tuple[ObjectCost, ...], Later(())]
    heap_account: Annotated[HeapAccountMembers | None, LATER]
    allocator: Annotated[AllocatorAccount | None, LATER]
    page_maps: tuple[PageMapRow, ...] | Absent = ABSENT
    mappings: tuple[MappingCost, ...] | Absent = ABSENT
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT
    run_failures: tuple[RunFailure, ...] | Absent = ABSENT


def audit_json(audit: Audit, version: str) -> str:
    """Write an audit."""
    return write(audit_members(audit, version))


def audit_members(audit: Audit, version: str, source_of: "SourceOf | None" = None) -> Json:
    """Return the members of an audit."""
    return encode(audit_answer(audit, version, source_of))


def audit_columns(audit: Audit, version: str) -> Json:
    """Return the members of an audit, its tables by columns."""
    found = encode_columns(_answer(audit, version, audit.ledger))
    if audit.ledger:
        keys, cells = found["ledger"]
        shown = dict(zip(keys, cells, strict=True)) | {"name": shape_of(str | None).write(_shown_names(audit.ledger))}
        found["ledger"] = Columns(keys, tuple(shown.values()))
    return found


def audit_answer(audit: Audit, version: str, source_of: "SourceOf | None" = None) -> AuditJson:
    """Return the answer that an audit is."""
    return _answer(audit, version, shown_rows(audit.ledger), source_of)


def _answer(audit: Audit, version: str, ledger: tuple[Row, ...], source_of: "SourceOf | None" = None) -> AuditJson:
    return AuditJson(
        tool=Tool("footprint", version),
        host=audit.host,
        target=process_target(audit),
        totals=process_totals(audit.totals),
        ledger=ledger,
        sources=source_costs(audit.ledger, source_of),
        projection=audit.projection,
        findings=finding_rows(audit.findings, audit.projection.count, audit.ledger),
        searched_rules=audit.searched_rules,
        debug_files=debug_file_rows(audit.debug_files),
        objects=audit.objects,
        heap_account=None if audit.heap is None else heap_account_members(audit.heap),
        allocator=audit.allocator,
        page_maps=page_map_rows(audit.page_maps) if audit.page_maps else ABSENT,
        mappings=audit.mappings or ABSENT,
        notes=audit.notes,
        run_failures=audit.run_failures or ABSENT,
    )


def process_target(audit: "Audited") -> ProcessTarget:
    """Return which process it was, and what was read."""
    return like(ProcessTarget, audit, name=audit.target)


def process_totals(totals: Totals) -> ProcessTotals:
    """Return the figures of a whole process, apart from how each is known."""
    named = [(_TOTAL_NAMES[name], total) for name, total in totals.figures.items()]
    figures: dict[str, int | None] = {name: total.bytes for name, total in named}
    evidence = {name: total.evidence for name, total in named if total.bytes is not None}
    return ProcessTotals(**figures, evidence=evidence, of_which=totals.of_which)


_TOTAL_NAMES: Final[dict[str, TotalName]] = {name: name for name in get_args(TotalName)}


def shown_rows(ledger: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows of a ledger, with the name to show for each symbol."""
    rows = tuple(ledger)
    # By columns: replacing the name of each row takes three times as long.
    columns: dict[str, Iterable[object]] = dict(zip(Row._fields, zip(*rows, strict=True), strict=False))
    columns["name"] = _shown_names(rows)
    return tuple(records(Row, zip(*columns.values(), strict=True))) if rows else ()


def _shown_names(ledger: Iterable[Row]) -> list[str | None]:
    return [row.name if row.symbol is None else shown_name(row.symbol) for row in ledger]


def debug_file_rows(debug_files: Mapping[str, str]) -> tuple[DebugFile, ...]:
    """Return the table of the files that the names of stripped owners are from."""
    return tuple([DebugFile(*each) for each in debug_files.items()])
