"""Whether what stands beside copies of one name speaks for a header, where no line is known.

A header that source files include brings them the same constants. Source files that only resemble each other have
constants of one name beside others that differ: the tables of two processors, the same function written twice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Final

from footprint.elf.initial import Initial, Initials
from footprint.elf.names import normalised
from footprint.elf.sameness import is_constant
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.merging import LEAST_TELLING_BYTES

__all__ = ("Neighbours",)

_Thing = tuple[str, int, Initial | None]
# So many of the source files must have another constant in common.
_LEAST_SHARED: Final = 2 / 3


class Neighbours:
    """Knows which constants source files have in common.

    Args:
        statics: The variables of a file.
        initials: Their initial contents.
        asked: The variables that share their names with others.
        is_artefact: Returns whether a name is one that compilers make up.
    """

    def __init__(
        self, statics: Statics, initials: Initials, asked: Sequence[Symbol], is_artefact: Callable[[str], object]
    ) -> None:
        self._statics = statics
        self._initials = initials
        self._asked = asked
        self._is_artefact = is_artefact
        self._known: dict[int, frozenset[int]] = {}
        # Each thing has a number: its contents are hashed once, and not for each comparison of source files.
        self._numbers: dict[_Thing, int] = {}
        self._names: list[str] = []

    @cached_property
    def _beside(self) -> dict[int, list[Symbol]]:
        """What the symbol table names before and after each variable in its source file, by vaddr."""
        found: dict[int, list[Symbol]] = {}
        of_units = [one for one in self._statics.statics if one.unit is not None and not self._is_artefact(one.name)]
        for one, other in pairwise(of_units):
            if one.unit == other.unit:
                found.setdefault(one.vaddr, []).append(other)
                found.setdefault(other.vaddr, []).append(one)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[Symbol]]:
        """The variables of each name."""
        found: dict[str, list[Symbol]] = {}
        for static in self._asked:
            found.setdefault(normalised(static.name), []).append(static)
        return found

    @cached_property
    def _large(self) -> dict[int, list[Symbol]]:
        """The constants of each source file that are not small."""
        found: dict[int, list[Symbol]] = {}
        image = self._statics.image
        for static in self._asked:
            if static.unit is None or static.size_bytes < LEAST_TELLING_BYTES:
                continue
            if is_constant(image, image.sections[static.section_index]):
                found.setdefault(static.unit, []).append(static)
        return found

    def _telling(self, unit: int) -> frozenset[int]:
        """Return the numbers of the constants of a source file that have contents to compare, read on request."""
        if unit not in self._known:
            things = map(self._thing, self._large.get(unit, ()))
            telling = [one for one in things if one[2] is not None and not one[2].is_blank]
            self._known[unit] = frozenset(map(self._number, telling))
        return self._known[unit]

    def speak_for(self, copies: Sequence[Symbol]) -> bool:
        """Return whether the source files of copies have another constant in common, and nothing speaks against it."""
        own = self._thing(copies[0])
        if any(self._thing(one) != own for one in self._by_name[own[0]]):
            return False
        beside = {self._thing(one) for copy in copies for one in self._beside.get(copy.vaddr, ())}
        if any(count > 1 for count in Counter(name for name, _, _ in beside).values()):
            return False
        units = {copy.unit for copy in copies if copy.unit is not None}
        shared = Counter(chain.from_iterable(map(self._telling, units)))
        names = Counter(self._names[number] for number in shared)
        # Sources that a program writes, one for each processor, share a table here and there.
        if any(count > 1 for count in names.values()):
            return False
        del shared[self._number(own)]
        return any(count > 1 and count >= _LEAST_SHARED * len(units) for count in shared.values())

    def _number(self, thing: _Thing) -> int:
        number = self._numbers.setdefault(thing, len(self._numbers))
        if number == len(self._names):
            self._names.append(thing[0])
        return number

    def _thing(self, static: Symbol) -> _Thing:
        return normalised(static.name), static.size_bytes, self._initials.of(static)
