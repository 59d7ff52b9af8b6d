"""Whether what stands beside copies of one name speaks for a header, where no line is known.

A header that source files include brings them the same constants. Source files that only resemble each other have
constants of one name beside others that differ: the tables of two processors, the same function written twice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
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
    def _things(self) -> dict[str, set[_Thing]]:
        """The things of each name."""
        found: dict[str, set[_Thing]] = {}
        for thing in map(self._thing, self._asked):
            found.setdefault(thing[0], set()).add(thing)
        return found

    @cached_property
    def _of_unit(self) -> dict[int, set[_Thing]]:
        """The constants of each source file that are not small."""
        found: dict[int, set[_Thing]] = {}
        image = self._statics.image
        for static in self._asked:
            initial = self._initials.of(static)
            is_telling = static.size_bytes >= LEAST_TELLING_BYTES and initial is not None and not initial.is_blank
            if is_telling and static.unit is not None and is_constant(image, image.sections[static.section_index]):
                found.setdefault(static.unit, set()).add(self._thing(static))
        return found

    def speak_for(self, copies: Sequence[Symbol]) -> bool:
        """Return whether the source files of copies have another constant in common, and nothing speaks against it."""
        own = self._thing(copies[0])
        if len(self._things[own[0]]) > 1:
            return False
        beside = {self._thing(one) for copy in copies for one in self._beside.get(copy.vaddr, ())}
        if any(count > 1 for count in Counter(name for name, _, _ in beside).values()):
            return False
        units = {copy.unit for copy in copies if copy.unit is not None}
        shared = Counter(thing for unit in units for thing in self._of_unit.get(unit, ()) if thing != own)
        return any(count > 1 and count >= _LEAST_SHARED * len(units) for count in shared.values())

    def _thing(self, static: Symbol) -> _Thing:
        return normalised(static.name), static.size_bytes, self._initials.of(static)
