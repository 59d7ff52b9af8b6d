"""Saved groups, read back: what `audit --json` wrote of several processes."""

from dataclasses import replace
from typing import Any, Final, cast, get_args

from footprint.attribution.families import project_group
from footprint.errors import InputError, UnbalancedError
from footprint.formats.codec import decode, like
from footprint.formats.finding_rows import finding_of
from footprint.formats.group_json import GroupFigure, GroupJson, GroupProcess, GroupTotals
from footprint.formats.saved_audit import check_host, totals_of
from footprint.model.evidence import Evidence
from footprint.model.group import Group, GroupQuestion
from footprint.model.group_member import GroupMember
from footprint.model.totals import Total

__all__ = ("regrouped", "saved_group")

_FIGURES: Final = get_args(GroupFigure)


def saved_group(whole: dict[str, Any], file: str) -> tuple[Group, str]:
    """Return the group that an answer is about, and the version of footprint that wrote it.

    Args:
        whole: The answer, as `parsed_answer` returns it.
        file: The name of the file, for errors.

    Raises:
        InputError: It is damaged, or its rows do not add up.
    """
    answer = decode(GroupJson, whole, file)
    check_host(answer.host, file)
    if not answer.processes:
        raise InputError(file, "it is damaged: `processes` is empty")
    figures = _figures(answer.group, file)
    try:
        group = Group(
            target=answer.target.name,
            members=tuple([_member(one, file) for one in answer.processes]),
            private=figures["private_bytes"],
            kernel=figures["kernel_bytes"],
            shared_between=figures["shared_between_bytes"],
            own_shared=figures["own_shared_bytes"],
            per_group=figures["per_group_bytes"],
            shared_once=figures["shared_once_bytes"],
            ledger=answer.ledger,
            notes=answer.notes,
            classes=answer.classes,
            projection=answer.projection,
            cgroup=answer.cgroup,
            host=dict(answer.host),
            task_count=answer.target.thread_count,
            debug_files=dict(answer.debug_files),
            findings=tuple(map(finding_of, answer.findings)),
            searched_rules=answer.searched_rules,
            objects=answer.objects,
            saved_in=file,
        )
    except UnbalancedError as error:
        raise InputError(file, f"it was changed since it was written: {error.detail}") from error
    return group, answer.tool.version


def regrouped(group: Group, question: GroupQuestion) -> Group:
    """Return a group with another projection, computed from its own classes of processes.

    Raises:
        UsageError: For a count below 1.
    """
    projection = project_group(group.classes, group.per_group, group.shared_once, group.task_count, question)
    return replace(group, projection=projection)


def _member(one: GroupProcess, file: str) -> GroupMember:
    return like(GroupMember, one, totals=totals_of(one.totals, file))


def _figures(told: GroupTotals, file: str) -> dict[str, Total]:
    known = cast("dict[str, Evidence]", told.evidence)
    found = {}
    for name in _FIGURES:
        size_bytes: int | None = getattr(told, name)
        if size_bytes is not None and name not in known:
            raise InputError(file, f"it is damaged: `group.evidence.{name}` is missing")
        found[name] = Total(size_bytes, known.get(name, Evidence.ESTIMATED))
    return found
