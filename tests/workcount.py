"""Count the work of a call, which is the same on a slow machine as on a quick one: lines of Python, steps of patterns.

A line counts each time that it runs, also as the body of a loop, a comprehension or a generator that stands on one
line. What else C does in a call is not seen; it has the patience of a minute, which only what never ends uses up.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

from footprint.system.limits import time_limit
from tests import patternsteps
from tests.patternsteps import counted_patterns

__all__ = ("GROWTH", "MOST_GROWTH", "Work", "assert_linear", "warm_up", "work_of")

GROWTH: Final = 4
MOST_GROWTH: Final = 4.4
"""What is linear grows by `GROWTH`; the rest is for tables that double. What is quadratic grows by 16."""
_PATIENCE_SECONDS: Final = 60
_UNCOUNTED: Final = {__file__, patternsteps.__file__}

_Input = TypeVar("_Input")


class Work(NamedTuple):
    """The work of a call.

    Attributes:
        line_count: The lines that it runs in this thread, those of the libraries too.
        step_count: The steps that the regular expressions of the package take.
    """

    line_count: int
    step_count: int


def work_of(call: Callable[[], object]) -> Work:
    """Return the work of a call."""
    line_count = 0

    def trace(frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401 # itself
        nonlocal line_count
        if frame.f_code.co_filename in _UNCOUNTED:
            return None
        line_count += 1
        return count

    def count(_frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401 # itself
        nonlocal line_count
        line_count += 1
        return count

    before = sys.gettrace()
    with counted_patterns() as steps, _patience():
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
    return Work(line_count, steps.count)


def _patience() -> AbstractContextManager[None]:
    error = AssertionError(f"it goes on after {_PATIENCE_SECONDS} seconds of the processor")
    return time_limit(_PATIENCE_SECONDS, error)  # type: ignore[arg-type]


def warm_up(call: Callable[[], object]) -> None:
    """Run a call before its work is counted: what it imports, and the patterns that are parsed, are no work of it.

    The package may keep patterns for the calls that are counted, so they have to be those that count.
    """
    with counted_patterns(), _patience():
        call()


def assert_linear(make: Callable[[int], _Input], read: Callable[[_Input], object], size: int) -> Work:
    """Check that four times the input makes at most 4.4 times the work; return that of the larger one.

    Args:
        make: Makes the input of a size, which is not counted.
        read: Reads it.
        size: The smaller size. It must be large enough for the work to be more than that of an empty input.
    """
    small, large = make(size), make(GROWTH * size)
    warm_up(lambda: read(small))
    less, more = work_of(lambda: read(small)), work_of(lambda: read(large))
    for name, little, much in zip(Work._fields, less, more, strict=True):
        assert much <= MOST_GROWTH * little, f"{name} {little:,} for {size:,}, {much:,} for 4 times that"
    return more
