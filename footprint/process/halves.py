"""Works on the two halves of a long list at the same time, where a second processor is free."""

import os
import pickle
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeVar

from footprint.files import inputs_read
from footprint.forked import forked
from footprint.limits import limits_in_force
from footprint.process.processors import usable_processor_count

__all__ = ("in_halves",)

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
        first, (told, _) = work(items[:middle]), answer()
    if not told:
        return [first, work(items[middle:])]
    second, inputs = pickle.loads(told)  # noqa: S301 # of our own process
    inputs_read().update(inputs)
    return [first, second]


def _pickled(found: object) -> memoryview:
    told = BytesIO()
    pickler = pickle.Pickler(told, pickle.HIGHEST_PROTOCOL)
    # Its type has no name in a module that pickle could write.
    pickler.dispatch_table = {MappingProxyType: lambda one: (_read_only, (dict(one),))}
    pickler.dump(found)
    return told.getbuffer()


def _read_only(found: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(found)
