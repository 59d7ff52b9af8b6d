"""Many records of one type at once."""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, TypeVar

__all__ = ("records",)

_T = TypeVar("_T")


def records(cls: Callable[..., _T], rows: Iterable[tuple[Any, ...]]) -> list[_T]:
    """Return a NamedTuple for each row, which has a value for each field.

    Python runs no step for a row: to call the type takes more than twice as long (benchmarks/records.py).
    """
    return list(map(tuple.__new__, repeat(cls), rows))  # type: ignore[arg-type] # `cls` is a type
