"""The JSON of an audit of several processes: what `audit` prints, and what a saved group is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from footprint.errors import Note
from footprint.formats.audit_rows import (
    DebugFile,
    FailedFinding,
    ProcessTotals,
    SourceCost,
    debug_file_rows,
    finding_rows,
    parts_of,
    process_totals,
    shown_rows,
    source_costs,
)
from footprint.json.answer import Envelope, Tool
from footprint.json.codec import like
from footprint.members import ABSENT, Absent, dataclass
from footprint.model.audit import Audit, ProcessTarget
from footprint.model.costs import MemoryFileCost, ObjectCost
from footprint.model.finding import Finding, SearchedRule
from footprint.model.group import CgroupComparison, ProcessClass
from footprint.model.projection import FitLimit, Model, Term
from footprint.model.row import Evidence, KindPart, Row

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf


class GroupProjection(NamedTuple):
    """The cost of `count` groups, each with `worker_count` workers.

    Attributes:
        count: The number of groups.
        worker_count: The workers of each group.
        per_worker_bytes: The marginal worker: what one more worker in a group costs.
        per_group_bytes: The marginal group: what one more group of so many workers costs.
        shared_once_bytes: The files that all groups map, paid once.
        total_bytes: `shared_once_bytes + count * per_group_bytes`.
        evidence: How the total is known.
        model: How the workers start.
        terms: The parts of the cost of a group, and what all groups pay once.
        memory_bytes: The memory that was asked to be filled, where `count` is how many groups fit; else None.
        limits: The limits on how many groups fit, the one that is hit first at the beginning.
        worker_limits: The limits on how many workers fit into a single group, in the same order.
    """

    count: int  # type: ignore[assignment] # tuple.count is not missed
    worker_count: int
    per_worker_bytes: int
    per_group_bytes: int
    shared_once_bytes: int
    total_bytes: int
    evidence: Evidence
    model: Model
    terms: tuple[Term, ...]
    memory_bytes: int | None = None
    limits: tuple[FitLimit, ...] = ()
    worker_limits: tuple[FitLimit, ...] = ()


class GroupTarget(NamedTuple):
    """The processes of the group.

    Attributes:
        name: The target, as the user named it.
        pids: The processes; null for one that is not known.
        thread_count: The threads of all processes.
    """

    name: str
    pids: tuple[int | None, ...]
    thread_count: int


GroupFigure = Literal[
    "private_bytes",
    "kernel_bytes",
    "shared_between_bytes",
    "own_shared_bytes",
    "per_group_bytes",
    "shared_once_bytes",
]

_FIGURES: Final[tuple[GroupFigure, ...]] = get_args(GroupFigure)


class GroupTotals(NamedTuple):
    """The figures of several processes together; null where the input cannot tell.

    Attributes:
        evidence: How each figure that is not null is known.
    """

    private_bytes: int | None
    kernel_bytes: int | None
    shared_between_bytes: int | None
    own_shared_bytes: int | None
    per_group_bytes: int | None
    shared_once_bytes: int | None
    evidence: Mapping[GroupFigure, Evidence]


@dataclass(frozen=True)
class GroupProcess(ProcessTarget):
    """One process of the group.

    Attributes:
        totals: Its own figures.
    """

    totals: ProcessTotals


@dataclass(frozen=True, kw_only=True)
class GroupJson(Envelope):
    """The audit of several processes as one.

    The `bytes` of all rows of `ledger` but those of kind `kernel` add up to `private_bytes` of the group, those of kind
    `kernel` to `kernel_bytes`; `shared_bytes` of rows is null.

    Attributes:
        target: The processes.
        group: The figures of all together.
        processes: The processes, each with its own figures.
        classes: The processes that are alike, the workers first.
        projection: What one more worker and one more group cost, and as many as were asked about; null where unknown.
        cgroup: The counters of the control group that was named; null where none was.
        ledger: The rows of all processes, those of one owner, section and symbol added up.
        sources: The same but for kind `kernel`, by source file, folder or component; the member is absent without `--by
            file`, `dir` or `component`.
        parts: What the group costs by kind of memory: the `bytes` add up to `per_group_bytes`, or where that is not
            known to `private_bytes`. The member is absent where only virtual sizes are known.
        findings: What the processes could do without, each once.
        searched_rules: The rules that were run for all processes that were searched; empty where none was.
        objects: The files of the processes, each once with the sums over them; empty for processes that were
            neither searched for findings nor saved in a file.
        debug_files: The files that the names of stripped owners are from.
        memory_files: What the files in memory cost that the processes map or hold open, each once. Their `own_bytes`
            add up to `own_shared_bytes`. The member is absent where there is none.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["audit"] = "audit"
    target: GroupTarget
    group: GroupTotals
    processes: tuple[GroupProcess, ...]
    classes: tuple[ProcessClass, ...]
    projection: GroupProjection | None
    cgroup: CgroupComparison | None
    ledger: tuple[Row, ...]
    sources: tuple[SourceCost, ...] | Absent = ABSENT
    parts: tuple[KindPart, ...] | Absent = ABSENT
    findings: tuple[Finding, ...]
    searched_rules: tuple[SearchedRule, ...]
    objects: tuple[ObjectCost, ...]
    debug_files: tuple[DebugFile, ...]
    memory_files: tuple[MemoryFileCost, ...] | Absent = ABSENT
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def group_answer(audit: "Audit", version: str, source_of: "SourceOf | None" = None) -> GroupJson:
    """Return the answer that the audit of several processes is."""
    return GroupJson(
        tool=Tool("footprint", version),
        host=audit.host,
        target=GroupTarget(audit.target, tuple([m.pid for m in audit.members]), audit.group.task_count),
        group=group_totals(audit),
        parts=parts_of(audit),
        processes=tuple([like(GroupProcess, member, totals=process_totals(member.totals)) for member in audit.members]),
        classes=audit.group.classes,
        projection=_projection(audit),
        cgroup=audit.group.cgroup,
        ledger=shown_rows(audit.ledger),
        sources=source_costs(audit.ledger, source_of),
        findings=finding_rows(audit.findings, audit.count, audit.ledger),
        searched_rules=audit.searched_rules,
        objects=audit.objects,
        debug_files=debug_file_rows(audit.debug_files),
        memory_files=audit.memory_files or ABSENT,
        notes=audit.notes,
    )


def _projection(audit: "Audit") -> GroupProjection | None:
    workers = audit.group.workers
    if not audit.projection.terms:
        return None
    return like(
        GroupProjection,
        audit.projection,
        worker_count=workers.count,
        per_worker_bytes=workers.each_bytes,
        per_group_bytes=audit.projection.per_process_bytes,
        worker_limits=workers.limits,
    )


def group_totals(audit: "Audit") -> GroupTotals:
    """Return the figures of a group, apart from how each is known."""
    totals = {name: audit.figures[name] for name in _FIGURES}
    return GroupTotals(
        **{name: total.bytes for name, total in totals.items()},
        evidence={name: total.evidence for name, total in totals.items() if total.bytes is not None},
    )
