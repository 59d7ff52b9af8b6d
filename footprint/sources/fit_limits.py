"""The limits on how many fit, beside a memory: those of a control group, and those on the tasks of the machine.

The limits of a machine on the number of its tasks, and how many there are.

Source: proc_sys_kernel(5), proc_loadavg(5), proc_pid_limits(5) and getrlimit(2) of Linux 6.18.
"""

import os
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.attribution.cost_models import how_many_fit
from footprint.errors import AccessError, UsageError
from footprint.model.projection import FitLimit, LimitUnit, Model, Question, once_bytes
from footprint.process.control_groups import (
    ControlGroup,
    control_group_of,
    find_control_group,
    held_by_others,
    kernel_text,
    read_limits,
)
from footprint.process.status import parse_status, read_stat
from footprint.sources.target import AnyTarget, Process, Processes
from footprint.text.units import decimal

if TYPE_CHECKING:
    from footprint.model.audit import Audit


class TaskLimit(NamedTuple):
    """A limit on the number of tasks, which are threads.

    Attributes:
        name: What it is called.
        most: The limit.
        taken: The tasks that count against it, without those of the processes that were asked about.
        is_of_machine: Whether it is the machine's own, and not the user's.
    """

    name: str
    most: int
    taken: int
    is_of_machine: bool = False


def read_task_limits(pids: Collection[int], starter: int, root: str = "/") -> tuple[TaskLimit, ...]:
    """Read the limits on how many tasks there can be: of the machine, and of the user who starts more.

    Args:
        pids: The processes that more are made of; their tasks do not count as taken.
        starter: The process that starts more, whose user has a limit.
        root: The directory that is taken for `/`.
    """
    by_pid = {}
    for entry in os.listdir(os.path.join(root, "proc")):
        if entry.isdigit():
            status = parse_status(_read(root, f"proc/{entry}/status"))
            if status.thread_count:
                by_pid[int(entry)] = status
    others = [status for pid, status in by_pid.items() if pid not in pids]
    taken = sum(status.thread_count or 0 for status in others)
    limits = [
        TaskLimit(name, most, taken, is_of_machine=True)
        for name, path in (("pid_max", "proc/sys/kernel/pid_max"), ("threads-max", "proc/sys/kernel/threads-max"))
        if (most := decimal(_read(root, path).strip())) is not None
    ]
    user = by_pid[starter].user_id if starter in by_pid else None
    most = _most_processes(_read(root, f"proc/{starter}/limits"))
    # The kernel does not hold root to it.
    if user and most is not None:
        of_user = sum(status.thread_count or 0 for status in others if status.user_id == user)
        limits.append(TaskLimit(f"RLIMIT_NPROC of user {user}", most, of_user))
    return tuple(limits)


def _most_processes(limits: bytes) -> int | None:
    """Return the soft limit in a text of /proc/PID/limits; None where there is none."""
    row = next((line for line in limits.splitlines() if line.startswith(b"Max processes")), b"")
    words = row.split()
    return decimal(words[2]) if len(words) > 2 else None


def _read(root: str, path: str) -> bytes:
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""


_VDSO: Final = re.compile(r"^\S+(?= .*\[vdso\]$)", re.MULTILINE)
_HEADROOM: Final = 64  # this part of the memory of a control group is left
OWN = "own"
"""What `--limit` has for the control group of the target itself."""


