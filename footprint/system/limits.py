"""The budget of work of one answer: bytes, entries and seconds, which everything that reads input draws from.

Input decides how much work it makes: compressed bytes become a thousand times as many, a pattern of folders matches
40^6 paths, an archive names one file 2,000 times. So whoever follows such a claim draws from the budget first, and the
answer ends with one error where it is spent. What a field of a format may claim is checked by the reader of the format.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from footprint.errors import FootprintError, LimitError, UsageError
from footprint.members import NamedTuple
from footprint.text.units import format_bytes, parse_bytes

_activity = ""


def begin_activity(text: str) -> None:
    """Set what footprint does from now on, such as `reads /usr/bin/gdb`."""
    global _activity  # noqa: PLW0603 # one command does one thing at a time
    _activity = text


def current_activity() -> str:
    """Return what footprint does now; empty before the first of it."""
    return _activity


# Texts and profiles shrink by a factor of 3 to 30; smaps of 30,000 alike mappings by 87 (gzip), of
# 1,500 threads by 198 (zstd -19, xz). A few bytes must not make work of many seconds: what a text may become grows with
# what was read.
_MOST_RATIO: Final = 32
_MOST_RATIO_OF_SMALL: Final = 256
_SMALL_BYTES: Final = 32 << 20
_ANY_RATIO_BYTES: Final = 1 << 20
# A handler may take the error for damage of one file, and go on with the next one: then it comes again.
_AGAIN_SECONDS: Final = 1

_P = ParamSpec("_P")
_Found = TypeVar("_Found")


class Limits(NamedTuple):
    """The limits on the work for one answer.

    Attributes:
        size_bytes: The bytes of texts in memory, and of what was compressed.
        entry_count: The entries that are followed: names in folders, paths of a search, members of archives.
        seconds: The processor time, which only the command limits.
        is_raised: Whether the user chose `size_bytes`: then compressed input may have any ratio.
    """

    size_bytes: int = 1 << 30
    entry_count: int = 1 << 20
    seconds: int = 600
    is_raised: bool = False


STANDARD: Final = Limits()


class _Budget:
    """What is left of the limits of one answer."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.spent_bytes = self.spent_count = 0


_current: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(limits: Limits | None = None) -> Iterator[None]:
    """Limit the work of a block, which has a budget of its own.

    Args:
        limits: The limits; None for those that are in force, as for each program of a survey.
    """
    before = _current.set(_Budget(limits or _budget().limits))
    try:
        yield
    finally:
        _current.reset(before)


def answer(call: Callable[_P, _Found]) -> Callable[_P, _Found]:
    """Return a library call that has a budget of its own, where its caller has not made one.

    What the call sets for its own answer, such as the roots that it enters, does not outlive it.
    """

    def limited_call(*args: _P.args, **kwargs: _P.kwargs) -> _Found:
        with nullcontext() if _current.get() else limited():
            return call(*args, **kwargs)

    @wraps(call)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _Found:
        return copy_context().run(limited_call, *args, **kwargs)

    return called


def limits_in_force() -> Limits:
    """Return the limits of the answer that is being made."""
    return _budget().limits


def draw_bytes(count: int, source: str) -> None:
    """Draw bytes that are going to be in memory.

    Raises:
        LimitError: Where the budget is spent.
    """
    budget = _budget()
    budget.spent_bytes += count
    most = budget.limits.size_bytes
    if budget.spent_bytes > most:
        raise LimitError(source, f"spent {_of_bytes(budget.spent_bytes, most)}", "bytes", format_bytes(2 * most))


def draw_entries(count: int, source: str) -> None:
    """Draw entries that are going to be followed.

    Raises:
        LimitError: Where the budget is spent.
    """
    budget = _budget()
    budget.spent_count += count
    most = budget.limits.entry_count
    if budget.spent_count > most:
        raise LimitError(source, f"spent {budget.spent_count:,} of {most:,} entries", "entries", str(2 * most))


def unpacked(pieces: Iterator[bytes], packed_bytes: int, source: str) -> Iterator[bytes]:
    """Draw decompressed pieces, of which the budget allows a multiple of the compressed bytes.

    Raises:
        LimitError: Where they are too many, or the budget is spent.
    """
    limits = _budget().limits
    most = limits.size_bytes
    if not limits.is_raised:
        small_bytes = min(_SMALL_BYTES, max(_ANY_RATIO_BYTES, packed_bytes * _MOST_RATIO_OF_SMALL))
        most = min(most, max(small_bytes, packed_bytes * _MOST_RATIO))
    total_bytes = 0
    for piece in pieces:
        total_bytes += len(piece)
        if total_bytes > most:
            cause = f"spent {_of_bytes(total_bytes, most)} for {format_bytes(packed_bytes)} of compressed input"
            raise LimitError(source, cause, "bytes", format_bytes(2 * most))
        draw_bytes(len(piece), source)
        yield piece


def parse_limits(text: str) -> Limits:
    """Read limits as `--limits` takes them, such as `bytes=4GiB,entries=5000000,seconds=3600`; each may be absent.

    Raises:
        UsageError: For another name, a wrong number, or one that is given twice.
    """
    amounts: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        field = {"bytes": "size_bytes", "entries": "entry_count", "seconds": "seconds"}.get(name)
        if field is None or field in amounts:
            raise UsageError(f"--limits: write it like bytes=4GiB,entries=5000000,seconds=3600, not {text[:80]!r}")
        if name == "bytes":
            amounts[field] = parse_bytes(value)
        elif value.isascii() and value.isdigit() and len(value) <= 12:
            amounts[field] = int(value)
        if not amounts.get(field):
            raise UsageError(f"--limits: {part.strip()[:80]!r} has no number above 0")
    return Limits(**amounts, is_raised="size_bytes" in amounts)


def is_main_thread() -> bool:
    """Return whether this is the main thread, which alone gets signals.

    A program that has not imported `threading` has no other: to import it costs 3,000,000 instructions.
    """
    threading = sys.modules.get("threading")
    return threading is None or threading.current_thread() is threading.main_thread()


@contextmanager
def time_limit(seconds: float, error: FootprintError | None = None) -> Iterator[None]:
    """Stop a block after so much processor time of this process; `re` checks for signals while it matches.

    Only the main thread gets signals: in another one nothing is limited. The time of an outer block goes on.

    Args:
        seconds: The time.
        error: What is raised; None for the error of a spent budget.

    Raises:
        LimitError: Where it takes longer, or the error that was given.
    """
    import signal  # noqa: PLC0415 # for the command only

    if not is_main_thread():
        yield
        return

    def give_up(*_: object) -> None:
        cause = f"spent {seconds:g} of {seconds:g} seconds of processor time"
        raise error or LimitError("the answer", cause, "seconds", f"{2 * seconds:g}")

    before = signal.signal(signal.SIGVTALRM, give_up)
    left, again = signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        used = seconds - signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)
        if left:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left - used, 0.001), again)


@contextmanager
def untimed() -> Iterator[None]:
    """Stop the clock of the processor time in a block: a watch goes on for days, and limits each of its audits."""
    import signal  # noqa: PLC0415 # for the command only

    left, again = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, left, again)


def _budget() -> _Budget:
    # Whoever calls a reader directly has a budget for each thing that is drawn.
    return _current.get() or _Budget(STANDARD)


def _of_bytes(spent: int, most: int) -> str:
    return f"{format_bytes(spent)} of {format_bytes(most)}"
