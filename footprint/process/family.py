"""Processes that belong together: a process with its descendants, or all processes of one name.

Source: proc_pid_stat(5).
"""

import os

from footprint.errors import AccessError, UsageError
from footprint.process.stat import processes

__all__ = ("descendants", "named")


def descendants(pid: int) -> tuple[int, ...]:
    """Return the PIDs of a process and its descendants, parents first.

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
    """Return the PIDs of all other processes whose task name, or file name of argv[0], is this one.

    Raises:
        AccessError: Where there is none.
        UsageError: Where the name is empty.
    """
    if not name:
        raise UsageError("the name of a process cannot be empty")
    wanted = os.fsencode(name)
    own = os.getpid()
    found = tuple(pid for pid, stat in processes().items() if pid != own and wanted in {stat.name, _argv0_name(pid)})
    if not found:
        raise AccessError(name, "no process has this name")
    return found


def _argv0_name(pid: int) -> bytes:
    """Return the file name in argv[0] of a process; empty where it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read(1 << 16)
    except OSError:
        return b""
    return command.partition(b"\0")[0].rpartition(b"/")[2]
