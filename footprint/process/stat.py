"""`/proc/PID/stat`: the name, state, parent, session and start time of a process or thread.

Source: do_task_stat in fs/proc/array.c of Linux 2.6.14 to 6.18; proc_pid_stat(5).
"""

import os
import signal
from typing import Final, NamedTuple

__all__ = ("Stat", "parse_stat", "processes", "read_stat", "stands_still")

_STILL: Final = frozenset("TtZX")
# Indexes of the fields behind the name, which is the second field.
_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING = 1, 3, 6, 19, 28
_EXITING: Final = 0x4  # PF_EXITING
_SIGNALED: Final = 0x400  # PF_SIGNALED
# The errors of /proc for a process that has ended, or that we may not see (hidepid).
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)


class Stat(NamedTuple):
    """The fields of a stat line that footprint needs.

    Attributes:
        name: The name of the task, cut by the kernel to 15 bytes.
        state: One letter: `R` running, `S` sleeping, `T` stopped, `t` traced, `Z` zombie, `X` dead, ...
        parent_pid: The PID of the parent.
        session: The session ID.
        flags: The flags of the kernel (PF_...).
        start_ticks: The start time, in clock ticks since boot.
        pending: The pending signals below 33, as a bit mask.
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
        """Whether it is stopped, traced or ended: it neither runs nor can be woken."""
        return self.state in _STILL

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, or is too far in its exit for ptrace to stop it there."""
        return self.state in "ZX" or bool(self.flags & _EXITING)

    @property
    def is_killed(self) -> bool:
        """Whether a signal ends it, or SIGKILL is pending, as for the other threads of a process that exits."""
        return bool(self.flags & _SIGNALED or self.pending >> (signal.SIGKILL - 1) & 1)


def parse_stat(line: bytes) -> Stat | None:
    """Read a stat line; return None where the text has another form."""
    # The name is in parentheses and may contain any character, parentheses included.
    before, end, after = line.rpartition(b") ")
    words = after.split() if end else []
    try:
        numbers = [int(words[index]) for index in (_PARENT, _SESSION, _FLAGS, _START_TICKS, _PENDING)]
    except (IndexError, ValueError):
        return None
    return Stat(before.partition(b"(")[2], words[0].decode("ascii", "replace"), *numbers)


def read_stat(pid: int, thread: int | None = None) -> Stat | None:
    """Read the stat line of a process or of one of its threads; return None where it has ended."""
    folder = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    try:
        with open(f"{folder}/stat", "rb") as file:
            return parse_stat(file.read())
    except _GONE:
        return None


def processes() -> dict[int, Stat]:
    """Read the stat lines of all processes, by ascending PID."""
    pids = sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}


def stands_still(pid: int) -> bool:
    """Return whether every thread of a process is stopped, traced or ended."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return True
    stats = (read_stat(pid, int(thread)) for thread in threads)
    return all(stat is None or stat.is_still for stat in stats)
