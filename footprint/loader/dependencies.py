"""The dependency graph of a link map: what each object retains, and the chains that lead to it.

A process without some needs is computed anew and compared: its objects, their order and their bindings.

Source: Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm (2001).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from footprint.elf.dynsym import SymbolReference
from footprint.loader.bindings import Bindings
from footprint.loader.link_map import Linked, LinkMap, MissingLibrary, places_by_name
from footprint.loader.system import Library
from footprint.loader.target import Libc
from footprint.members import NamedTuple, dataclass

_ROOT: Final = -1


def needs(link_map: LinkMap) -> tuple[tuple[int, ...], ...]:
    """Return for each object the objects that it brings in, once each: its dependencies, then its filtees."""
    substituted = filtees(link_map)
    dependencies = []
    for number, linked in enumerate(link_map.objects):
        places = dict.fromkeys([*(need.place for need in linked.dependencies), *sorted(substituted[number])])
        dependencies.append(tuple([place for place in places if place is not None and place != number]))
    return tuple(dependencies)


def filtees(link_map: LinkMap) -> tuple[frozenset[int], ...]:
    """Return for each object its filtees (DT_FILTER, DT_AUXILIARY), without those that it also needs (DT_NEEDED)."""
    if link_map.libc is Libc.MUSL or not any(linked.library.linkage.filtees for linked in link_map.objects):
        return (frozenset(),) * len(link_map.objects)
    places = places_by_name(link_map.objects)
    return tuple(
        [
            frozenset(places[name] for name, _ in linked.library.linkage.filtees if name in places)
            - {dependency.place for dependency in linked.dependencies}
            for linked in link_map.objects
        ]
    )


def roots(link_map: LinkMap) -> tuple[int, ...]:
    """Return the objects that no other object brings in: the program, preloaded libraries, and the loader."""
    brought = [number for number, linked in enumerate(link_map.objects) if linked.loader is None]
    interpreter = link_map.interpreter
    return tuple(brought if interpreter is None or interpreter in brought else [*brought, interpreter])


def start_order(link_map: LinkMap) -> list[int]:
    """Return the objects in the order in which their constructors run: those that an object needs before it.

    Source: elf/dl-sort-maps.c of glibc 2.35 and later.
    """
    return _reverse_postorder(needs(link_map), range(len(link_map.objects) - 1, -1, -1))[::-1]


def reached(
    needed: Sequence[Sequence[int]], start: Iterable[int], is_kept: Callable[[int, int], bool] = lambda _, __: True
) -> frozenset[int]:
    """Return the objects reachable from `start`, which is included, over the edges that are kept."""
    objects = set(start)
    waiting = list(objects)
    while waiting:
        user = waiting.pop()
        for provider in needed[user]:
            if provider not in objects and is_kept(user, provider):
                objects.add(provider)
                waiting.append(provider)
    return frozenset(objects)


class Retained:
    """The objects that each object retains: itself, and those that only it brings in.

    These are the objects that it dominates: every chain from a root to them leads through it. The sets are made on
    request: those of a long chain would need quadratic memory.

    Args:
        above: The immediate dominator of each reachable object, before those that it dominates.
    """

    def __init__(self, above: dict[int, int]) -> None:
        self._above = above
        self._below: dict[int, list[int]] = {}
        for number, holder in above.items():
            self._below.setdefault(holder, []).append(number)

    def __getitem__(self, number: int) -> frozenset[int]:
        removed, waiting = set[int](), [number]
        while waiting:
            number_of_object = waiting.pop()
            removed.add(number_of_object)
            waiting += self._below.get(number_of_object, ())
        return frozenset(removed)

    def holder(self, number: int) -> int | None:
        """Return the immediate dominator of an object; None where only the process retains it."""
        above = self._above.get(number, _ROOT)
        return None if above == _ROOT else above

    def sums(self, costs: Sequence[int]) -> list[int]:
        """Add up for each object the costs of all objects that it retains."""
        totals = list(costs)
        for number, holder in reversed(self._above.items()):
            if holder != _ROOT:
                totals[holder] += totals[number]
        return totals


def retained(needed: Sequence[Sequence[int]], start: Sequence[int]) -> Retained:
    """Find for each object the objects that it retains."""
    return Retained(_dominators(needed, start))


def chains(needed: Sequence[Sequence[int]], start: Iterable[int], target: int, most: int) -> list[tuple[int, ...]]:
    """Find the shortest chain from a root to an object through each object that needs it directly, shortest first."""
    came_from: dict[int, int] = dict.fromkeys(start, _ROOT)
    waiting = deque(came_from)
    while waiting:
        user = waiting.popleft()
        # No chain contains its own end twice.
        for provider in needed[user] if user != target else ():
            if provider not in came_from:
                came_from[provider] = user
                waiting.append(provider)
    chains_found: list[tuple[int, ...]] = []
    if target in came_from and came_from[target] == _ROOT:
        chains_found.append((target,))
    # The objects of `came_from` are in the order of their distance.
    users = (user for user in came_from if user != target and target in needed[user])
    for user in islice(users, max(0, most - len(chains_found))):
        chain = [target]
        at = user
        while at != _ROOT:
            chain.append(at)
            at = came_from[at]
        chains_found.append(tuple(reversed(chain)))
    return chains_found


def _dominators(needed: Sequence[Sequence[int]], start: Sequence[int]) -> dict[int, int]:
    """Return the immediate dominator of each reachable object."""
    order = _reverse_postorder(needed, start)
    place = {number: index for index, number in enumerate(order)}
    place[_ROOT] = -1
    users: dict[int, list[int]] = {number: [] for number in order}
    for number in start:
        users[number].append(_ROOT)
    for user in order:
        for provider in needed[user]:
            users[provider].append(user)
    dominator: dict[int, int] = {_ROOT: _ROOT}
    is_changed = True
    while is_changed:
        is_changed = False
        for number in order:
            reached_users = [user for user in users[number] if user in dominator]
            nearest = reached_users[0]
            for user in reached_users[1:]:
                nearest = _meet(nearest, user, dominator, place)
            if dominator.get(number) != nearest:
                dominator[number] = nearest
                is_changed = True
    del dominator[_ROOT]
    return dominator


def _meet(first: int, other: int, dominator: dict[int, int], place: dict[int, int]) -> int:
    while first != other:
        while place[first] > place[other]:
            first = dominator[first]
        while place[other] > place[first]:
            other = dominator[other]
    return first


def _reverse_postorder(needed: Sequence[Sequence[int]], start: Iterable[int]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for root in start:
        if root in seen:
            continue
        seen.add(root)
        stack: list[tuple[int, Iterator[int]]] = [(root, iter(needed[root]))]
        while stack:
            number, rest = stack[-1]
            provider = next((need for need in rest if need not in seen), None)
            if provider is None:
                order.append(number)
                stack.pop()
            else:
                seen.add(provider)
                stack.append((provider, iter(needed[provider])))
    return order[::-1]


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
        symbols = before.symbols[user]
        for index in sorted(was.keys() | becomes.keys()):
            new = becomes.get(index)
            if was.get(index) != (None if new is None else _number(stayed, new)):
                yield Rebinding(user, symbols.reference(index), was.get(index), new)


def _number(stayed: Sequence[int | None], place: int) -> int:
    number = stayed[place]
    return -1 - place if number is None else number