def fit_limits(
    pids: Sequence[int],
    limit: str | None,
    reserve_bytes: int,
    *,
    own_group: ControlGroup | None = None,
    parent: int | None = None,
    root: str = "/",
) -> tuple[FitLimit, ...]:
    """Read the limits that more processes would meet.

    Those of this machine on its tasks count where a control group of it is named. Without one, a memory was named: it
    may be that of another machine.

    Args:
        pids: The live processes that more are made of, the one that starts more first; none for a program or a text.
        limit: The control group whose limits count: a path, or `own`; None for those that the processes' own has, if
            any.
        reserve_bytes: The part of each memory that is left for others.
        own_group: What `own` means; None for the lowest control group that holds all processes.
        parent: A process whose cost is in the answer already, so that it is not taken.
        root: The directory that is taken for `/`.

    Raises:
        AccessError: If there is no such control group.
        UsageError: If it has no limit, or if a target that does not run has no group of its own.
    """
    limits = []
    if limit == OWN and not pids:
        raise UsageError("only a live process has a control group of its own: name the path of one with --limit")
    group = _group(pids, limit, own_group, root)
    if group is not None:
        # N stands for the processes that were asked about. All others of the group remain.
        others_bytes, others_tasks = held_by_others(group, [*pids, parent], root)
        for group_limit in read_limits(group):
            unit = LimitUnit(group_limit.unit)
            is_bytes = unit is LimitUnit.BYTES
            taken = max(0, group_limit.charged - group_limit.charged_below)
            # Copies differ, and some of what the kernel holds shows nowhere, such as a page of each pipe that was used.
            taken += others_bytes + reserve_bytes + group_limit.most // _HEADROOM if is_bytes else others_tasks
            limits.append(FitLimit(group_limit.name, unit, group_limit.most, taken))
        if limit is not None and not limits:
            raise UsageError(f"neither {group.path} nor a control group above it has a limit")
    if pids:
        limits.extend(
            FitLimit(task_limit.name, LimitUnit.TASKS, task_limit.most, task_limit.taken)
            for task_limit in read_task_limits(pids, pids[0], root)
            if limit is not None or not task_limit.is_of_machine
        )
    return tuple(limits)


def _group(pids: Sequence[int], limit: str | None, own_group: ControlGroup | None, root: str) -> ControlGroup | None:
    if limit is not None and limit != OWN:
        return find_control_group(limit, root)
    if not pids:
        return own_group
    try:
        lowest = control_group_of(pids, root)
    except AccessError:
        if limit == OWN and own_group is None:
            raise
        return own_group
    # crun sets the limits of a container on a group inside the one that has its ID.
    return lowest if own_group is None or lowest.path == f"{own_group.path}/container" else own_group


def with_limits(question: Question, target: AnyTarget, limit: str | None = None) -> Question:
    """Add to the question how many fit the limits that more of a target would meet; `limit` as above.

    A worker is projected together with its parent: what that holds is in the answer, and not taken.
    """
    if isinstance(target, Processes):
        limits = fit_limits(target.pids, limit, question.reserve_bytes, own_group=target.control_group)
        return question._replace(limits=limits)
    pids = [target.pid] if isinstance(target, Process) else []
    parent = _forking_parent(pids[0]) if pids and question.model in {None, Model.FORK} else None
    return question._replace(limits=fit_limits(pids, limit, question.reserve_bytes, parent=parent))


def _forking_parent(pid: int) -> int | None:
    """Return the parent of a process if the process is a fork of it, by the vDSO, which each exec maps elsewhere."""
    parent = stat.parent_pid if (stat := read_stat(pid)) else 0
    places = [_VDSO.search(kernel_text(f"/proc/{number}/maps")) for number in (pid, parent)]
    return parent if all(places) and len({place[0] for place in places if place}) == 1 else None


def limits_of_more(audit: "Audit", root: str = "/") -> tuple[FitLimit, ...]:
    """Compute how many of a live process or group each limit beside a memory lets run, in the order of `how_many_fit`.

    None for what does not run, or has ended by now.
    """
    if not audit.projection.terms:
        return ()
    pids = [audit.pid, *(member.pid for member in audit.members)]
    live = [pid for pid in pids if pid is not None] if audit.is_live and audit.saved_in is None else []
    if not live:
        return ()
    try:
        each_tasks = sum(len(os.listdir(os.path.join(root, f"proc/{pid}/task"))) for pid in live)
        chosen = audit.group.cgroup
        own_group = None if chosen is None else find_control_group(chosen.path, root)
        limits = fit_limits(live, None, 0, own_group=own_group, root=root)
    except (OSError, AccessError):
        return ()
    projection = audit.projection
    return how_many_fit(
        limits,
        each_bytes=max(1, projection.per_process_bytes),
        kept_bytes=once_bytes(projection.terms, is_page_cache=False),
        cache_bytes=once_bytes(projection.terms, is_page_cache=True),
        each_tasks=each_tasks,
    )
