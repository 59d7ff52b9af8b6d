"""What `/proc/PID/stat` says of a process or thread: its name, what it does, and where it comes from.

Source: do_task_stat in fs/proc/array.c of Linux 2.6.14 to 6.18; proc_pid_stat(5).
"""

import os
import signal
from typing import Final, NamedTuple

__all__ = ("Stat", "parse_stat", "processes", "read_stat", "stands_still")

_STILL: Final = frozenset("TtZX")
# What stands where after the name, which is the second field.
_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING = 1, 3, 6, 19, 28
_EXITING: Final = 0x4  # PF_EXITING
_SIGNALED: Final = 0x400  # PF_SIGNALED
# How /proc says that there is no such process any more, or none that is ours to see (hidepid).
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)


class Stat(NamedTuple):
    """The part of a stat line that tells processes apart.

    Attributes:
        name: The name of the task, at most 15 bytes of it.
        state: One letter: `R` running, `S` sleeping, `T` stopped, `t` traced, `Z` zombie, `X` dead, ...
        parent_pid: The process that it is a child of.
        session: The session that it is in.
        flags: What the kernel keeps of it (PF_...).
        start_ticks: When it started, in clock ticks since boot.
        pending: The signals that wait for it, of those below 33.
    """

    name: bytes
    state: str
    parent_pid: int
    session: int
    flags: int
    start_ticks: int
    pending: int

    @property
    def is_still(self) -> bool:
        """Whether it neither runs nor can be woken: stopped, traced, or ended."""
        return self.state in _STILL

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, or is past the place where its exit can be caught."""
        return self.state in "ZX" or bool(self.flags & _EXITING)

    @property
    def is_killed(self) -> bool:
        """Whether a signal ends it, or SIGKILL is about to, as to the threads of one that exits."""
        return bool(self.flags & _SIGNALED or self.pending >> (signal.SIGKILL - 1) & 1)


def parse_stat(line: bytes) -> Stat | None:
    """Read a stat line; None where it is none."""
    # The name stands in parentheses, and may hold anything, parentheses too.
    before, end, after = line.rpartition(b") ")
    words = after.split() if end else []
    try:
        numbers = [int(words[index]) for index in (_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING)]
    except (IndexError, ValueError):
        return None
    return Stat(before.partition(b"(")[2], words[0].decode("ascii", "replace"), *numbers)


def read_stat(pid: int, thread: int | None = None) -> Stat | None:
    """Read what is said of a process, or of one of its threads; None where it has ended."""
    folder = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    try:
        with open(f"{folder}/stat", "rb") as file:
            return parse_stat(file.read())
    except _GONE:
        return None


def processes() -> dict[int, Stat]:
    """Give all processes by their number, ascending."""
    pids = sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}


def stands_still(pid: int) -> bool:
    """Tell whether no thread of a process runs or can be woken."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return True
    stats = (read_stat(pid, int(thread)) for thread in threads)
    return all(stat is None or stat.is_still for stat in stats)
