"""Signals and children of our own process while it runs a program."""

import ctypes
import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from footprint.system.c_library import LIBC, buffer, os_error, prctl

ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
_REASONS: Final[list[Callable[[], bool]]] = []


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Turn signals that would end us at once into KeyboardInterrupt, so that nothing is left behind.

    Where `go_on_where` has a reason to go on, they end us when the outermost such context is left.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        received.append(number)
        if not any(is_reason() for is_reason in _REASONS):
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in ENDING if is_main and signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if ours:
            _REASONS.clear()
        if received:
            os.kill(os.getpid(), received[0])


def go_on_where(is_reason: Callable[[], bool]) -> None:
    """Keep signals from interrupting where there is a reason, until `interrupted_by_signals` is left."""
    if threading.current_thread() is threading.main_thread():
        _REASONS.append(is_reason)


@contextmanager
def adopting() -> Iterator[bool]:
    """Adopt orphans of the program as our children, where we have and can get no other children.

    That holds where there is no other thread and there were no children before.
    """
    before = buffer(bytes(4))
    if (
        threading.active_count() > 1
        or has_children()
        or prctl(_PR_GET_CHILD_SUBREAPER, before)
        or prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ):
        yield False
        return
    try:
        yield True
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, *struct.unpack("i", before))


def has_children() -> bool:
    """Return whether this process has children, including ended ones that nobody has waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def signal_descriptor(number: int) -> int:
    """Open a descriptor that is readable when a blocked signal has come."""
    mask = (ctypes.c_ulong * 16)()
    LIBC.sigemptyset(mask)
    LIBC.sigaddset(mask, number)
    descriptor = int(LIBC.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        raise os_error()
    return descriptor
