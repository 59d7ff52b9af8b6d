"""Runs a call in a copy of this process, which never outlives it."""

import os
import resource
import select
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from footprint.system.c_library import prctl

_PR_SET_PDEATHSIG: Final = 1
# A copy may be killed while it writes: how many bytes it has to tell stands before them.
_LENGTH_BYTES: Final = 8
_PAUSE_MILLISECONDS: Final = 500


@contextmanager
def forked(
    work: Callable[[], bytes | memoryview], caps: Mapping[int, int]
) -> Iterator[Callable[[], tuple[bytes, int]]]:
    """Start a copy of this process that does some work, and end it after the block.

    Yields a function that waits for the copy, and returns what the work returned and the signal that ended the copy.
    The bytes are empty where the copy ended before all was told; the signal is 0 where none is known.

    Args:
        work: The call. An exception of it is an end without an answer.
        caps: The soft limits that are lowered for the copy, such as `resource.RLIMIT_CPU`.

    Raises:
        OSError: If there may be no further process, or no memory for it.
    """
    reading, writing = os.pipe()
    signals: list[int] = []
    child = 0
    with open(reading, "rb") as file:

        def answer() -> tuple[bytes, int]:
            # A read would wait on where Ctrl-C comes just before it: Python looks for signals between its instructions.
            poll = select.poll()
            poll.register(file)
            while not poll.poll(_PAUSE_MILLISECONDS):
                pass
            length, payload = file.read(_LENGTH_BYTES), file.read()
            signals.append(_wait(child))
            return payload if int.from_bytes(length) == len(payload) else b"", signals[0]

        # Ctrl-C waits until there is somebody who ends the copy. In the copy it waits for ever.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            try:
                parent, child = os.getpid(), os.fork()
                if child == 0:
                    _work(work, caps, parent, writing)
            finally:
                os.close(writing)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield answer
        finally:
            if child and not signals:
                _end(child)


def _work(work: Callable[[], bytes | memoryview], caps: Mapping[int, int], parent: int, writing: int) -> NoReturn:
    """Work in the copy, and write what comes of it. Nothing that was open before is written or cleaned."""
    with suppress(BaseException):
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() == parent:
            # The end of a copy that works too long leaves no core file.
            for which, most in {resource.RLIMIT_CORE: 0, **caps}.items():
                now = resource.getrlimit(which)
                soft = min(number for number in (most, *now) if number != resource.RLIM_INFINITY)
                resource.setrlimit(which, (soft, now[1]))
            payload = work()
            with open(writing, "wb") as file:
                file.write(len(payload).to_bytes(_LENGTH_BYTES))
                file.write(payload)
    os._exit(0)


def _end(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
    except PermissionError:
        # `--drop-privileges` forbids signals to others. The kernel ends the copy when this process ends.
        return
    except ProcessLookupError:
        pass
    _wait(child)


def _wait(child: int) -> int:
    """Wait for the copy, and return the signal that ended it."""
    try:
        status = os.waitpid(child, 0)[1]
    except ChildProcessError:
        # The program that footprint is a library of waits for all its children.
        return 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
