"""The object that provides each symbol reference, as the loader finds it: the first match in load order.

Whether a definition in one library matches a reference in another depends on these two libraries only; the load order
decides which match wins. So the matches of each pair are computed once and kept for the next programs.

Source: glibc 2.36, elf/dl-lookup.c (check_match, do_lookup_x); musl 1.2.3, ldso/dynlink.c (find_sym).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, repeat
from operator import getitem, ne
from typing import Final

from footprint.elf.dynsym import DynamicSymbols, SymbolReference, read_dynamic_symbols
from footprint.elf.versions import VERSION_HIDDEN, VERSION_INDEX
from footprint.errors import FootprintError, Note
from footprint.loader.link_map import LinkMap
from footprint.loader.system import Library
from footprint.loader.target import Libc
from footprint.members import dataclass

# To a reference without version, the first version that a file defines counts as no version.
_FIRST_VERSION: Final = 2
# Programs have about a hundred objects; from this number on an index by name is quicker.
_MANY_OBJECTS: Final = 256
_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, eq=False)
class Bindings:
    """The symbol bindings between the objects of a process. Objects are numbered in load order; the program is 0.

    Attributes:
        symbols: The definitions and references of each object.
        providers: For each object, the indexes of its references by the object that provides them, itself included.
            A reference without provider is in none of them.
        undefined: For each object, the indexes of its references that none provides and that are not weak.
        notes: Objects with unreadable symbol tables: they have no definitions and references here.
        matches: Returns whether an object that defines a name provides a reference to it.
    """

    symbols: tuple[DynamicSymbols, ...]
    providers: tuple[dict[int, frozenset[int]], ...]
    undefined: tuple[frozenset[int], ...]
    notes: tuple[Note, ...]
    matches: "Callable[[SymbolReference, DynamicSymbols], bool]"

    def references(self, user: int, provider: int) -> tuple[SymbolReference, ...]:
        """Return the references of one object that another one provides, in the order of its symbols."""
        return tuple(map(self.symbols[user].reference, sorted(self.providers[user].get(provider, ()))))

    def has_other(self, reference: SymbolReference, without: frozenset[int]) -> bool:
        """Return whether another object would provide a reference without these objects."""
        return any(
            reference.name in symbols.defined and self.matches(reference, symbols)
            for number, symbols in self._definers(reference.name)
            if number not in without and not (number == 0 and reference.is_copy)
        )

    def first_match(self, reference: SymbolReference) -> int | None:
        """Return the first object in load order that has a definition for a reference, as if it were not protected."""
        matching = (
            number
            for number, symbols in self._definers(reference.name)
            if reference.name in symbols.defined and self.matches(reference, symbols)
        )
        return next(matching, None)

    def _definers(self, name: str) -> Iterable[tuple[int, DynamicSymbols]]:
        """Return the objects that may define a name, with their numbers."""
        if len(self.symbols) <= _MANY_OBJECTS:
            return enumerate(self.symbols)
        # One after the other: whoever asks for any of thousands often takes the first.
        return ((number, self.symbols[number]) for number in self._by_name.get(name, ()))

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        return _numbers_by_name(self.symbols)

    def users(self, provider: int) -> tuple[int, ...]:
        """Return the other objects that bind to an object."""
        return tuple(self._users.get(provider, ()))

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        users_by_provider: dict[int, list[int]] = {}
        for user, providers in enumerate(self.providers):
            for provider in providers:
                if provider != user:
                    users_by_provider.setdefault(provider, []).append(user)
        return users_by_provider


NO_BINDINGS: Final = Bindings((), (), (), (), lambda _reference, _symbols: False)
"""The bindings of objects whose symbols were not read."""


class Binder:
    """Binds the objects of several processes, and keeps the matches between their libraries."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Library, bool], _Object] = {}
        self._program: tuple[Library, bool, _Object] | None = None
        self._offers = _Offers(())

    def bind(self, link_map: LinkMap) -> Bindings:
        """Bind the objects of a process."""
        has_versions = link_map.libc is not Libc.MUSL
        program, *libraries = [linked.library for linked in link_map.objects]
        objects = [self._program_object(program, has_versions=has_versions)]
        objects += [self._object(library, has_versions=has_versions) for library in libraries]
        # Objects that search themselves first (DT_SYMBOLIC); musl ignores that.
        own_first = (
            {user for user, library in zip(objects[1:], libraries, strict=True) if library.linkage.is_symbolic}
            if has_versions
            else set()
        )
        numbers = {user: number for number, user in enumerate(objects)}
        bindings: list[_Bound] = []
        undefined: list[frozenset[int]] = []
        # A process without some needs has no other objects.
        if not self._offers.objects >= numbers.keys():
            self._offers = _Offers(objects)
        for user in objects:
            scope = self._offers.to(user, numbers)
            if user in own_first:
                scope = [user, *(searched for searched in scope if searched is not user)]
            bound, left = user.bind(scope, self._offers)
            bindings.append(bound)
            undefined.append(left)
        if has_versions:
            _unite_unique(objects, bindings)
        providers = tuple([{numbers[provider]: places for provider, places in answers} for answers in bindings])
        notes = tuple([user.note for user in objects if user.note])
        matches = _matches if has_versions else _matches_name
        return Bindings(tuple([user.symbols for user in objects]), providers, tuple(undefined), notes, matches)

    def _program_object(self, program: Library, *, has_versions: bool) -> "_Object":
        """Return the object of a program; only the last one is kept, for the same program without some needs."""
        if self._program is None or self._program[:2] != (program, has_versions):
            self._program = program, has_versions, _Object(program, has_versions=has_versions)
        return self._program[2]

    def _object(self, library: Library, *, has_versions: bool) -> "_Object":
        key = library, has_versions
        bound_object = self._objects.get(key)
        if bound_object is None:
            bound_object = self._objects[key] = _Object(library, has_versions=has_versions, is_kept=True)
        return bound_object


