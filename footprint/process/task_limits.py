"""The limits of a machine on the number of its tasks, and how many there are.

Source: proc_sys_kernel(5), proc_loadavg(5), proc_pid_limits(5) and getrlimit(2) of Linux 6.18.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from footprint.digits import decimal
from footprint.process.status import parse_status

__all__ = ("TaskLimit", "read_task_limits")


class TaskLimit(NamedTuple):
    """A limit on the number of tasks, which are threads.

    Attributes:
        name: What it is called.
        most: The limit.
        taken: The tasks that count against it, without those of the processes that were asked about.
    """

    name: str
    most: int
    taken: int


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
    found = [
        TaskLimit(name, most, taken)
        for name, path in (("pid_max", "proc/sys/kernel/pid_max"), ("threads-max", "proc/sys/kernel/threads-max"))
        if (most := decimal(_read(root, path).strip())) is not None
    ]
    user = by_pid[starter].user_id if starter in by_pid else None
    most = _most_processes(_read(root, f"proc/{starter}/limits"))
    # The kernel does not hold root to it.
    if user and most is not None:
        own = sum(status.thread_count or 0 for status in others if status.user_id == user)
        found.append(TaskLimit(f"RLIMIT_NPROC of user {user}", most, own))
    return tuple(found)


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
