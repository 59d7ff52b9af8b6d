"""Which processes belong together: a process with its descendants, or all of one name.

Source: proc_pid_stat(5).
"""

import os
from collections.abc import Iterator

from footprint.errors import AccessError, UsageError

__all__ = ("descendants", "named")


def descendants(pid: int) -> tuple[int, ...]:
    """Give a process and all that descend from it, parents first.

    Raises:
        AccessError: Where there is no such process.
    """
    children: dict[int, list[int]] = {}
    is_there = False
    for one, parent, _ in _processes():
        children.setdefault(parent, []).append(one)
        is_there |= one == pid
    if not is_there:
        raise AccessError(f"pid {pid}", "no such process")
    family = [pid]
    for one in family:
        family.extend(sorted(children.get(one, ())))
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
    found = tuple(pid for pid, _, task in _processes() if pid != os.getpid() and wanted in {task, _started_as(pid)})
    if not found:
        raise AccessError(name, "no process has this name")
    return found


def _processes() -> Iterator[tuple[int, int, bytes]]:
    """Give the number, the parent and the name of each process, ascending."""
    for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        stat = _read(f"/proc/{pid}/stat")
        # The name stands in parentheses, and may hold some of its own, and spaces.
        before, _, after = stat.rpartition(b")")
        fields = after.split()
        if len(fields) > 1:
            yield pid, int(fields[1]), before.partition(b"(")[2]


def _started_as(pid: int) -> bytes:
    return _read(f"/proc/{pid}/cmdline").partition(b"\0")[0].rpartition(b"/")[2]


def _read(path: str) -> bytes:
    """Read a small file of a process; nothing where it has ended."""
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""
