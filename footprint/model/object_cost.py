"""What each object of a process costs with all that it brings in, as an audit keeps it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ("Need", "ObjectCost", "holders_of")


class Need(NamedTuple):
    """An object that another one brings in.

    Attributes:
        path: Its path.
        symbol_count: How many symbols are used of it; None where it stands in for those of the other one.
    """

    path: str
    symbol_count: int | None


class ObjectCost(NamedTuple):
    """One object of a process, in load order.

    Attributes:
        path: Its path, which is the owner of its rows.
        name: Its soname, else its file name.
        own_bytes: Its private memory: what was measured, else what is surely written at start.
        retained_bytes: The same of all that leaves with it, itself included.
        held_by: The path of the nearest object that it would leave with; None where there is none.
        tls_bytes: What each thread has of its thread-local variables.
        needs: What it brings in; None where that was not saved.
    """

    path: str
    name: str
    own_bytes: int
    retained_bytes: int
    held_by: str | None
    tls_bytes: int
    needs: tuple[Need, ...] | None = None


def holders_of(path: str, held_by: Mapping[str, str | None]) -> Iterator[str]:
    """Give the objects that one would leave with, the nearest first.

    Args:
        path: The path of the one.
        held_by: `held_by` of each object by its path; a saved audit may say that objects hold each other.
    """
    seen = {path}
    holder = held_by.get(path)
    while holder is not None and holder not in seen:
        seen.add(holder)
        yield holder
        holder = held_by.get(holder)
