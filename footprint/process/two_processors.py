"""Works on the two halves of a long list at the same time, where a second processor is free."""

import os
import pickle
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import BytesIO
from math import ceil
from types import MappingProxyType
from typing import Final, TypeVar

from footprint.process.control_groups import UNIFIED, kernel_text, parse_membership
from footprint.system.files import inputs_read
from footprint.system.forked import forked
from footprint.system.limits import limits_in_force
from footprint.text.units import decimal


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


# A copy of this process, and what comes back from it, cost as much time as some fifty processes to audit.
_LEAST_ITEMS: Final = 256

_Each = TypeVar("_Each")
_Done = TypeVar("_Done")


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
