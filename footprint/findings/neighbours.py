"""Whether what stands beside copies of one name speaks for a header, where no line is known.

A header that source files include brings them the same constants. Source files that only resemble each other have
constants of one name beside others that differ: the tables of two processors, the same function written twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
        self, statics: Statics, initials: Initials, asked: Iterable[Symbol], is_artefact: Callable[[str], object]
    ) -> None:
        self._initials = initials
        self._beside: dict[int, list[Symbol]] = {}
        named = [static for static in statics.statics if static.unit is not None and not is_artefact(static.name)]
        for one, other in pairwise(named):
            if one.unit == other.unit:
                self._beside.setdefault(one.vaddr, []).append(other)
                self._beside.setdefault(other.vaddr, []).append(one)
        self._things: dict[str, set[_Thing]] = {}
        self._of_unit: dict[int, set[_Thing]] = {}
        sections = statics.image.sections
        for static in asked:
            thing = self._thing(static)
            self._things.setdefault(thing[0], set()).add(thing)
            is_telling = static.size_bytes >= LEAST_TELLING_BYTES and thing[2] is not None and not thing[2].is_blank
            if is_telling and static.unit is not None and is_constant(statics.image, sections[static.section_index]):
                self._of_unit.setdefault(static.unit, set()).add(thing)

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
