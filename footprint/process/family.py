"""Which processes belong together: a process with its descendants, or all of one name.

Source: proc_pid_stat(5).
"""

import os

from footprint.errors import AccessError, UsageError
from footprint.process.stat import processes

__all__ = ("descendants", "named")


def descendants(pid: int) -> tuple[int, ...]:
    """Give a process and all that descend from it, parents first.

    Raises:
        AccessError: Where there is no such process.
    """
    table = processes()
    children: dict[int, list[int]] = {}
    for one, stat in table.items():
        children.setdefault(stat.parent_pid, []).append(one)
    if pid not in table:
        raise AccessError(f"pid {pid}", "no such process")
    family = [pid]
    for one in family:
        family.extend(children.get(one, ()))
    return tuple(family)


def named(name: str) -> tuple[int, ...]:
    """Give all processes of a name: that of the task, or the last part of what was started; not this one.

    Raises:
        AccessError: Where there is none.
        UsageError: For the empty name.
    """
    if not name:
        raise UsageError("a name is wanted: the empty one is that of no process")
    wanted = os.fsencode(name)
    own = os.getpid()
    found = tuple(pid for pid, stat in processes().items() if pid != own and wanted in {stat.name, _started_as(pid)})
    if not found:
        raise AccessError(name, "no process has this name")
    return found


def _started_as(pid: int) -> bytes:
    """Give the last part of what a process was started as; nothing where it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read(1 << 16)
    except OSError:
        return b""
    return command.partition(b"\0")[0].rpartition(b"/")[2]
