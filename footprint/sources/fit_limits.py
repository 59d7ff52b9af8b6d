"""The limits on how many fit, beside a memory: those of a control group, and those on the tasks of the machine."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.attribution.limits import how_many_fit
from footprint.errors import AccessError, UsageError
from footprint.model.group import Group
from footprint.model.projection import FitLimit, LimitUnit, Projection, Question
from footprint.process.control_groups import (
    ControlGroup,
    control_group_of,
    find_control_group,
    held_by_others,
    read_limits,
)
from footprint.process.task_limits import read_task_limits
from footprint.sources.target import AnyTarget, Process

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("OWN", "fit_limits", "limits_of_more", "with_limits")

OWN = "own"
"""What `--limit` has for the control group of the target itself."""


def fit_limits(
    pids: Sequence[int],
    limit: str | None,
    reserve_bytes: int,
    *,
    own_group: ControlGroup | None = None,
    starter: int | None = None,
    root: str = "/",
) -> tuple[FitLimit, ...]:
    """Read the limits that more processes would meet.

    Args:
        pids: The live processes that more are made of; none for a program or a text.
        limit: The control group whose limits count: a path, or `own`; None for those that the processes' own has, if
            any.
        reserve_bytes: The part of each memory that is left for others.
        own_group: What `own` means; None for the lowest control group that holds all processes.
        starter: The process that starts more; None for the first.
        root: The directory that is taken for `/`.

    Raises:
        AccessError: If there is no such control group.
        UsageError: If it has no limit, or if a target that does not run has no group of its own.
    """
    found = []
    if limit == OWN and not pids:
        raise UsageError("only a live process has a control group of its own: name the path of one with --limit")
    group = _group(pids, limit, own_group, root)
    if group is not None:
        # N stands for the processes that were asked about. All others of the group remain.
        others_bytes, others_tasks = held_by_others(group, pids, root)
        for one in read_limits(group):
            unit = LimitUnit(one.unit)
            is_bytes = unit is LimitUnit.BYTES
            taken = max(0, one.held - one.held_below) + (others_bytes + reserve_bytes if is_bytes else others_tasks)
            found.append(FitLimit(one.name, unit, one.most, taken))
        if limit is not None and not found:
            raise UsageError(f"neither {group.path} nor a control group above it has a limit")
    if pids:
        found.extend(
            FitLimit(one.name, LimitUnit.TASKS, one.most, one.taken)
            for one in read_task_limits(pids, starter or pids[0], root)
        )
    return tuple(found)


def _group(pids: Sequence[int], limit: str | None, own_group: ControlGroup | None, root: str) -> ControlGroup | None:
    if limit is not None and limit != OWN:
        return find_control_group(limit, root)
    if own_group is not None or not pids:
        return own_group
    try:
        return control_group_of(pids, root)
    except AccessError:
        if limit == OWN:
            raise
        return None


def with_limits(question: Question, target: AnyTarget, limit: str | None = None) -> Question:
    """Add to the question how many fit the limits that more of a process or program would meet; `limit` as above."""
    pids = [target.pid] if isinstance(target, Process) else []
    return question._replace(limits=fit_limits(pids, limit, question.reserve_bytes))


def limits_of_more(audit: "Audited", root: str = "/") -> tuple[FitLimit, ...]:
    """Compute how many of a live process or group each limit beside a memory lets run, in the order of `how_many_fit`.

    None for what does not run, or has ended by now.
    """
    if audit.projection is None:
        return ()
    pids = [audit.pid, *(one.pid for one in audit.members)]
    live = [pid for pid in pids if pid is not None] if audit.is_live and audit.saved_in is None else []
    if not live:
        return ()
    try:
        each_tasks = sum(len(os.listdir(os.path.join(root, f"proc/{pid}/task"))) for pid in live)
        chosen = audit.cgroup if isinstance(audit, Group) else None
        own_group = None if chosen is None else find_control_group(chosen.path, root)
        limits = fit_limits(live, None, 0, own_group=own_group, root=root)
    except (OSError, AccessError):
        return ()
    projection = audit.projection
    each_bytes = projection.per_process_bytes if isinstance(projection, Projection) else projection.per_group_bytes
    return how_many_fit(
        limits, each_bytes=max(1, each_bytes), once_bytes=projection.shared_once_bytes or 0, each_tasks=each_tasks
    )
