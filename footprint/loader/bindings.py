"""Who provides each symbol that an object asks for, as the loader finds it: along the load order, first hit wins.

Whether a definition of one library answers a reference of another depends on these two alone; which of the answers wins
depends on the order. So the first is worked out once for each pair, and kept for the programs that come after.

Source: glibc 2.36, elf/dl-lookup.c (check_match, do_lookup_x); musl 1.2.3, ldso/dynlink.c (find_sym).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from footprint.elf.dynsym import DynamicSymbols, SymbolReference, read_dynamic_symbols
from footprint.elf.versions import VERSION_HIDDEN, VERSION_INDEX
from footprint.errors import FootprintError, Note
from footprint.loader.link_map import LinkMap
from footprint.loader.system import Library
from footprint.loader.target import Libc

__all__ = ("Binder", "Bindings")

# To who asks for no version at all, the first that a file defines is as good as none.
_FIRST_VERSION: Final = 2
# Programs have a hundred; from here on it pays to know who offers a name.
_MANY_OBJECTS: Final = 256
_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, eq=False)
class Bindings:
    """Who of the objects of a process binds to whom. Objects are numbered in load order, the program is 0.

    Attributes:
        symbols: What each object offers and asks for.
        providers: For each object, the places of its references by the object that answers them; itself included.
        unanswered: For each object, the places of the references that nobody answers: weak ones, or a program that
            does not start.
        notes: Objects whose tables cannot be read: they offer and ask for nothing here.
        matches: Tells whether an object that defines a name answers a reference to it.
    """

    symbols: tuple[DynamicSymbols, ...]
    providers: tuple[dict[int, frozenset[int]], ...]
    unanswered: tuple[frozenset[int], ...]
    notes: tuple[Note, ...]
    matches: "Callable[[SymbolReference, DynamicSymbols], bool]"

    def references(self, user: int, provider: int) -> tuple[SymbolReference, ...]:
        """Give what one object gets of another, in the order of its symbols."""
        references = self.symbols[user].references
        return tuple([references[place] for place in sorted(self.providers[user].get(provider, ()))])

    def has_other(self, reference: SymbolReference, without: frozenset[int]) -> bool:
        """Tell whether a reference would be answered without some of the objects; an optional one needs no answer."""
        return any(
            reference.name in symbols.found and self.matches(reference, symbols)
            for number, symbols in enumerate(self.symbols)
            if number not in without and not (number == 0 and reference.is_copy)
        )

    def users(self, provider: int) -> tuple[int, ...]:
        """Give the other objects that bind to one."""
        return tuple(self._users.get(provider, ()))

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for user, providers in enumerate(self.providers):
            for provider in providers:
                if provider != user:
                    found.setdefault(provider, []).append(user)
        return found


class Binder:
    """Binds the objects of one process after the other, and keeps what it learned of their libraries."""

    def __init__(self) -> None:
        self._known: dict[tuple[Library, bool], _Object] = {}

    def bind(self, link_map: LinkMap) -> Bindings:
        """Bind the objects of a process."""
        has_versions = link_map.libc is not Libc.MUSL
        program, *libraries = [one.library for one in link_map.objects]
        # Programs are not kept: each is asked about once.
        objects = [_Object(program, has_versions=has_versions)]
        objects += [self._object(library, has_versions=has_versions) for library in libraries]
        # Who looks into itself first; musl does not care.
        own_first = (
            {one for one, library in zip(objects[1:], libraries, strict=True) if library.linkage.is_symbolic}
            if has_versions
            else set()
        )
        numbers = {one: number for number, one in enumerate(objects)}
        found: list[list[tuple[_Object, frozenset[int]]]] = []
        offers = _Offers(objects) if len(objects) > _MANY_OBJECTS else None
        for user in objects:
            scope = objects if offers is None else offers.to(user)
            if user in own_first:
                scope = [user, *(one for one in scope if one is not user)]
            found.append(user.bind(scope))
        if has_versions:
            _unite_unique(objects, found)
        providers, unanswered = [], []
        for user, answers in zip(objects, found, strict=True):
            providers.append({numbers[provider]: places for provider, places in answers})
            answered = sum(len(places) for _, places in answers)
            missing = _NOTHING
            if answered < len(user.symbols.references):
                missing = frozenset(range(len(user.symbols.references))).difference(*(places for _, places in answers))
            unanswered.append(missing)
        notes = tuple([one.note for one in objects if one.note])
        matches = _matches if has_versions else _matches_name
        return Bindings(tuple([one.symbols for one in objects]), tuple(providers), tuple(unanswered), notes, matches)

    def _object(self, library: Library, *, has_versions: bool) -> "_Object":
        key = library, has_versions
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Object(library, has_versions=has_versions, is_kept=True)
        return known


class _Offers:
    """Which objects define each name: of very many objects only those are asked that may have an answer."""

    def __init__(self, objects: Sequence["_Object"]) -> None:
        self._objects = objects
        self._by_name: dict[str, list[int]] = {}
        for number, one in enumerate(objects):
            for name in one.symbols.found:
                self._by_name.setdefault(name, []).append(number)

    def to(self, user: "_Object") -> "list[_Object]":
        """Give the objects that may answer what one asks for, in their order.

        What a template makes, hundreds of objects define: behind the first that answers, nobody is asked.
        """
        numbers: set[int] = set()
        for name, places in user.symbols.asked.items():
            left: Sequence[int] = places
            for number in self._by_name.get(name, ()):
                numbers.add(number)
                left = [place for place in left if not user.is_settled(place, self._objects[number])]
                if not left:
                    break
        return [self._objects[number] for number in sorted(numbers)]


class _Object:
    """What one file offers and asks for, and who answered before."""

    def __init__(self, library: Library, *, has_versions: bool, is_kept: bool = False) -> None:
        self.note: Note | None = None
        try:
            self.symbols = read_dynamic_symbols(library.image)
        except FootprintError as error:
            self.symbols = DynamicSymbols.none()
            detail = f"{error.detail}, who binds to it or to whom is not known"
            self.note = Note("file-unreadable", library.real_path, detail)
        self._has_versions = has_versions
        self._is_kept = is_kept
        self._answers: dict[_Object, frozenset[int]] = {}
        self._bound: dict[tuple[_Object, ...], list[tuple[_Object, frozenset[int]]]] = {}

    def bind(self, scope: Sequence["_Object"]) -> "list[tuple[_Object, frozenset[int]]]":
        """Give who answers what, in the order of the scope."""
        asked = [(one, answer) for one in scope if (answer := self._answer(one))]
        key = tuple([one for one, _ in asked])
        known = self._bound.get(key)
        if known is not None:
            return known
        left = frozenset(range(len(self.symbols.references)))
        found = []
        own = self._own
        if own and asked[0][0].symbols.canonical_plt_entries:
            own -= self._stood_in(asked)
        if own:
            found.append((self, own))
            left -= own
        for one, answer in asked:
            places = answer & left
            if places:
                if one is self and own:
                    found[0] = (self, own | places)
                else:
                    found.append((one, places))
                left -= places
        if all(one._is_kept for one in key):  # noqa: SLF001 # of its own kind
            self._bound[key] = found
        return found

    @cached_property
    def _own(self) -> frozenset[int]:
        """The places of the references that the file keeps to itself, whoever else would answer; not with musl."""
        if not self._has_versions:
            return _NOTHING
        return frozenset([i for i, one in enumerate(self.symbols.references) if one.is_protected and one.is_defined])

    def _stood_in(self, asked: "Sequence[tuple[_Object, frozenset[int]]]") -> frozenset[int]:
        """Give the places of its own functions whose address is the program's, so that it is the same for all."""
        (program, answer), *others = asked
        references, offered = self.symbols.references, program.symbols
        places = {
            place
            for place in self._own & answer
            if not references[place].is_call and offered.found[references[place].name] in offered.canonical_plt_entries
        }
        for one, answered in others:
            if one is self:
                break
            places -= answered
        return frozenset(places)

    def _answer(self, provider: "_Object") -> frozenset[int]:
        """Give the places of the references that another file would answer."""
        known = self._answers.get(provider)
        if known is None:
            known = self._work_out(provider)
            if provider._is_kept and self._is_kept:  # noqa: SLF001 # of its own kind
                self._answers[provider] = known
        return known

    def is_settled(self, place: int, provider: "_Object") -> bool:
        """Tell whether nobody behind another object that defines its name has a say in a reference."""
        # Of its own, those before it decide whether the program stands in for it.
        return provider is self if place in self._own else self._is_answered(place, provider)

    def _work_out(self, provider: "_Object") -> frozenset[int]:
        asked = self.symbols.asked
        names = asked.keys() & provider.symbols.found.keys()
        places = [place for name in names for place in asked[name] if self._is_answered(place, provider)]
        return frozenset(places) if places else _NOTHING

    def _is_answered(self, place: int, provider: "_Object") -> bool:
        reference = self.symbols.references[place]
        # What the program takes over from a library is looked for in the libraries.
        if reference.is_copy and not provider._is_kept:  # noqa: SLF001 # of its own kind
            return False
        return (_matches if self._has_versions else _matches_name)(reference, provider.symbols)


