"""The JSON of `audit` for several processes, and what a saved group is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from footprint.errors import Note
from footprint.formats.audit_json import (
    DebugFile,
    ProcessTotals,
    SourceCost,
    debug_file_rows,
    process_totals,
    shown_rows,
    source_costs,
)
from footprint.formats.codec import encode, encode_columns, like
from footprint.formats.finding_rows import FailedFinding, FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import ABSENT, Absent
from footprint.model.evidence import Evidence
from footprint.model.finding import SearchedRule
from footprint.model.group import CgroupComparison, Group, GroupProjection, ProcessClass
from footprint.model.object_cost import ObjectCost
from footprint.model.row import Row

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf
    from footprint.model.audited import Audited

__all__ = (
    "GroupFigure",
    "GroupJson",
    "GroupProcess",
    "GroupProjectionJson",
    "GroupTotals",
    "group_columns",
    "group_members",
    "group_projection_members",
    "group_totals",
)


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


class GroupProcess(NamedTuple):
    """One process of the group.

    Attributes:
        name: The target, as the user named it.
        pid: The process; null where it is not known.
        command: The command line or the name of the process.
        source: What was read: `smaps`, ...
        is_live: Whether it was read from a running process.
        mapping_count: The number of mappings.
        page_bytes: The size of a page.
        totals: Its own figures.
    """

    name: str
    pid: int | None
    command: str
    source: str
    is_live: bool
    mapping_count: int
    page_bytes: int
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
        findings: What the processes could do without, each once.
        searched_rules: The rules that were run for all processes that were searched; empty where none was.
        objects: The files of the processes, each once with the sums over them; empty for processes that were
            neither searched for findings nor saved in a file.
        debug_files: The files that the names of stripped owners are from.
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
    findings: tuple[FindingRow, ...]
    searched_rules: tuple[SearchedRule, ...]
    objects: tuple[ObjectCost, ...]
    debug_files: tuple[DebugFile, ...]
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class GroupProjectionJson(Envelope):
    """What one more worker and one more group cost, and many of them, or how many fit.

    Attributes:
        target: The processes.
        group: The figures of all together.
        classes: The processes that are alike, the workers first.
        projection: What one more worker and one more group cost, and as many as were asked about; null where unknown.
        cgroup: The counters of the control group that was named; null where none was.
        notes: What the reader of the figures must know.
    """

    verb: Literal["project"] = "project"
    target: GroupTarget
    group: GroupTotals
    classes: tuple[ProcessClass, ...]
    projection: GroupProjection | None
    cgroup: CgroupComparison | None
    notes: tuple[Note, ...]


def group_members(group: Group, version: str, source_of: "SourceOf | None" = None) -> Json:
    """Return the members of the audit."""
    return encode(_answer(group, version, source_of))


def group_columns(group: Group, version: str) -> Json:
    """Return the members of the audit, its tables by columns."""
    return encode_columns(_answer(group, version))


def _answer(group: Group, version: str, source_of: "SourceOf | None" = None) -> GroupJson:
    return GroupJson(
        tool=Tool("footprint", version),
        host=group.host,
        target=_target(group),
        group=group_totals(group),
        processes=tuple([like(GroupProcess, member, totals=process_totals(member.totals)) for member in group.members]),
        classes=group.classes,
        projection=group.projection,
        cgroup=group.cgroup,
        ledger=shown_rows(group.ledger),
        sources=source_costs(group.ledger, source_of),
        findings=finding_rows(group.findings, group.count, group.ledger),
        searched_rules=group.searched_rules,
        objects=group.objects,
        debug_files=debug_file_rows(group.debug_files),
        notes=group.notes,
    )


def group_projection_members(group: Group, version: str) -> Json:
    """Return the members of the projection."""
    return encode(
        GroupProjectionJson(
            tool=Tool("footprint", version),
            host=group.host,
            target=_target(group),
            group=group_totals(group),
            classes=group.classes,
            projection=group.projection,
            cgroup=group.cgroup,
            notes=group.notes,
        )
    )


def _target(group: Group) -> GroupTarget:
    return GroupTarget(group.target, tuple([member.pid for member in group.members]), group.task_count)


def group_totals(group: "Audited") -> GroupTotals:
    """Return the figures of a group, apart from how each is known."""
    totals = {name: group.figures[name] for name in _FIGURES}
    return GroupTotals(
        **{name: total.bytes for name, total in totals.items()},
        evidence={name: total.evidence for name, total in totals.items() if total.bytes is not None},
    )
