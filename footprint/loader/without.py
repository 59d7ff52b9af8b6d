"""A process without some needs: its objects, their order and their bindings, computed anew and compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from footprint.elf.dynsym import SymbolReference
from footprint.loader.bindings import Bindings
from footprint.loader.link_map import Linked, LinkMap, MissingLibrary
from footprint.loader.system import Library

__all__ = ("Rebinding", "Replaced", "Without", "compare")


class Replaced(NamedTuple):
    """A name that would lead to another file: the object that it leads to now, and the path of the other file."""

    name: str
    before: int
    after: str


class Rebinding(NamedTuple):
    """A reference of an object that would be provided by another object, or by none.

    Attributes:
        user: The object that stays.
        reference: What it refers to.
        before: The object that provides it now; None where none does.
        after: The object that would, numbered in the process without the needs; None where none would.
    """

    user: int
    reference: SymbolReference
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Without:
    """A process without some needs. Objects are numbered as in the process with them, where nothing else is said.

    Attributes:
        link_map: Its link map.
        bindings: Its bindings.
        missing: The libraries that would be missing only then; their requesters are numbered in `link_map`.
        replaced: The names that would lead to another file.
        swapped: The first two objects that stay, and would be loaded the other way around; None where all keep their
            order.
        rebindings: The references of staying objects that would be bound differently.
    """

    link_map: LinkMap
    bindings: Bindings
    missing: tuple[MissingLibrary, ...]
    replaced: tuple[Replaced, ...]
    swapped: tuple[int, int] | None
    rebindings: tuple[Rebinding, ...]


def compare(link_map: LinkMap, bindings: Bindings, without: LinkMap, bindings_without: Bindings) -> Without:
    """Compare a process with the same process without some needs."""
    numbers = {one.library: number for number, one in enumerate(link_map.objects)}
    stayed = [numbers.get(one.library) for one in without.objects]
    return Without(
        without,
        bindings_without,
        tuple(_missing(link_map, without)),
        tuple(dict.fromkeys(_replaced(link_map.objects, without.objects, numbers))),
        _swapped([number for number in stayed if number is not None]),
        tuple(_rebindings(bindings, bindings_without, stayed)),
    )


def _missing(before: LinkMap, after: LinkMap) -> Iterator[MissingLibrary]:
    known = {(before.objects[one.requester].library, one.name) for one in before.missing}
    return (one for one in after.missing if (after.objects[one.requester].library, one.name) not in known)


def _replaced(before: Sequence[Linked], after: Sequence[Linked], numbers: dict[Library, int]) -> Iterator[Replaced]:
    for user in after:
        number = numbers.get(user.library)
        places = {one.name: one.place for one in before[number].dependencies} if number is not None else {}
        for name, place in user.dependencies:
            was = places.get(name)
            if place is not None and was is not None and after[place].library is not before[was].library:
                yield Replaced(name, was, after[place].path)


def _swapped(order: Sequence[int]) -> tuple[int, int] | None:
    return next(((one, other) for one, other in pairwise(order) if one > other), None)


def _rebindings(before: Bindings, after: Bindings, stayed: Sequence[int | None]) -> Iterator[Rebinding]:
    for place, user in enumerate(stayed):
        if user is None:
            continue
        held = before.providers[user]
        # An object that was not there before is told apart by a negative number.
        found = {_number(stayed, one): places for one, places in after.providers[place].items()}
        if found == held:
            continue
        was = {index: one for one, places in held.items() for index in places}
        becomes = {index: one for one, places in after.providers[place].items() for index in places}
        references = before.symbols[user].references
        for index in sorted(was.keys() | becomes.keys()):
            new = becomes.get(index)
            if was.get(index) != (None if new is None else _number(stayed, new)):
                yield Rebinding(user, references[index], was.get(index), new)


def _number(stayed: Sequence[int | None], place: int) -> int:
    number = stayed[place]
    return -1 - place if number is None else number
