"""The limits on how many fit, beside a memory: those of a control group, and those on the tasks of the machine."""

from collections.abc import Sequence

from footprint.errors import UsageError
from footprint.model.projection import FitLimit, LimitUnit
from footprint.process.control_groups import control_group_of, find_control_group, read_limits
from footprint.process.task_limits import read_task_limits

__all__ = ("OWN", "fit_limits")

OWN = "own"
"""What `--limit` has for the control group of the target itself."""


def fit_limits(
    pids: Sequence[int], limit: str | None, reserve_bytes: int, *, starter: int | None = None, root: str = "/"
) -> tuple[FitLimit, ...]:
    """Read the limits that more processes would meet.

    Args:
        pids: The live processes that more are made of; none for a program or a text.
        limit: The control group whose limits count: a path, or `own` for that of the first process; None for no group.
        reserve_bytes: The part of each memory that is left for others.
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
        group = control_group_of(pids[0], root) if limit == OWN else find_control_group(limit, root)
        for one in read_limits(group):
            unit = LimitUnit(one.unit)
            # What the group itself holds makes room: the processes in it are those that N stands for.
            others = max(0, one.held - one.held_below)
            taken = others + (reserve_bytes if unit is LimitUnit.BYTES else 0)
            found.append(FitLimit(one.name, unit, one.most, taken))
        if not found:
            raise UsageError(f"neither {group.path} nor a control group above it has a limit")
    if pids:
        found.extend(
            FitLimit(one.name, LimitUnit.TASKS, one.most, one.taken)
            for one in read_task_limits(pids, starter or pids[0], root)
        )
    return tuple(found)
