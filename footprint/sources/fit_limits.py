"""The limits on how many fit, beside a memory: those of a control group, and those on the tasks of the machine."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from footprint.attribution.limits import how_many_fit
from footprint.errors import UsageError
from footprint.model.projection import FitLimit, LimitUnit
from footprint.process.control_groups import (
    ControlGroup,
    control_group_of,
    find_control_group,
    held_by_others,
    read_limits,
)
from footprint.process.task_limits import read_task_limits

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("OWN", "fit_limits", "tasks_that_fit")

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
        limit: The control group whose limits count: a path, or `own`; None for no group.
        reserve_bytes: The part of each memory that is left for others.
        own_group: What `own` means; None for the control group of the first process.
        starter: The process that starts more; None for the first.
        root: The directory that is taken for `/`.

    Raises:
        AccessError: If there is no such control group.
        UsageError: If it has no limit, or if a target that does not run has no group of its own.
    """
    found = []
    if limit is not None:
        if limit == OWN and not pids:
            raise UsageError("only a live process has a control group of its own: name the path of one with --limit")
        own = (own_group or control_group_of(pids[0], root)) if limit == OWN else None
        group = own or find_control_group(limit, root)
        # N stands for the processes that were asked about. All others of the group remain.
        others_bytes, others_tasks = held_by_others(group, pids, root)
        for one in read_limits(group):
            unit = LimitUnit(one.unit)
            is_bytes = unit is LimitUnit.BYTES
            taken = max(0, one.held - one.held_below) + (others_bytes + reserve_bytes if is_bytes else others_tasks)
            found.append(FitLimit(one.name, unit, one.most, taken))
        if not found:
            raise UsageError(f"neither {group.path} nor a control group above it has a limit")
    if pids:
        found.extend(
            FitLimit(one.name, LimitUnit.TASKS, one.most, one.taken)
            for one in read_task_limits(pids, starter or pids[0], root)
        )
    return tuple(found)


def tasks_that_fit(audit: "Audited", root: str = "/") -> tuple[FitLimit, ...]:
    """Compute how many of a live process or group the limits on tasks let run, in the order of `how_many_fit`.

    None for what does not run, or has ended by now.
    """
    pids = [audit.pid, *(one.pid for one in audit.members)]
    live = [pid for pid in pids if pid is not None] if audit.is_live and audit.saved_in is None else []
    if not live:
        return ()
    try:
        each_tasks = sum(len(os.listdir(os.path.join(root, f"proc/{pid}/task"))) for pid in live)
        return how_many_fit(fit_limits(live, None, 0, root=root), each_bytes=1, once_bytes=0, each_tasks=each_tasks)
    except OSError:
        return ()
