"""Many records of one type at once."""

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeVar

__all__ = ("each_record", "records")

_T = TypeVar("_T")


def records(cls: Callable[..., _T], rows: Iterable[tuple[Any, ...]]) -> list[_T]:
    """Return a NamedTuple for each row, which has a value for each field.

    Python runs no step for a row: to call the type takes more than twice as long (benchmarks/records.py).
    """
    return list(each_record(cls, rows))


def each_record(cls: Callable[..., _T], rows: Iterable[tuple[Any, ...]]) -> Iterator[_T]:
    """Return an iterator over the same."""
    return map(tuple.__new__, repeat(cls), rows)  # type: ignore[arg-type] # `cls` is a type
