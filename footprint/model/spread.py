"""A figure over several starts of a program."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ("ONE_START", "Spread", "Spreads")


class Spread(NamedTuple):
    """A figure over several starts, in bytes; the median is one of them, the lower where two are in the middle."""

    min_bytes: int
    median_bytes: int
    max_bytes: int


class Spreads(NamedTuple):
    """How much the starts of a run differ: in all, and by owner in private memory."""

    private: Spread | None = None
    per_process: Spread | None = None
    owners: Mapping[str, Spread] = MappingProxyType({})


ONE_START: Final = Spreads()
