"""A figure over several starts of a program."""

from collections.abc import Mapping
from math import comb
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.members import json_members

__all__ = ("NO_MEMORY", "ONE_START", "Spread", "Spreads", "overlap", "separation_confidence")


@json_members("min=min_bytes median=median_bytes max=max_bytes")
class Spread(NamedTuple):
    """A figure over several starts.

    Attributes:
        min_bytes: The smallest value.
        median_bytes: The value in the middle; of two in the middle the lower.
        max_bytes: The largest value.
    """

    min_bytes: int
    median_bytes: int
    max_bytes: int


NO_MEMORY: Final = Spread(0, 0, 0)
"""What a run holds of what none of its starts has."""


def overlap(one: Spread, other: Spread) -> bool:
    """Return whether the starts of two runs overlap, so that their difference may be chance."""
    return one.min_bytes <= other.max_bytes and other.min_bytes <= one.max_bytes


def separation_confidence(count: int, other: int) -> float:
    """Compute how sure it is that two groups of starts differ, if all of one lie above all of the other.

    If nothing had changed, each order of the starts would be as likely as any other, and only one choice of `count`
    among all of them is the upper group.
    """
    return 1 - 1 / comb(count + other, count)


class Spreads(NamedTuple):
    """How much the starts of a run differ: in all, and by owner in private memory.

    Attributes:
        private: Private memory.
        per_process: The cost of one process.
        owners: The private memory of each owner, with what the kernel spends.
        start_count: The number of starts.
        peak: The peak of the program with its descendants.
        kinds: The memory of each kind.
        retained: For each object the private memory of all that leaves with it.
    """

    private: Spread | None = None
    per_process: Spread | None = None
    owners: Mapping[str, Spread] = MappingProxyType({})
    start_count: int = 1
    peak: Spread | None = None
    kinds: Mapping[str, Spread] = MappingProxyType({})
    retained: Mapping[str, Spread] = MappingProxyType({})


ONE_START: Final = Spreads()