def _matches(reference: SymbolReference, offered: DynamicSymbols) -> bool:
    """Tell whether a file has an answer, by the rules of glibc."""
    name, wanted = reference.name, reference.version
    by_symbol = offered.versions.by_symbol
    newest_count = 0
    for index in offered.several.get(name) or (offered.found[name],):
        if reference.is_call and index in offered.canonical_plt_entries:
            continue
        if by_symbol is None:
            return True
        entry = by_symbol[index]
        is_hidden = entry & VERSION_HIDDEN
        if wanted is None:
            if entry & VERSION_INDEX <= _FIRST_VERSION:
                return True
            newest_count += not is_hidden
            continue
        version = offered.versions.by_index.get(entry & VERSION_INDEX)
        if version is None:
            if not wanted.is_hidden and not is_hidden:
                return True
        elif version.name == wanted.name:
            return True
    return newest_count == 1


def _matches_name(reference: SymbolReference, offered: DynamicSymbols) -> bool:
    """Tell whether a file has an answer, by the rules of musl: names only, and no definition that is hidden."""
    by_symbol = offered.versions.by_symbol
    return any(
        not (reference.is_call and index in offered.canonical_plt_entries)
        and not (by_symbol and by_symbol[index] & VERSION_HIDDEN)
        for index in offered.several.get(reference.name) or (offered.found[reference.name],)
    )


def _unite_unique(objects: Sequence[_Object], found: "list[list[tuple[_Object, frozenset[int]]]]") -> None:
    """Let all who ask for a unique symbol (STB_GNU_UNIQUE) have the one that was found first, whatever its version.

    Objects are relocated last to first.
    """
    seen: set[str] = set()
    several: set[str] = set()
    for one in objects:
        several |= seen & one.symbols.unique
        seen |= one.symbols.unique
    if not several:
        return
    first: dict[str, _Object] = {}
    for number in range(len(objects) - 1, -1, -1):
        user = objects[number]
        names = several & user.symbols.asked.keys()
        wanted = {place: name for name in sorted(names) for place in user.symbols.asked[name]}
        moved = {}
        for provider, places in found[number] if wanted else ():
            for place in sorted(places & wanted.keys()):
                name = wanted[place]
                if name in provider.symbols.unique and (owner := first.setdefault(name, provider)) is not provider:
                    moved[place] = owner
        if moved:
            by_provider = {provider: set(places) - moved.keys() for provider, places in found[number]}
            for place, owner in moved.items():
                by_provider.setdefault(owner, set()).add(place)
            found[number] = [(provider, frozenset(places)) for provider, places in by_provider.items() if places]