def _numbers_by_name(symbols: Sequence[DynamicSymbols]) -> dict[str, list[int]]:
    """Return for each name the objects that define it."""
    numbers_by_name: dict[str, list[int]] = {}
    for number, symbol in enumerate(symbols):
        for name in symbol.defined:
            numbers_by_name.setdefault(name, []).append(number)
    return numbers_by_name


class _Offers:
    """The objects by those names they define that one of them looks up. Nearly all names have one definition."""

    def __init__(self, objects: Sequence["_Object"]) -> None:
        self.objects = frozenset(objects)
        self._only: dict[str, _Object] = {}
        self._several: dict[str, list[_Object]] = {}
        self._shared: dict[_Object, tuple[dict[_Object, list[int]], set[str]]] = {}
        requested = set[str]().union(*[user.symbols.requested for user in objects])
        for provider in objects:
            names = requested & provider.symbols.defined.keys()
            for name in self._only.keys() & names:
                self._several.setdefault(name, [self._only[name]]).append(provider)
            self._only |= dict.fromkeys(names, provider)
        for name in self._several:
            del self._only[name]

    def _shared_by(self, user: "_Object") -> "tuple[dict[_Object, list[int]], set[str]]":
        """Return the references of an object that one object defines, by that object, and the names of the others."""
        shared = self._shared.get(user)
        if shared is None:
            requested, only = user.symbols.requested, defaultdict[_Object, list[int]](list)
            for name in requested.keys() & self._only.keys():
                only[self._only[name]] += requested[name]
            shared = self._shared[user] = only, requested.keys() & self._several.keys()
        return shared

    def places(self, user: "_Object", provider: "_Object") -> list[int]:
        """Return the references of an object whose names another one defines."""
        only, several = self._shared_by(user)
        names, requested = several & provider.symbols.defined.keys(), user.symbols.requested
        return [*only.get(provider, ()), *[place for name in names for place in requested[name]]]

    def to(self, user: "_Object", numbers: "Mapping[_Object, int]") -> "list[_Object]":
        """Return the possible providers for the references of an object among some objects, by their numbers.

        Hundreds of objects define the functions of a template: objects behind the first match are left out.
        """
        requested = user.symbols.requested
        only, several = self._shared_by(user)
        possible = only.keys() & numbers.keys()
        for name in several:
            left: Sequence[int] = requested[name]
            for provider in sorted(numbers.keys() & self._several[name], key=numbers.__getitem__):
                possible.add(provider)
                left = [place for place in left if not user.is_settled(place, provider)]
                if not left:
                    break
        return sorted(possible, key=numbers.__getitem__)


