"""Estimates for all blocks of a sampled heap profile."""

from math import expm1

from footprint.errors import InputError
from footprint.heap.call_tree_builder import MOST_AMOUNT

__all__ = ("scaled",)


def scaled(blocks: int, size_bytes: int, period_bytes: int, source: str) -> tuple[int, int]:
    """Scale the sampled blocks and bytes of one stack to all blocks; samples are `period_bytes` apart on average.

    Sampling is a Poisson process: a block of mean size x is sampled with the probability 1 - exp(-x / period), so the
    number of blocks is the number of samples divided by that probability.

    Raises:
        InputError: Where the result is larger than an address space.
    """
    if not blocks or not size_bytes or period_bytes <= 1:
        return blocks, size_bytes
    factor = -1 / expm1(-size_bytes / blocks / period_bytes)
    amounts = blocks * factor, size_bytes * factor
    if max(amounts) > MOST_AMOUNT:
        raise InputError(source, "its samples scale to more than an address space")
    return round(amounts[0]), round(amounts[1])
