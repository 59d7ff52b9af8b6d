"""The declared variables of a file: declarations joined with symbols, and variables without a symbol."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace, VariablePlaces
from footprint.elf import abi
from footprint.elf.contents import Contents, Residue, ResidueCause, SectionContents
from footprint.elf.names import normalised
from footprint.elf.symbols import Symbol

_NAMELESS: Final = frozenset({ResidueCause.PADDING, ResidueCause.NO_SYMBOL, ResidueCause.STRIPPED})
# Each of their bytes is searched for. A file without the symbols of its statics has far more of them.
_MOST_NAMELESS_BYTES: Final = 1 << 18
_MOST_COMPARED: Final = 64


class DeclaredVariables:
    """The declarations of the variables of one file.

    Attributes:
        named: The sections and offsets of the variables that only the debug information names.
    """

    def __init__(
        self,
        places: VariablePlaces | None = None,
        by_place: Mapping[VariablePlace, tuple[Declaration, ...]] | None = None,
        named: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.named = named
        self._places = places
        self._by_place = by_place or {}
        self._names: dict[VariablePlace, _DeclaredNames] = {}

    def of(self, section: SectionContents, variable: Symbol) -> Declaration | None:
        """Return the declaration of a variable; None where the declaration at its place has another name."""
        del section  # `Origins.of` is asked in the same way, and needs it
        if self._places is None:
            return None
        place = self._places.of(variable)
        if place not in self._by_place:
            return None
        declared = self._names.get(place)
        if declared is None:
            declared = self._names[place] = _DeclaredNames(self._by_place[place])
        return declared.of((variable.name, *variable.aliases))

    def is_named_here(self, section: SectionContents, variable: Symbol) -> bool:
        """Return whether only the debug information names a variable."""
        return (section.section.index, variable.offset) in self.named


NOTHING_DECLARED: Final = DeclaredVariables()
"""The declarations of a file without debug information."""


def variable_places(places: VariablePlaces, contents: Contents, within: frozenset[int]) -> set[VariablePlace]:
    """Return the places of all variables in some sections, which are given by their numbers."""
    return {
        places.of(variable)
        for section in contents.sections
        if section.section.index in within or section.section.index < 0
        for variable in section.variables
    }


def unnamed_places(
    places: VariablePlaces, contents: Contents, within: frozenset[int]
) -> tuple[set[VariablePlace], int]:
    """Return every place in some sections without a symbol, and the number of bytes that were too many to search."""
    places_found: set[VariablePlace] = set()
    too_many = 0
    for run, start, end in _nameless(contents, within):
        if len(places_found) + end - start > _MOST_NAMELESS_BYTES:
            too_many += end - start
        else:
            first, is_tls = places.at(run.section, start)
            places_found.update(VariablePlace(value, is_tls) for value in range(first, first + end - start))
    return places_found, too_many


def symbols_of_declarations(
    places: VariablePlaces,
    contents: Contents,
    within: frozenset[int],
    by_place: Mapping[VariablePlace, tuple[Declaration, ...]],
) -> list[Symbol]:
    """Return symbols for declared variables without a symbol, where their sizes fit between those that have one."""
    declared_values: tuple[list[int], list[int]] = [], []
    for value, is_tls in sorted(by_place):
        declared_values[is_tls].append(value)
    symbols: list[Symbol] = []
    for run, start, end in _nameless(contents, within):
        first, is_tls = places.at(run.section, start)
        at, past, values = first, first + end - start, declared_values[is_tls]
        for value in values[bisect_left(values, at) : bisect_left(values, past)]:
            entry = _largest(by_place[VariablePlace(value, is_tls)], past - value) if value >= at else None
            if entry is not None and entry.name is not None and entry.size_bytes:
                kind, binding = (
                    abi.STT_TLS if is_tls else abi.STT_OBJECT,
                    abi.STB_GLOBAL if entry.is_external else abi.STB_LOCAL,
                )
                offset = start + value - first
                symbols.append(Symbol(entry.name, value, entry.size_bytes, kind, binding, run.section.index, offset))
                at = value + entry.size_bytes
    return symbols


def declaration_of(linker_name: str, declarations: Sequence[Declaration]) -> Declaration | None:
    """Return the declaration of a variable among those of its place; a linker may merge several variables there."""
    return _DeclaredNames(declarations).of((linker_name,)) if declarations else None


def _nameless(contents: Contents, within: frozenset[int]) -> Iterator[tuple[SectionContents, int, int]]:
    for section in contents.sections:
        for start, end, owner in section.ranges.pieces if section.section.index in within else ():
            if isinstance(owner, Residue) and owner.cause in _NAMELESS:
                yield section, start, end


def _largest(declarations: Iterable[Declaration], most_bytes: int) -> Declaration | None:
    fitting = [entry for entry in declarations if entry.name and 0 < (entry.size_bytes or 0) <= most_bytes]
    return max(fitting, key=lambda entry: entry.size_bytes or 0, default=None)


class _DeclaredNames:
    """The declarations of one place by name; of equal ones the first."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self._by_name: dict[str, Declaration] = {}
        # Each unit declares the variables of a header again: the first declaration with a line is good enough.
        for declaration in sorted(declarations, key=lambda entry: not entry.defined_at_line):
            for name in (declaration.name, declaration.source_name):
                if name:
                    self._by_name.setdefault(name, declaration)

    def of(self, linker_names: Iterable[str]) -> Declaration | None:
        """Return the declaration of a variable by its names."""
        names = list(dict.fromkeys(map(normalised, linker_names)))
        for name in names:
            if (declaration := self._by_name.get(name)) is not None:
                return declaration
        # No compiler makes so many names, and each would be compared with each.
        for name in names[:_MOST_COMPARED]:
            for source_name, declaration in islice(self._by_name.items(), _MOST_COMPARED):
                if _is_part(name, source_name):
                    return declaration
        return None


def _is_part(name: str, source_name: str) -> bool:
    """Return whether a linker name contains a name of the source, after its scopes."""
    # The debug information has no linker name for a static of a C++ function; its symbol contains the source name.
    if name.startswith(("_Z", "_R")):
        return f"{len(source_name.encode('utf-8', 'surrogateescape'))}{source_name}" in name
    # clang names the static `x` of a C function `f` `f.x`.
    return name.endswith(f".{source_name}")
