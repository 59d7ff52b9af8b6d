"""Stopping a process while it is read, and continuing it afterwards, also after an error.

Source: signal(7), pidfd_open(2).
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from footprint.errors import AccessError, UsageError
from footprint.process.stat import stands_still

__all__ = ("frozen",)

_PATIENCE_SECONDS: Final = 5.0
# Signals that would end or stop footprint while it holds a process. SIGKILL and SIGSTOP cannot be blocked.
_BLOCKED: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
)


@contextmanager
def frozen(pid: int) -> Iterator[bool]:
    """Stop a process with SIGSTOP, and continue it at the end; a process that was already stopped stays stopped.

    Signals that would end footprint in between are blocked until the process runs again.

    Returns:
        Whether all its threads have stopped: a thread that waits in the kernel can take longer than we wait.

    Raises:
        AccessError: Where the process does not exist, or we may not stop it.
        UsageError: Where the process is footprint itself.
    """
    if pid == os.getpid():
        raise UsageError("footprint cannot stop its own process")
    source = f"pid {pid}"
    try:
        handle = _Handle(pid)
    except OSError as error:
        raise AccessError(source, "no such process") from error
    with handle:
        if stands_still(pid) or not _has_memory(pid):
            yield True
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            try:
                handle.send(signal.SIGSTOP)
            except PermissionError as error:
                cause = "permission denied: only its own user or root (CAP_KILL) may stop it"
                raise AccessError(source, cause) from error
            except ProcessLookupError as error:
                raise AccessError(source, "the process ended before it was read") from error
            try:
                yield _wait_until_still(pid)
            finally:
                with suppress(ProcessLookupError):
                    handle.send(signal.SIGCONT)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Handle:
    """Sends signals to one process. With pidfd (Linux 5.3) a later process with the same PID is never hit."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor: int | None
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):
            # An older kernel, or a system call filter.
            self._descriptor = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def send(self, number: signal.Signals) -> None:
        if self._descriptor is None:
            os.kill(self._pid, number)
        else:
            signal.pidfd_send_signal(self._descriptor, number)


def _wait_until_still(pid: int) -> bool:
    """Wait until every thread has stopped; return False where that takes too long."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not stands_still(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def _has_memory(pid: int) -> bool:
    """Return whether it is an ordinary process: kernel threads ignore signals."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            return b"\nVmSize:" in status.read()
    except OSError:
        return False
