"""A figure over several starts of a program."""

from typing import NamedTuple

__all__ = ("Spread",)


class Spread(NamedTuple):
    """A figure over several starts, in bytes; the median is one of them, the lower where two are in the middle."""

    min_bytes: int
    median_bytes: int
    max_bytes: int
