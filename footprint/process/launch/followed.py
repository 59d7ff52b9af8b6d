"""The descendants of a traced program, stopped for a moment at their exit: none is missed, however short it lives."""

import os
from collections.abc import Callable
from contextlib import suppress

from footprint.process.launch.stops import (
    EVENT_EXEC,
    EVENT_EXIT,
    EVENT_STOP,
    STOPPING,
    cont,
    detach,
    is_tracer,
    listen,
)

__all__ = ("Followed",)


class Followed:
    """The descendants of a program. They run as if not traced.

    Args:
        see_exit: Called with a thread that is stopped at its exit, its memory still mapped.
    """

    def __init__(self, see_exit: Callable[[int], object]) -> None:
        self._see_exit = see_exit

    def on_stop(self, task: int, status: int) -> None:
        """Handle the stop of a thread, reported by waitpid(2)."""
        number, event = os.WSTOPSIG(status), status >> 16
        with suppress(ProcessLookupError):
            if event == EVENT_EXIT:
                self._see_exit(task)
            if event == EVENT_STOP and number in STOPPING:
                listen(task)
            elif event == EVENT_EXEC and is_tracer(task):
                detach(task)
            else:
                cont(task, 0 if event else number)
