"""How many fit: each limit by itself, and which of them is hit first."""

from collections.abc import Sequence

from footprint.errors import UsageError
from footprint.model.projection import FitLimit, LimitUnit

__all__ = ("how_many_fit", "memory_limit")


def memory_limit(memory_bytes: int, reserve_bytes: int = 0) -> FitLimit:
    """Return a memory as a limit, a part of which is left for others."""
    return FitLimit("memory", LimitUnit.BYTES, memory_bytes, reserve_bytes)


def how_many_fit(
    limits: Sequence[FitLimit], *, each_bytes: int, once_bytes: int, each_tasks: int, once_tasks: int = 0
) -> tuple[FitLimit, ...]:
    """Compute how many fit into each limit, and return the limits in order: the one that is hit first comes first.

    Args:
        limits: The limits. Those on tasks are left out where it is unknown how many tasks one takes (0).
        each_bytes: What each costs.
        once_bytes: What all pay once.
        each_tasks: The threads of each.
        once_tasks: The threads that are there once.

    Raises:
        UsageError: If one costs nothing, so that any number would fit.
    """
    if each_bytes <= 0:
        raise UsageError("one more costs nothing by this input: any number fits")
    costs = {LimitUnit.BYTES: (each_bytes, once_bytes), LimitUnit.TASKS: (each_tasks, once_tasks)}
    found = []
    for limit in limits:
        each, once = costs[limit.unit]
        if each:
            count = max(0, (limit.most - limit.taken - once) // each)
            found.append(limit._replace(each=each, count=count))
    return tuple(sorted(found, key=lambda limit: limit.count))
