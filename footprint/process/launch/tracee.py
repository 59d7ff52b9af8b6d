"""The threads of the program, held at their exit by ptrace(2)."""

import ctypes
import os
import signal
import time
from contextlib import suppress
from typing import Final

from footprint.process.ptrace import ptrace
from footprint.process.stat import Stat, read_stat

__all__ = ("HOLD_SECONDS", "STOP_SECONDS", "Tracee")

STOP_SECONDS: Final = 5.0  # what stopping may take
# A thread that waits for one that is held at its exit is let wait for so long.
HOLD_SECONDS: Final = 0.05

_CONT: Final = 7
_DETACH: Final = 17
_GETEVENTMSG: Final = 0x4201
_SEIZE: Final = 0x4206
_LISTEN: Final = 0x4208
_EVENT_CLONE: Final = 3
_EVENT_EXEC: Final = 4
_EVENT_EXIT: Final = 6
_EVENT_STOP: Final = 128
_OPTIONS: Final = 1 << _EVENT_CLONE | 1 << _EVENT_EXEC | 1 << _EVENT_EXIT | 1 << 20  # PTRACE_O_EXITKILL
_STOPPING: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})


def _event_message(task: int) -> int:
    message = ctypes.c_ulong()
    ptrace(_GETEVENTMSG, task, ctypes.addressof(message))
    return message.value


class Tracee:
    """The threads of one traced process. They run as if they were not, until all have come to their exit."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._running: set[int] = set()
        self._stopped: set[int] = set()
        self._exiting: set[int] = set()
        self._held_since = 0.0
        self._is_let_go = False

    @property
    def has_any(self) -> bool:
        """Whether any thread is traced and alive."""
        return bool(self._running or self._exiting)

    @property
    def is_exiting(self) -> bool:
        """Whether every thread is held at its exit, the memory still there."""
        return bool(self._exiting) and not self._running

    @property
    def is_still(self) -> bool:
        """Whether every thread has stopped, or is held at its exit."""
        return self._running <= self._stopped

    @property
    def has_ended_threads(self) -> bool:
        """Whether some are gone but for their place in /proc; the first one keeps its place to the last."""
        with suppress(FileNotFoundError, ProcessLookupError):
            threads = {int(name) for name in os.listdir(f"/proc/{self._pid}/task")}
            return bool(threads - self._exiting - self._running - {self._pid})
        return False

    @property
    def task(self) -> int:
        """A thread that still has the memory: the first one may be gone before the others."""
        alive = self._exiting or self._running
        return self._pid if self._pid in alive or not alive else min(alive)

    def seize(self) -> None:
        """Begin to trace.

        Raises:
            OSError: Where that is not allowed.
        """
        ptrace(_SEIZE, self._pid, _OPTIONS)
        self._running = {self._pid}

    def on_stop(self, task: int, status: int) -> None:
        """Deal with a thread that has stopped, as waitpid(2) tells."""
        number, event = os.WSTOPSIG(status), status >> 16
        self._stopped.discard(task)
        # Any thread may be gone at any time.
        with suppress(ProcessLookupError):
            if task not in self._running and not self._is_own(task):
                # A process that was cloned with another signal than SIGCHLD came along.
                ptrace(_DETACH, task, 0 if event else number)
            elif event == _EVENT_EXIT:
                self._on_exit(task)
            else:
                self._running.add(task)
                self._on_event(task, event, number)

    def _on_event(self, task: int, event: int, number: int) -> None:
        if event == _EVENT_STOP and number in _STOPPING:
            self._stopped.add(task)
            ptrace(_LISTEN, task)
            return
        if event == _EVENT_EXEC:
            # The thread that called it is the only one left, and has the number of the first one.
            self._running, self._stopped, self._exiting = {self._pid}, set(), set()
        elif event == _EVENT_CLONE and self._is_own(thread := _event_message(task)):
            self._running.add(thread)
        ptrace(_CONT, task, 0 if event else number)

    def _is_own(self, task: int) -> bool:
        return os.path.exists(f"/proc/{self._pid}/task/{task}")

    def _on_exit(self, task: int) -> None:
        """Hold a thread at its exit where the whole process ends; one that ends alone is let go: others may wait."""
        self._running.discard(task)
        self._exiting.add(task)
        stats = self._running_stats()
        if stats and len(self._exiting) == 1:
            self._held_since = time.monotonic()
        own = read_stat(self._pid, task)
        is_ending = any(stat.is_killed for stat in (*stats, *([own] if own else [])))
        if self._is_let_go or (stats and not is_ending):
            self._resume(task)

    def _running_stats(self) -> list[Stat]:
        """Look at the threads that have not come to their exit; SIGKILL makes some end without."""
        found = []
        for task in tuple(self._running):
            stat = read_stat(self._pid, task)
            if stat is None or stat.is_dead:
                self._running.discard(task)
            else:
                found.append(stat)
        return found

    def _resume(self, task: int) -> None:
        self._exiting.discard(task)
        with suppress(ProcessLookupError):
            ptrace(_CONT, task)

    def relent(self) -> None:
        """Let threads go that a live one waits for: it execs, or dumps core, and does not come to its exit before."""
        if not self._exiting or not self._running:
            return
        held_seconds = time.monotonic() - self._held_since
        is_waited_for = any(stat.state in "DS" and not stat.is_killed for stat in self._running_stats())
        if held_seconds > STOP_SECONDS or (held_seconds > HOLD_SECONDS and is_waited_for):
            for task in tuple(self._exiting):
                self._resume(task)

    def forget(self, task: int) -> None:
        """Take note that a thread is gone."""
        for tasks in (self._running, self._stopped, self._exiting):
            tasks.discard(task)

    def let_go(self) -> None:
        """Let all threads exit that are held, and hold none any more."""
        self._is_let_go = True
        for task in tuple(self._exiting):
            self._resume(task)
