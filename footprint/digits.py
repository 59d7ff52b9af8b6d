"""The one rule by which a text of strangers is a decimal number."""

from typing import Final

__all__ = ("decimal",)

_MOST_DIGITS: Final = 19
"""So many digits have all numbers below 2^63."""


def decimal(text: str | bytes) -> int | None:
    """Return the number that 1 to 19 digits of ASCII write, or None for any other text.

    `int` alone takes signs, blanks, underscores and the digits of all scripts, `isdigit` takes superscripts that `int`
    refuses, and more than 4,300 digits raise a ValueError.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
