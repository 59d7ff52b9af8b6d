"""Memory over time: the records of a watch, the file that keeps them, and what they say of growth."""

from typing import Final

USUAL_MOST: Final = "95%"
"""The moment of a series whose audit is nearest to the cost that was not exceeded in 95 % of the time."""

_HEAD: Final = b'{"schema":"footprint/1","verb":"watch","series":'


def looks_like_series(head: bytes) -> bool:
    """Return whether a file begins as a series."""
    return head.startswith(_HEAD)
