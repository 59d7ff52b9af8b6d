"""Whether what stands beside copies of one name speaks for a header, where no line is known.

A header that source files include brings them the same constants. Source files that only resemble each other have
constants of one name beside others that differ: the tables of two processors, the same function written twice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, combinations, pairwise
from typing import Final

from footprint.elf.initial import Initial, Initials
from footprint.elf.names import normalised
from footprint.elf.sameness import is_constant
from footprint.elf.statics import Statics
from footprint.elf.symbols import Symbol
from footprint.findings.merging import LEAST_TELLING_BYTES

_Thing = tuple[str, int, Initial | None]
# So many of the source files must have another constant in common.
_LEAST_SHARED: Final = 2 / 3
# So many source files with so many constants in one order have them from a header, also in no namespace.
_LEAST_UNITS: Final = 3
_MOST_COMBINED: Final = 16


class Neighbours:
    """Knows which constants source files have in common.

    Args:
        statics: The variables of a file.
        initials: Their initial contents.
        asked: The variables that share their names with others.
        is_artefact: Returns whether a name is one that compilers make up.
    """

    def __init__(
        self, statics: Statics, initials: Initials, candidates: Sequence[Symbol], is_artefact: Callable[[str], object]
    ) -> None:
        self._statics = statics
        self._initials = initials
        self._candidates = candidates
        self._is_artefact = is_artefact
        self._numbers_of_units: dict[int, tuple[int, ...]] = {}
        # Each thing has a number: its contents are hashed once, and not for each comparison of source files.
        self._numbers: dict[_Thing, int] = {}
        self._things: list[_Thing] = []

    @cached_property
    def _beside(self) -> dict[int, list[Symbol]]:
        """What the symbol table names before and after each variable in its source file, by vaddr."""
        beside: dict[int, list[Symbol]] = {}
        of_units = [s for s in self._statics.statics if s.unit is not None and not self._is_artefact(s.name)]
        for static, other in pairwise(of_units):
            if static.unit == other.unit:
                beside.setdefault(static.vaddr, []).append(other)
                beside.setdefault(other.vaddr, []).append(static)
        return beside

    @cached_property
    def _by_name(self) -> dict[str, list[Symbol]]:
        """The variables of each name."""
        by_name: dict[str, list[Symbol]] = {}
        for static in self._candidates:
            by_name.setdefault(normalised(static.name), []).append(static)
        return by_name

    @cached_property
    def _constants(self) -> dict[int, list[Symbol]]:
        """The constants of each source file, in the order of the file."""
        by_unit: dict[int, list[Symbol]] = {}
        image = self._statics.image
        for static in sorted(self._candidates, key=lambda static: (static.section_index, static.vaddr)):
            if static.unit is not None and is_constant(image, image.sections[static.section_index]):
                by_unit.setdefault(static.unit, []).append(static)
        return by_unit

    def _telling(self, unit: int) -> tuple[int, ...]:
        """Return the numbers of the constants of a source file that have contents to compare, read on request."""
        if unit not in self._numbers_of_units:
            things = map(self._thing, self._constants.get(unit, ()))
            telling = [thing for thing in things if thing[2] is not None and not thing[2].is_blank]
            self._numbers_of_units[unit] = tuple(dict.fromkeys(map(self._number, telling)))
        return self._numbers_of_units[unit]

    @cached_property
    def _units_with(self) -> dict[int, list[int]]:
        """The source files that have each constant."""
        units_of: dict[int, list[int]] = {}
        for unit in self._constants:
            for number in self._telling(unit):
                units_of.setdefault(number, []).append(unit)
        return units_of

    def speak_for(self, copies: Sequence[Symbol]) -> bool:
        """Return whether the source files of copies have another constant in common, and nothing speaks against it."""
        units, shared = self._shared_by(copies)
        large = [count for number, count in shared.items() if self._things[number][1] >= LEAST_TELLING_BYTES]
        return any(count > 1 and count >= _LEAST_SHARED * len(units) for count in large)

    def have_one_order(self, copies: Sequence[Symbol]) -> bool:
        """Return whether three or more source files have two more constants in common, in one order with the copies."""
        units, shared = self._shared_by(copies)
        least = max(_LEAST_UNITS, _LEAST_SHARED * len(units))
        number_of_copy = self._number(self._thing(copies[0]))
        others = [number for number, count in shared.most_common(_MOST_COMBINED) if count >= least]
        elsewhere = Counter(unit for number in others for unit in self._units_with[number] if unit not in units)
        if any(count > 1 for count in elsewhere.values()):
            # A source file that includes the header, too, and has no such constant: by its macros it may have other
            # contents there, which the compiler has computed with.
            return False
        for two in combinations(others, 2):
            of_order: dict[tuple[int, ...], list[str]] = {}
            for unit in units:
                order = tuple([number for number in self._telling(unit) if number in {number_of_copy, *two}])
                of_order.setdefault(order, []).append(self._statics.units[unit])
            # A source file that is linked in several times is one; another one may include it.
            if any(
                len(order) > 2 and len(files) >= least and len(set(files)) >= _LEAST_UNITS
                for order, files in of_order.items()
            ):
                return True
        return False

    def _shared_by(self, copies: Sequence[Symbol]) -> tuple[set[int], Counter[int]]:
        """Return the source files of copies, and how many have each other constant; none where something differs."""
        thing, units = self._thing(copies[0]), {copy.unit for copy in copies if copy.unit is not None}
        if any(self._thing(copy) != thing for copy in self._by_name[thing[0]]):
            return units, Counter()
        beside = {self._thing(s) for copy in copies for s in self._beside.get(copy.vaddr, ())}
        if any(count > 1 for count in Counter(name for name, _, _ in beside).values()):
            return units, Counter()
        shared = Counter(chain.from_iterable(map(self._telling, units)))
        large = (self._things[number] for number in shared)
        names = Counter(name for name, size_bytes, _ in large if size_bytes >= LEAST_TELLING_BYTES)
        # Sources that a program writes, one for each processor, share a table here and there.
        if any(count > 1 for count in names.values()):
            return units, Counter()
        del shared[self._number(thing)]
        return units, shared

    def _number(self, thing: _Thing) -> int:
        number = self._numbers.setdefault(thing, len(self._numbers))
        if number == len(self._things):
            self._things.append(thing)
        return number

    def _thing(self, static: Symbol) -> _Thing:
        return normalised(static.name), static.size_bytes, self._initials.of(static)