class _Object:
    """The definitions and references of one file, with the matches found so far."""

    def __init__(self, library: Library, *, has_versions: bool, is_kept: bool = False) -> None:
        self.note: Note | None = None
        try:
            self.symbols = read_dynamic_symbols(library.image)
        except FootprintError as error:
            self.symbols = DynamicSymbols.none()
            detail = f"{error.detail}; its symbol bindings are unknown"
            self.note = Note("file-unreadable", library.real_path, detail)
        self._has_versions = has_versions
        self._is_kept = is_kept
        self._answers: dict[_Object, frozenset[int]] = {}
        self._bound: dict[tuple[_Object, ...], tuple[_Bound, frozenset[int]]] = {}

    def bind(self, scope: Sequence["_Object"], offers: _Offers) -> "tuple[_Bound, frozenset[int]]":
        """Return the providers with the references that each one provides, in the order of the scope; what is left."""
        answering = [(provider, answer) for provider in scope if (answer := self._answer(provider, offers))]
        key = tuple([provider for provider, _ in answering])
        cached = self._bound.get(key)
        if cached is not None:
            return cached
        left = set(range(len(self.symbols.reference_names)))
        bindings = []
        own_references = self._bound_to_itself
        if own_references and answering and answering[0][0].symbols.canonical_plt_entries:
            own_references -= self._canonical_in_program(answering)
        if own_references:
            bindings.append((self, own_references))
            left -= own_references
        for provider, answer in answering:
            places = answer & left
            if places:
                if provider is self and own_references:
                    bindings[0] = (self, own_references | places)
                else:
                    bindings.append((provider, places))
                left -= places
        bound = bindings, frozenset([place for place in left if not self.symbols.kind(place).is_weak])
        if all(bound_object._is_kept for bound_object in key):  # noqa: SLF001 # of its own kind
            self._bound[key] = bound
        return bound

    @cached_property
    def _bound_to_itself(self) -> frozenset[int]:
        """The references that bind to the file itself whatever the scope (protected symbols); none with musl."""
        if not self._has_versions:
            return _NOTHING
        return self.symbols.places_of(lambda kind: kind.is_protected and kind.is_defined)

    def _canonical_in_program(self, answering: "Sequence[tuple[_Object, frozenset[int]]]") -> frozenset[int]:
        """Return the references to its own functions whose address is a canonical PLT entry of the program."""
        (program, answer), *others = answering
        names, offered = self.symbols.reference_names, program.symbols
        places = {
            place
            for place in self._bound_to_itself & answer
            if not self.symbols.kind(place).is_call and offered.defined[names[place]] in offered.canonical_plt_entries
        }
        for provider, answered in others:
            if provider is self:
                break
            places -= answered
        return frozenset(places)

    def _answer(self, provider: "_Object", offers: _Offers) -> frozenset[int]:
        """Return the references that another file can provide."""
        answer = self._answers.get(provider)
        if answer is None:
            answer = self._find_answer(provider, offers.places(self, provider))
            if provider._is_kept and self._is_kept:  # noqa: SLF001 # of its own kind
                self._answers[provider] = answer
        return answer

    def is_settled(self, place: int, provider: "_Object") -> bool:
        """Return whether no object behind this provider can provide a reference."""
        # For a protected symbol, the objects before it decide whether the program has a canonical PLT entry for it.
        return provider is self if place in self._bound_to_itself else self._is_answered(place, provider)

    def _find_answer(self, provider: "_Object", places: Sequence[int]) -> frozenset[int]:
        """Return which of the references can another file provide that defines their names."""
        offered = provider.symbols
        is_plain = provider._is_kept and not offered.canonical_plt_entries  # noqa: SLF001 # of its own kind
        if not self._has_versions or not is_plain:
            return frozenset([place for place in places if self._is_answered(place, provider)])
        if (by_symbol := offered.versions.by_symbol) is None:
            return frozenset(places)
        # Nearly all references ask for the very version of the last definition of their name.
        indexes = map(offered.defined.__getitem__, map(self.symbols.reference_names.__getitem__, places))
        entries = map(getitem, repeat(by_symbol), indexes)
        versions = list(map(provider._offered_versions.get, entries, repeat(0)))  # noqa: SLF001 # the same
        wanted = list(map(self._wanted_versions.__getitem__, places))
        others = compress(places, map(ne, wanted, versions)) if wanted != versions else ()
        return frozenset(places).difference([place for place in others if not self._is_answered(place, provider)])

    @cached_property
    def _offered_versions(self) -> dict[int, str | None]:
        return self.symbols.versions.names_by_entry

    @cached_property
    def _wanted_versions(self) -> list[str | None]:
        """By reference the name of the version that it asks for."""
        names = [kind.version and kind.version.name for kind in self.symbols.kinds]
        return list(map(names.__getitem__, self.symbols.kind_numbers))

    def _is_answered(self, place: int, provider: "_Object") -> bool:
        reference = self.symbols.reference(place)
        # The program does not provide the symbols that it copies from a library (copy relocations).
        if reference.is_copy and not provider._is_kept:  # noqa: SLF001 # of its own kind
            return False
        return (_matches if self._has_versions else _matches_name)(reference, provider.symbols)


