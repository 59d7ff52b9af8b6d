"""A figure over several starts of a program."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.members import json_members

__all__ = ("ONE_START", "Spread", "Spreads")


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


class Spreads(NamedTuple):
    """How much the starts of a run differ: in all, and by owner in private memory."""

    private: Spread | None = None
    per_process: Spread | None = None
    owners: Mapping[str, Spread] = MappingProxyType({})


ONE_START: Final = Spreads()
