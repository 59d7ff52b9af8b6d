"""The stops of a traced thread, and the requests that end them: ptrace(2)."""

import ctypes
import signal
from contextlib import suppress
from typing import Final

from footprint.system.c_library import ptrace

EVENT_CLONE: Final = 3
EVENT_EXEC: Final = 4
EVENT_EXIT: Final = 6
EVENT_STOP: Final = 128
STOPPING: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
"""The signals that stop a process."""

_EVENT_FORK: Final = 1
_EVENT_VFORK: Final = 2
_CONT: Final = 7
_DETACH: Final = 17
_SETOPTIONS: Final = 0x4200
_GETEVENTMSG: Final = 0x4201
_SEIZE: Final = 0x4206
_INTERRUPT: Final = 0x4207
_LISTEN: Final = 0x4208
_OPTIONS: Final = 1 << EVENT_CLONE | 1 << EVENT_EXEC | 1 << EVENT_EXIT | 1 << 20  # PTRACE_O_EXITKILL
_TRACERS: Final = frozenset({"gdb", "gdbserver", "lldb", "lldb-server", "ltrace", "rr", "strace"})
_FOLLOWING: Final = 1 << _EVENT_FORK | 1 << _EVENT_VFORK


def seize(task: int, *, follows: bool) -> None:
    """Begin to trace a thread, and on request the processes that it forks.

    Raises:
        OSError: Where the kernel does not allow it.
    """
    ptrace(_SEIZE, task, _OPTIONS | (_FOLLOWING if follows else 0))


def interrupt(task: int) -> None:
    """Stop a thread, which is traced from then on; without options, so that it outlives its tracer.

    Raises:
        OSError: Where the kernel does not allow it, or the thread has ended.
    """
    try:
        ptrace(_INTERRUPT, task)
    except ProcessLookupError:
        # It is not traced by us.
        ptrace(_SEIZE, task)
        ptrace(_INTERRUPT, task)


def follow(task: int, *, follows: bool) -> None:
    """Begin or end tracing the processes that a traced and stopped thread forks."""
    ptrace(_SETOPTIONS, task, _OPTIONS | (_FOLLOWING if follows else 0))


def is_tracer(task: int) -> bool:
    """Return whether a task runs a program that traces others, which the kernel refuses for those that we trace."""
    with suppress(OSError), open(f"/proc/{task}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().rstrip("\n") in _TRACERS
    return False


def cont(task: int, signal_number: int = 0) -> None:
    """Continue a stopped thread, and deliver a signal to it."""
    ptrace(_CONT, task, signal_number)


def detach(task: int, signal_number: int = 0) -> None:
    """Stop tracing a thread, and deliver a signal to it."""
    ptrace(_DETACH, task, signal_number)


def listen(task: int) -> None:
    """Leave a thread stopped by a signal stopped, until another signal continues it."""
    ptrace(_LISTEN, task)


def event_message(task: int) -> int:
    """Read the number that belongs to an event, such as the ID of a new thread."""
    message = ctypes.c_ulong()
    ptrace(_GETEVENTMSG, task, ctypes.addressof(message))
    return message.value
