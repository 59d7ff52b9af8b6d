"""What each object of a process costs with all that it brings in, as an audit keeps it."""

from typing import NamedTuple

from footprint.audit.composition import Composition

__all__ = ("ObjectCost", "object_costs")


class ObjectCost(NamedTuple):
    """One object of a process, in load order.

    Attributes:
        path: Its path, which is the owner of its rows.
        name: Its soname, else its file name.
        own_bytes: Its private memory: what was measured, else what is surely written at start.
        retained_bytes: The same of all that leaves with it, itself included.
        held_by: The path of the nearest object that it would leave with; None where there is none.
        tls_bytes: What each thread has of its thread-local variables.
    """

    path: str
    name: str
    own_bytes: int
    retained_bytes: int
    held_by: str | None
    tls_bytes: int


def object_costs(composition: Composition) -> tuple[ObjectCost, ...]:
    """Give the objects of a process with what they cost."""
    objects = composition.objects
    found = []
    for number, linked in enumerate(objects):
        predicted, holder = composition.predicted[number], composition.retained.holder(number)
        found.append(
            ObjectCost(
                linked.path,
                composition.name(number),
                composition.cost_bytes((number,)),
                composition.retained_bytes[number],
                None if holder is None else objects[holder].path,
                predicted.tls_bytes if predicted else 0,
            )
        )
    return tuple(found)
