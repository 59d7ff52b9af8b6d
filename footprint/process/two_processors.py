"""Work in copies of this process, which never outlive it: one call, or both halves of a long list at the same time."""

import os
import pickle
import resource
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from math import ceil
from types import MappingProxyType
from typing import Final, NoReturn, TypeVar

from footprint.process.control_groups import UNIFIED, kernel_text, parse_membership
from footprint.system.c_library import prctl
from footprint.system.files import inputs_read
from footprint.system.limits import limits_in_force
from footprint.text.units import decimal

# A copy of this process, and what comes back from it, cost as much time as some fifty processes to audit.
_LEAST_ITEMS: Final = 256
_Each = TypeVar("_Each")
_Done = TypeVar("_Done")
_PR_SET_PDEATHSIG: Final = 1
# A copy may be killed while it writes: how many bytes it has to tell stands before them.
_LENGTH_BYTES: Final = 8
_PAUSE_MILLISECONDS: Final = 500


def usable_processor_count(mount: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> int:
    """Return how many processors this process may keep busy: those it may run on, within the quotas of its cgroups.

    Args:
        mount: Where cgroups of version 2 are mounted.
        membership: The file that says in which of them this process is.
    """
    count = len(os.sched_getaffinity(0))
    folder = parse_membership(kernel_text(membership)).get(UNIFIED, "/")
    while True:
        # The quota of a group holds for the groups inside it, too.
        words = kernel_text(f"{mount}{folder}/cpu.max").strip().partition(" ")
        quota_us, period_us = decimal(words[0]), decimal(words[2])
        if quota_us is not None and period_us:
            count = max(1, min(count, ceil(quota_us / period_us)))
        if folder in {"/", ""}:
            return count
        folder = os.path.dirname(folder)


def in_halves(work: Callable[[Sequence[_Each]], _Done], items: Sequence[_Each]) -> list[_Done]:
    """Return what a call returns for all items, or for the first half of them and for the second one.

    A copy of this process works on the second half. A short list has one call, and so has every list where there is one
    processor, or a second thread, of which the copy would have half. If the copy ends without an answer, the second
    half is worked on here: whatever was wrong is wrong here, too.

    Args:
        work: The call. What it returns can be pickled; what else it changes is lost for the second half, but for which
            files it read.
        items: The list.
    """
    if len(items) < _LEAST_ITEMS or usable_processor_count() < 2 or len(os.listdir("/proc/self/task")) > 1:
        return [work(items)]
    middle = len(items) // 2
    with ExitStack() as stack:
        try:
            answer = stack.enter_context(
                forked(
                    lambda: _pickled((work(items[middle:]), inputs_read())),
                    {resource.RLIMIT_CPU: limits_in_force().seconds},
                )
            )
        except OSError:
            return [work(items)]
        first, (pickled, _) = work(items[:middle]), answer()
    if not pickled:
        return [first, work(items[middle:])]
    second, inputs = pickle.loads(pickled)  # noqa: S301 # of our own process
    inputs_read().update(inputs)
    return [first, second]


def _pickled(result: object) -> memoryview:
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    # Its type has no name in a module that pickle could write.
    pickler.dispatch_table = {MappingProxyType: lambda mapping: (_read_only, (dict(mapping),))}
    pickler.dump(result)
    return buffer.getbuffer()


def _read_only(values: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(values)


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
