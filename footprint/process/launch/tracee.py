"""The threads of the program, stopped at their exit by ptrace(2)."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from footprint.errors import AccessError
from footprint.process.freezer import (
    EVENT_CLONE,
    EVENT_EXEC,
    EVENT_EXIT,
    EVENT_STOP,
    STOPPING,
    cont,
    detach,
    event_message,
    follow,
    is_tracer,
    listen,
    seize,
)
from footprint.process.start_counters import StartCounters, read_counters
from footprint.process.status import Stat, read_stat

STOP_SECONDS: Final = 5.0  # the longest time that stopping may take
# How long a thread may wait for another one that is stopped at its exit.
HOLD_SECONDS: Final = 0.05


class Tracee:
    """The threads of one traced process. They run as if not traced, until all have reached their exit.

    Args:
        pid: The process.
        follow: Called with the stops of its descendants and their states; None where they are not traced.
    """

    def __init__(self, pid: int, follow: Callable[[int, int], None] | None = None) -> None:
        self._pid = pid
        self._follow = follow
        self._running: set[int] = set()
        self._stopped: set[int] = set()
        self._exiting: set[int] = set()
        self._held_since = 0.0
        self._is_released = False
        self._has_executed = False
        self._at_start: StartCounters | None = None

    @property
    def has_any(self) -> bool:
        """Whether any thread is traced and alive."""
        return bool(self._running or self._exiting)

    @property
    def is_exiting(self) -> bool:
        """Whether every thread is stopped at its exit, with the memory still mapped."""
        return bool(self._exiting) and not self._running

    @property
    def is_ending_early(self) -> bool:
        """Whether it is stopped at its exit without having executed the program."""
        return self.is_exiting and not self._has_executed

    @property
    def is_still(self) -> bool:
        """Whether every thread has stopped, at its exit or elsewhere."""
        return self._running <= self._stopped

    @property
    def has_ended_threads(self) -> bool:
        """Whether /proc still lists threads that have ended; the main thread stays listed to the last."""
        with suppress(FileNotFoundError, ProcessLookupError):
            threads = {int(name) for name in os.listdir(f"/proc/{self._pid}/task")}
            return bool(threads - self._exiting - self._running - {self._pid})
        return False

    @property
    def task(self) -> int:
        """A thread that still has the memory: the main thread may end before the others."""
        alive = self._exiting or self._running
        return self._pid if self._pid in alive or not alive else min(alive)

    @property
    def spent(self) -> StartCounters | None:
        """What it costs since it executed the program; None where that was not seen."""
        with suppress(AccessError):
            return self._at_start and read_counters(self._pid, "").since(self._at_start)
        return None

    def seize(self) -> None:
        """Begin to trace.

        Raises:
            OSError: Where the kernel does not allow it.
        """
        seize(self._pid, follows=self._follow is not None)
        self._running = {self._pid}

    def on_stop(self, task: int, status: int) -> None:
        """Handle the stop of a thread, reported by waitpid(2)."""
        number, event = os.WSTOPSIG(status), status >> 16
        self._stopped.discard(task)
        # Any thread may end at any time.
        with suppress(ProcessLookupError):
            if task not in self._running and not self._is_own(task):
                self._on_stop_of_other(task, status)
            elif event == EVENT_EXIT:
                self._on_exit(task)
            else:
                self._running.add(task)
                self._on_event(task, event, number)

    def _on_stop_of_other(self, task: int, status: int) -> None:
        if self._follow is not None:
            self._follow(task, status)
        else:
            # A process cloned with another signal than SIGCHLD is traced like a thread: release it.
            detach(task, 0 if status >> 16 else os.WSTOPSIG(status))

    def _on_event(self, task: int, event: int, number: int) -> None:
        if event == EVENT_STOP and number in STOPPING:
            self._stopped.add(task)
            listen(task)
            return
        if event == EVENT_EXEC:
            # Only the calling thread is left, with the ID of the main thread.
            self._running, self._stopped, self._exiting = {self._pid}, set(), set()
            if not self._has_executed:
                with suppress(AccessError):
                    self._at_start = read_counters(self._pid, "")
            self._has_executed = True
            if self._follow is not None:
                follow(task, follows=not is_tracer(task))
        elif event == EVENT_CLONE and self._is_own(thread := event_message(task)):
            self._running.add(thread)
        cont(task, 0 if event else number)

    def _is_own(self, task: int) -> bool:
        return os.path.exists(f"/proc/{self._pid}/task/{task}")

    def _on_exit(self, task: int) -> None:
        """Keep a thread at its exit where the whole process ends; release one that ends alone: others may wait."""
        self._running.discard(task)
        self._exiting.add(task)
        stats = self._running_stats()
        if stats and len(self._exiting) == 1:
            self._held_since = time.monotonic()
        program_stat = read_stat(self._pid, task)
        is_ending = any(stat.is_killed for stat in (*stats, *([program_stat] if program_stat else [])))
        if self._is_released or (stats and not is_ending):
            self._resume(task)

    def _running_stats(self) -> list[Stat]:
        """Read the state of the threads that have not reached their exit; SIGKILL ends some without that stop."""
        stats = []
        for task in tuple(self._running):
            stat = read_stat(self._pid, task)
            if stat is None or stat.is_dead:
                self._running.discard(task)
            else:
                stats.append(stat)
        return stats

    def _resume(self, task: int) -> None:
        self._exiting.discard(task)
        with suppress(ProcessLookupError):
            cont(task)

    def release_awaited(self) -> None:
        """Release threads that a live one waits for, because it executes a program or dumps core."""
        if not self._exiting or not self._running:
            return
        held_seconds = time.monotonic() - self._held_since
        is_waited_for = any(stat.state in "DS" and not stat.is_killed for stat in self._running_stats())
        if held_seconds > STOP_SECONDS or (held_seconds > HOLD_SECONDS and is_waited_for):
            for task in tuple(self._exiting):
                self._resume(task)

    def forget(self, task: int) -> None:
        """Remove a thread that has ended."""
        for tasks in (self._running, self._stopped, self._exiting):
            tasks.discard(task)

    def release_all(self) -> None:
        """Release all stopped threads, and stop none from now on."""
        self._is_released = True
        for task in tuple(self._exiting):
            self._resume(task)
