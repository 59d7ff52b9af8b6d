"""What makes the figures of a program that was run those of a failure: a crash, an exit code, a missed moment."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from footprint.members import NamedTuple

_MOMENTS: Final = {
    "output": "it printed the line that was waited for",
    "settled": "its memory had settled",
    "time": "the time at which to read it",
}


class RunFailureKind(StrEnum):
    """How a run failed; the name by which `--allow` accepts it."""

    SIGNAL = "signal"
    """A signal ended it: SIGSEGV, SIGABRT, ..."""
    EXIT = "exit"
    """It exited with another code than expected."""
    MOMENT = "moment"
    """It ended, or the time was over, before the moment at which it should be read."""
    CHILD = "child"
    """A process that it started crashed: SIGSEGV, SIGABRT, ... Seen with `--follow` and `--when peak`."""
    MEMORY = "memory"
    """The kernel killed it, or a process that it started, for want of memory (OOM)."""


class RunFailure(NamedTuple):
    """A start of a program that failed.

    Attributes:
        kind: How it failed.
        start: Which start: 1 is the first.
        detail: What happened.
    """

    kind: RunFailureKind
    start: int
    detail: str


def which_starts(failed: Sequence[int], start_count: int) -> str:
    """Return the end of a cause, which names its starts: ` (start 2 of 3)`; "" for a single start."""
    if len(failed) > 1:
        return f" ({len(failed)} starts)" if len(failed) >= start_count else f" ({len(failed)} of {start_count} starts)"
    return f" (start {failed[0]} of {start_count})" if start_count > 1 else ""


def failures_of_start(  # noqa: PLR0913 # keyword-only
    start: int,
    *,
    exit_code: int | None,
    signal: str | None,
    wanted_moment: str,
    moment: str,
    is_missed: bool,
    expected_exit: int = 0,
    crashes: Iterable[str] = (),
    out_of_memory: str | None = None,
) -> Iterable[RunFailure]:
    """Find out how a start failed.

    Args:
        start: Which start it is.
        exit_code: Its exit code; None if a signal or footprint ended it.
        signal: The name of the signal that ended it; None if it exited or footprint ended it.
        wanted_moment: The moment that was asked for: `exit`, `settled`, `time`, `output` or `peak`.
        moment: The moment at which it was read; `exit` also where it ended right after the one that was asked for.
        is_missed: Whether a note says that the moment was missed.
        expected_exit: The exit code of success.
        crashes: How processes crashed that it started.
        out_of_memory: The limit at which the kernel killed a process for want of memory; None if it killed none.
    """
    if out_of_memory is not None:
        whom = "it" if signal == "SIGKILL" else "a process that it started"
        yield RunFailure(RunFailureKind.MEMORY, start, f"the kernel killed {whom} for want of memory ({out_of_memory})")
    elif signal is not None:
        yield RunFailure(RunFailureKind.SIGNAL, start, f"{signal} ended it")
    if exit_code not in {None, expected_exit}:
        yield RunFailure(RunFailureKind.EXIT, start, f"it exited with {exit_code}, not with {expected_exit}")
    # A peak is known from the run before; how near this one came to it is part of the answer.
    if is_missed and wanted_moment != "peak":
        what = "it ended" if moment == "exit" else "the time was over"
        yield RunFailure(RunFailureKind.MOMENT, start, f"{what} before {_MOMENTS.get(wanted_moment, 'the moment')}")
    for crash in dict.fromkeys(crashes):
        yield RunFailure(RunFailureKind.CHILD, start, crash)
