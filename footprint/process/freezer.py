"""Holding processes while they are read. However footprint ends, SIGKILL included, they run on.

A child of footprint traces them. When it ends, the kernel lets all that it traces run on, with the signals that came
meanwhile. It ends when footprint says so or is gone, and after the longest time. Parents and shells of the processes
see no stop. A process that a signal has stopped (SIGSTOP) is not touched.

Source: ptrace(2), PTRACE_SEIZE; exit_ptrace in kernel/ptrace.c.
"""

import ctypes
import json
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from footprint.errors import UsageError
from footprint.process.status import read_stat, stands_still
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
_POLL_SECONDS: Final = 0.001
_REAP_SECONDS: Final = 0.02
_WALL: Final = 0x40000000  # __WALL: threads, too
# Signals that would end or stop footprint, or the child, while processes are held. SIGKILL and SIGSTOP cannot be
# blocked.
_BLOCKED: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
)


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


@contextmanager
def frozen(pids: Sequence[int], longest_seconds: float) -> Iterator[Callable[[int], str | None]]:
    """Hold processes, all at one moment, and let them run on at the end, or after the longest time.

    Signals that would end footprint in between are blocked until the processes run again.

    Args:
        pids: The processes. Those that have ended, and kernel threads, are left out.
        longest_seconds: How long they may be held.

    Returns:
        A function that returns why a process has not stood still up to now, or None if it has.

    Raises:
        OSError: Where no child can be started.
        UsageError: Where a process is footprint itself.
    """
    if os.getpid() in pids:
        raise UsageError("footprint cannot stop its own process")
    moving = [pid for pid in pids if _has_memory(pid) and not stands_still(pid)]
    if not moving:
        yield lambda _: None
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    try:
        holder, control, causes = _start_holder(moving, longest_seconds)

        def cause(pid: int) -> str | None:
            if pid not in moving or pid in causes:
                return causes.get(pid)
            return f"it was held for {longest_seconds:g} s, the longest stop" if _has_ended(holder) else None

        try:
            yield cause
        finally:
            os.close(control)
            with suppress(ChildProcessError):
                os.waitpid(holder, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_holder(pids: Sequence[int], longest_seconds: float) -> tuple[int, int, dict[int, str]]:
    """Start the child. Return its PID, the descriptor that ends it when closed, and why processes did not stop."""
    reading, telling = os.pipe()
    ending, control = os.pipe()
    holder = os.fork()
    if holder == 0:
        # Nothing of what footprint has open may be written or cleaned up here.
        with suppress(BaseException):
            os.close(control)
            _hold(pids, time.monotonic() + longest_seconds, telling, ending)
        os._exit(0)
    os.close(telling)
    os.close(ending)
    with open(reading, "rb") as file:
        text = file.read()
    causes = {} if text else dict.fromkeys(map(str, pids), "the process that held it was killed")
    return holder, control, {int(pid): cause for pid, cause in (json.loads(text) if text else causes).items()}


def _has_ended(child: int) -> bool:
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # The program that footprint is a library of waits for all children.
        return True


def _hold(pids: Sequence[int], until: float, telling: int, ending: int) -> None:
    """Stop processes, tell which could not be stopped, and wait. When this process ends, they run on."""
    causes: dict[int, str] = {}
    moving = set(pids)
    while moving and time.monotonic() < until and not select.select([ending], [], [], 0)[0]:
        moving -= {pid for pid in moving if _is_settled(pid, causes)}
        if moving:
            time.sleep(_POLL_SECONDS)
    causes.update(dict.fromkeys(moving, "it did not stop in time"))
    with open(telling, "wb") as file:
        file.write(json.dumps(causes).encode())
    while time.monotonic() < until and not select.select([ending], [], [], _REAP_SECONDS)[0]:
        # The parent of a process that is killed meanwhile learns of it only then.
        with suppress(ChildProcessError):
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | _WALL):
                pass


def _is_settled(pid: int, causes: dict[int, str]) -> bool:
    """Interrupt the threads that run; return whether none does, or the kernel does not allow it."""
    threads = _threads(pid)
    moving = [thread for thread in threads if _is_moving(pid, thread)]
    for thread in moving:
        try:
            interrupt(thread)
        except OSError as error:
            if _is_moving(pid, thread):
                causes[pid] = _refusal(pid, error)
                return True
    # The last one that ran may have begun another one.
    return not moving and _threads(pid) == threads


def _threads(pid: int) -> set[int]:
    try:
        return set(map(int, os.listdir(f"/proc/{pid}/task")))
    except (FileNotFoundError, ProcessLookupError):
        return set()


def _is_moving(pid: int, thread: int) -> bool:
    stat = read_stat(pid, thread)
    return stat is not None and not stat.is_still and not stat.is_dead


def _refusal(pid: int, error: OSError) -> str:
    """Return why the kernel lets us not trace a process."""
    tracer = re.search(rb"\nTracerPid:\t([1-9][0-9]*)\n", _status(pid))
    if tracer:
        return f"process {tracer[1].decode()} traces it, such as a debugger"
    return f"the kernel does not let us hold it ({error.strerror}): root may (CAP_SYS_PTRACE)"


def _has_memory(pid: int) -> bool:
    """Return whether it is an ordinary process: kernel threads cannot be traced. The main thread may have ended."""
    return any(b"\nVmSize:" in _status(thread) for thread in sorted(_threads(pid)))


def _status(task: int) -> bytes:
    try:
        with open(f"/proc/{task}/status", "rb") as status:
            return status.read()
    except OSError:
        return b""
