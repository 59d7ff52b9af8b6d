"""What each object of a process costs with all that it brings in, as an audit keeps it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple

from footprint.members import LATER

__all__ = ("Need", "ObjectCost", "holders_of", "were_symbols_read")


class Need(NamedTuple):
    """An object that another one brings in.

    Attributes:
        path: Its path.
        symbol_count: The number of its symbols that are used; None where it is a filtee of the other object, and where
            symbols were not read.
    """

    path: str
    symbol_count: int | None


class ObjectCost(NamedTuple):
    """One object of a process, in load order.

    Attributes:
        path: Its path, which is the owner of its rows.
        name: Its soname, else its file name.
        own_bytes: Its private memory: measured, or the startup minimum where nothing was measured.
        retained_bytes: The private memory of all objects that leave with it, itself included.
        held_by: The path of the nearest object with which it would leave; None where there is none.
        tls_bytes: The bytes of its thread-local variables in each thread.
        needs: The objects that it brings in; None where these were not saved.
        build_id: The build-id of its file; None where it has none, or it was not saved.
    """

    path: str
    name: str
    own_bytes: int
    retained_bytes: int
    held_by: str | None
    tls_bytes: int
    needs: Annotated[tuple[Need, ...] | None, LATER] = None
    build_id: Annotated[str | None, LATER] = None


def were_symbols_read(objects: Iterable[ObjectCost]) -> bool:
    """Return whether the symbols of objects were read, which only a search for findings does.

    Audits of earlier versions were saved with objects only where that was so.
    """
    return any(one.needs is None or any(need.symbol_count is not None for need in one.needs) for one in objects)


def holders_of(path: str, held_by: Mapping[str, str | None]) -> Iterator[str]:
    """Return the objects with which one would leave, the nearest first.

    Args:
        path: The path of the object.
        held_by: `held_by` of each object, by path; in a damaged saved audit objects may hold each other.
    """
    seen = {path}
    holder = held_by.get(path)
    while holder is not None and holder not in seen:
        seen.add(holder)
        yield holder
        holder = held_by.get(holder)
