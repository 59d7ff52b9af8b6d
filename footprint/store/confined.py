"""Runs a call in a process of its own, which ends where it takes more time or memory than the limits allow."""

import pickle
import resource
import signal
from collections.abc import Callable
from traceback import format_exc
from typing import Final, TypeVar

from footprint.errors import FootprintError, LimitError
from footprint.system.forked import forked
from footprint.system.limits import Limits, limits_in_force
from footprint.text.units import format_bytes

# One share for the engine, one for the texts of the answer, and one for what Python needs for them.
_MEMORY_SHARES: Final = 3
# What the engine and its threads take before they do anything.
_ENGINE_BYTES: Final = 256 << 20
_Done = TypeVar("_Done")


def confined(work: Callable[[], _Done], subject: str) -> _Done:
    """Return what a call returns, or raise what it raises; the process of both is a copy of this one.

    An engine written in C++ sees neither Ctrl-C nor a timer while it works. A process can be ended at any moment.

    Args:
        work: The call. What it returns can be pickled.
        subject: What it is about, for errors.

    Raises:
        LimitError: Where it takes more than the limits in force allow.
    """
    limits = limits_in_force()
    caps = {
        resource.RLIMIT_CPU: limits.seconds,
        resource.RLIMIT_DATA: _data_bytes() + _ENGINE_BYTES + _MEMORY_SHARES * limits.size_bytes,
    }
    with forked(lambda: _packed_result(work), caps) as answer:
        payload, number = answer()
    if not payload:
        raise _end(number, limits, subject)
    done, error, trace = pickle.loads(payload)  # noqa: S301 # of our own process
    if error is None:
        return done  # type: ignore[no-any-return]
    raise error from (None if isinstance(error, FootprintError) else RuntimeError(trace))


def _packed_result(work: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps((work(), None, ""))
    except Exception as error:  # noqa: BLE001 # it is raised in the other process
        return pickle.dumps((None, error, format_exc()))


def _data_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _end(number: int, limits: Limits, subject: str) -> LimitError:
    """Return the error of a process that was ended before it told anything."""
    if number == signal.SIGXCPU:
        cause = f"spent {limits.seconds} of {limits.seconds} seconds of processor time"
        return LimitError(subject, cause, "seconds", str(2 * limits.seconds))
    cause = f"its process ended for want of memory (signal {number}), with {format_bytes(limits.size_bytes)} allowed"
    return LimitError(subject, cause, "bytes", format_bytes(2 * limits.size_bytes))
