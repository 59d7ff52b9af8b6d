"""A process without some needs: its objects, their order and their bindings, computed anew and compared."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from footprint.elf.dynsym import SymbolReference
from footprint.loader.bindings import Bindings
from footprint.loader.link_map import Linked, LinkMap, MissingLibrary
from footprint.loader.system import Library
from footprint.members import NamedTuple, dataclass


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


@dataclass(frozen=True)
class LibraryRemoval:
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


def compare(link_map: LinkMap, bindings: Bindings, without: LinkMap, bindings_without: Bindings) -> LibraryRemoval:
    """Compare a process with the same process without some needs."""
    numbers = {linked.library: number for number, linked in enumerate(link_map.objects)}
    stayed = [numbers.get(linked.library) for linked in without.objects]
    return LibraryRemoval(
        without,
        bindings_without,
        tuple(_missing(link_map, without)),
        tuple(dict.fromkeys(_replaced(link_map.objects, without.objects, numbers))),
        _swapped([number for number in stayed if number is not None]),
        tuple(_rebindings(bindings, bindings_without, stayed)),
    )


def _missing(before: LinkMap, after: LinkMap) -> Iterator[MissingLibrary]:
    missing_before = {(before.objects[need.requester].library, need.name) for need in before.missing}
    return (need for need in after.missing if (after.objects[need.requester].library, need.name) not in missing_before)


def _replaced(before: Sequence[Linked], after: Sequence[Linked], numbers: dict[Library, int]) -> Iterator[Replaced]:
    for user in after:
        number = numbers.get(user.library)
        places = {need.name: need.place for need in before[number].dependencies} if number is not None else {}
        for name, place in user.dependencies:
            was = places.get(name)
            if place is not None and was is not None and after[place].library is not before[was].library:
                yield Replaced(name, was, after[place].path)


def _swapped(order: Sequence[int]) -> tuple[int, int] | None:
    return next(((place, other) for place, other in pairwise(order) if place > other), None)


def _rebindings(before: Bindings, after: Bindings, stayed: Sequence[int | None]) -> Iterator[Rebinding]:
    for place, user in enumerate(stayed):
        if user is None:
            continue
        was_bound = before.providers[user]
        # An object that was not there before is told apart by a negative number.
        is_bound = {_number(stayed, provider): places for provider, places in after.providers[place].items()}
        if is_bound == was_bound:
            continue
        was = {index: provider for provider, places in was_bound.items() for index in places}
        becomes = {index: provider for provider, places in after.providers[place].items() for index in places}
        references = before.symbols[user].references
        for index in sorted(was.keys() | becomes.keys()):
            new = becomes.get(index)
            if was.get(index) != (None if new is None else _number(stayed, new)):
                yield Rebinding(user, references[index], was.get(index), new)


def _number(stayed: Sequence[int | None], place: int) -> int:
    number = stayed[place]
    return -1 - place if number is None else number
