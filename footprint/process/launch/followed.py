"""The descendants of a traced program, stopped for a moment at their exit: none is missed, however short it lives."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from footprint.process.launch.stops import (
    EVENT_EXEC,
    EVENT_EXIT,
    EVENT_STOP,
    STOPPING,
    cont,
    detach,
    event_message,
    is_tracer,
    listen,
)

__all__ = ("Followed",)

# Those of which signal(7) says `Core`: no program sends them to another one to end it.
_CRASHES: Final = frozenset(
    {
        *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
        *(signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP, signal.SIGXCPU, signal.SIGXFSZ),
    }
)
_SIGNAL: Final = 0x7F


class Followed:
    """The descendants of a program. They run as if not traced.

    Args:
        see_exit: Called with a thread that is stopped at its exit, its memory still mapped.
    """

    def __init__(self, see_exit: Callable[[int], object]) -> None:
        self._see_exit = see_exit
        self.crashes: list[str] = []

    def on_stop(self, task: int, status: int) -> None:
        """Handle the stop of a thread, reported by waitpid(2)."""
        number, event = os.WSTOPSIG(status), status >> 16
        with suppress(ProcessLookupError):
            if event == EVENT_EXIT:
                self._see_exit(task)
                self._see_crash(task)
            if event == EVENT_STOP and number in STOPPING:
                listen(task)
            elif event == EVENT_EXEC and is_tracer(task):
                detach(task)
            else:
                cont(task, 0 if event else number)

    def _see_crash(self, task: int) -> None:
        """Remember what crashed: each thread of a process ends by its signal, and its first thread counts."""
        number = event_message(task) & _SIGNAL
        if number not in _CRASHES:
            return
        with suppress(OSError), open(f"/proc/{task}/status", encoding="utf-8", errors="replace") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            if fields.get("Tgid") == str(task):
                self.crashes.append(f"{signal.Signals(number).name} ended {fields.get('Name', task)}, which it started")