_Bound = list[tuple[_Object, frozenset[int]]]


def _matches(reference: SymbolReference, offered: DynamicSymbols) -> bool:
    """Return whether a file provides a reference, by the rules of glibc."""
    name, wanted = reference.name, reference.version
    by_symbol = offered.versions.by_symbol
    newest_count = 0
    for index in offered.several.get(name) or (offered.defined[name],):
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
    """Return whether a file provides a reference, by the rules of musl: by name, and no hidden version."""
    by_symbol = offered.versions.by_symbol
    return any(
        not (reference.is_call and index in offered.canonical_plt_entries)
        and not (by_symbol and by_symbol[index] & VERSION_HIDDEN)
        for index in offered.several.get(reference.name) or (offered.defined[reference.name],)
    )


def _unite_unique(objects: Sequence[_Object], bindings: list[_Bound]) -> None:
    """Bind all references to a unique symbol (STB_GNU_UNIQUE) to the definition found first, whatever its version.

    The loader relocates the objects from last to first.
    """
    seen: set[str] = set()
    several: set[str] = set()
    for linked in objects:
        several |= seen & linked.symbols.unique
        seen |= linked.symbols.unique
    if not several:
        return
    first: dict[str, _Object] = {}
    for number in range(len(objects) - 1, -1, -1):
        user = objects[number]
        names = several & user.symbols.requested.keys()
        wanted = {place: name for name in sorted(names) for place in user.symbols.requested[name]}
        moved = {}
        for provider, places in bindings[number] if wanted else ():
            for place in sorted(places & wanted.keys()):
                name = wanted[place]
                if name in provider.symbols.unique and (owner := first.setdefault(name, provider)) is not provider:
                    moved[place] = owner
        if moved:
            by_provider = {provider: set(places) - moved.keys() for provider, places in bindings[number]}
            for place, owner in moved.items():
                by_provider.setdefault(owner, set()).add(place)
            bindings[number] = [(provider, frozenset(places)) for provider, places in by_provider.items() if places]
