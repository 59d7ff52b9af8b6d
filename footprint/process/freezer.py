"""Processes that stand still while they are read, and run on afterwards, whatever happens in between.

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
# What would end or stop footprint while others wait for it. Only SIGKILL and SIGSTOP cannot be put off.
_PUT_OFF: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
)


@contextmanager
def frozen(pid: int) -> Iterator[bool]:
    """Stop a process (SIGSTOP), and continue it at the end; one that was stopped before stays so.

    Signals that would end footprint meanwhile are put off until the process runs again.

    Returns:
        Whether it stands still: a thread that waits in the kernel may not stop within some seconds.

    Raises:
        AccessError: Where it does not exist, or may not be stopped.
        UsageError: For footprint itself.
    """
    if pid == os.getpid():
        raise UsageError("footprint cannot stop itself and read on")
    source = f"pid {pid}"
    try:
        handle = _Handle(pid)
    except OSError as error:
        raise AccessError(source, "no such process") from error
    with handle:
        if stands_still(pid) or not _has_memory(pid):
            yield True
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PUT_OFF)
        try:
            try:
                handle.send(signal.SIGSTOP)
            except PermissionError as error:
                cause = "permission denied: stopping it takes its own user, or root (CAP_KILL)"
                raise AccessError(source, cause) from error
            except ProcessLookupError as error:
                raise AccessError(source, "the process ended before it was read") from error
            try:
                yield _comes_to_stand(pid)
            finally:
                with suppress(ProcessLookupError):
                    handle.send(signal.SIGCONT)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Handle:
    """Sends signals to one process; where the kernel has pidfd (Linux 5.3), never to another that has its number."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor: int | None
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):
            # An older kernel, or a filter of system calls.
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


def _comes_to_stand(pid: int) -> bool:
    """Wait until every thread has stopped."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not stands_still(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def _has_memory(pid: int) -> bool:
    """Tell whether it is an ordinary process: a kernel thread heeds no signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            return b"\nVmSize:" in status.read()
    except OSError:
        return False
