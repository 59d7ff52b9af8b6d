"""What a sampled heap profile says of all blocks, from those that were looked at."""

from math import expm1

from footprint.errors import InputError
from footprint.heap.call_tree_builder import MOST_AMOUNT

__all__ = ("scaled",)


def scaled(blocks: int, size_bytes: int, period_bytes: int, source: str) -> tuple[int, int]:
    """Scale blocks and bytes of one stack, of which a byte in every so many, at random, was a reason to look.

    A block of the mean size x is seen with the probability 1 - exp(-x / period), as in a Poisson process; so there are
    one by that probability times as many as were seen.

    Raises:
        InputError: Where the result is more than an address space holds.
    """
    if not blocks or not size_bytes or period_bytes <= 1:
        return blocks, size_bytes
    factor = -1 / expm1(-size_bytes / blocks / period_bytes)
    amounts = blocks * factor, size_bytes * factor
    if max(amounts) > MOST_AMOUNT:
        raise InputError(source, "its samples scale to more than an address space holds")
    return round(amounts[0]), round(amounts[1])
