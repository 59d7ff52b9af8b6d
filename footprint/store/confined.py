"""Runs a call in a process of its own, which ends where it takes more time or memory than the limits allow."""

import os
import pickle
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from traceback import format_exc
from typing import Final, NoReturn, TypeVar

from footprint.c_library import prctl
from footprint.errors import FootprintError, LimitError
from footprint.limits import Limits, limits_in_force
from footprint.units import format_bytes

__all__ = ("confined",)

_PR_SET_PDEATHSIG: Final = 1
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
    reading, writing = os.pipe()
    # Ctrl-C waits until there is somebody who ends the new process.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    parent, child, status = os.getpid(), os.fork(), 0
    if child == 0:
        _work(work, limits, parent, writing)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
        with open(reading, "rb") as file:
            told = file.read()
    finally:
        # It has told all, or nobody waits for it any more. The program that footprint is a library of may wait, too.
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
    if not told:
        raise _end(os.WTERMSIG(status), limits, subject)
    done, error, trace = pickle.loads(told)  # noqa: S301 # of our own process
    if error is None:
        return done  # type: ignore[no-any-return]
    raise error from (None if isinstance(error, FootprintError) else RuntimeError(trace))


def _work(work: Callable[[], object], limits: Limits, parent: int, writing: int) -> NoReturn:
    """Do the work in the new process, and tell what came of it. Nothing that was open before is written or cleaned."""
    with suppress(BaseException):
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() == parent:
            _limit(resource.RLIMIT_CORE, 0)
            _limit(resource.RLIMIT_CPU, limits.seconds)
            _limit(resource.RLIMIT_DATA, _data_bytes() + _ENGINE_BYTES + _MEMORY_SHARES * limits.size_bytes)
            try:
                told = pickle.dumps((work(), None, ""))
            except Exception as error:  # noqa: BLE001 # it is raised in the other process
                told = pickle.dumps((None, error, format_exc()))
            with open(writing, "wb") as file:
                file.write(told)
    os._exit(0)


def _limit(which: int, most: int) -> None:
    """Lower the soft limit of this process: only with that does the end of it tell which one it was."""
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))


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
