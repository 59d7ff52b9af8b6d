"""What may stand between the beginning of a variable and one of its attributes, and the way back over it."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from footprint.dwarf.abbreviations import Abbreviation
from footprint.dwarf.codes import DW_TAG_VARIABLE
from footprint.dwarf.forms import DW_FORM_STRING, LEB_FORMS
from footprint.dwarf.units import Unit

__all__ = ("Shapes", "starts_before")

# Names hold no control characters, which codes of abbreviations mostly are.
_NAME_BYTES: Final = bytes(range(0x20, 0x100))
_LONGEST_NAME: Final = 256
_LONGEST_LEB: Final = 10
# Beyond this the way from the top of the unit is the shorter one.
_MOST_STARTS: Final = 8
# A name may begin in many places.
_TRIES_OF_TEXT: Final = 32


class _Backward(NamedTuple):
    """The attributes before the one in question, the last first, with the codes of the abbreviations that have them.

    Attributes:
        steps: The size of each, or what it is.
        codes: As they are written.
        last_bytes: Of the codes.
    """

    steps: tuple[int | str, ...]
    codes: dict[bytes, Abbreviation]
    last_bytes: set[int]


class Shapes:
    """What may stand between the beginning of a variable and a place in an attribute, by the abbreviations of a unit.

    Attributes:
        fixed: By distance, the first byte of the codes that stand so far before the place, and those codes.
        varying: Where names or numbers of variable size stand between, how to come back over them.
        is_complete: Whether there are no others.
    """

    def __init__(self, unit: Unit, attribute: int, forms: Mapping[int, int]) -> None:
        self.fixed: list[tuple[int, dict[int, list[bytes]]]] = []
        self.varying: list[_Backward] = []
        self.is_complete = True
        fixed: dict[int, dict[int, list[bytes]]] = {}
        varying: dict[tuple[int | str, ...], dict[bytes, Abbreviation]] = {}
        # Many abbreviations have their attributes in common.
        known: dict[bytes, tuple[int | str, ...] | None] = {}
        for abbreviation in unit.abbreviations.values():
            if abbreviation.tag != DW_TAG_VARIABLE or attribute not in unit.layout(abbreviation).places:
                continue
            if abbreviation.raw not in known:
                known[abbreviation.raw] = self._steps(unit, abbreviation, attribute, forms)
            steps = known[abbreviation.raw]
            if steps is None:
                continue
            sizes = [step for step in steps if isinstance(step, int)]
            if len(sizes) == len(steps):
                distance = len(abbreviation.code) + sum(sizes)
                fixed.setdefault(distance, {}).setdefault(abbreviation.code[0], []).append(abbreviation.code)
            else:
                varying.setdefault(steps, {})[abbreviation.code] = abbreviation
        self.fixed = list(fixed.items())
        self.varying = [_Backward(steps, codes, {code[-1] for code in codes}) for steps, codes in varying.items()]
        text_count = sum("text" in steps for steps in varying)
        self.cost = len(self.fixed) + 8 * len(self.varying) + _TRIES_OF_TEXT * text_count

    def _steps(
        self, unit: Unit, abbreviation: Abbreviation, wanted: int, forms: Mapping[int, int]
    ) -> tuple[int | str, ...] | None:
        """Give the sizes of what stands before the place, the nearest first; None where there can be none."""
        steps: list[int | str] = []
        for attribute, form, _, size_bytes in unit.layout(abbreviation).steps:
            if attribute == wanted:
                return _joined([*steps, forms[form]]) if form in forms else None
            if size_bytes is not None:
                steps.append(size_bytes)
            elif form in LEB_FORMS:
                steps.append("number")
            elif form == DW_FORM_STRING:
                steps.append("text")
            else:
                self.is_complete = False
                return None
        return None


def _joined(steps: Iterable[int | str]) -> tuple[int | str, ...]:
    """Give steps the last first, with those of fixed sizes that follow each other as one."""
    joined: list[int | str] = []
    for step in steps:
        if isinstance(step, int) and joined and isinstance(joined[-1], int):
            joined[-1] += step
        else:
            joined.append(step)
    return tuple(reversed(joined))


def starts_before(unit: Unit, shapes: Shapes, place: int) -> list[int] | None:
    """Give where a variable with the place in its attribute may begin; None where it cannot be told so."""
    data, first = unit.section.data, unit.first
    starts = []
    for distance, codes in shapes.fixed:
        start = place - distance
        if start >= first and (found := codes.get(data[start])):
            starts += [start for code in found if len(code) == 1 or bytes(data[start : start + len(code)]) == code]
    for steps, varying, last_bytes in shapes.varying:
        ends = _before(unit, place, steps)
        if ends is None:
            return None
        lengths = {len(code) for code in varying}
        for end in ends:
            if data[end - 1] in last_bytes:
                starts += [end - length for length in lengths if bytes(data[end - length : end]) in varying]
                if len(starts) > _MOST_STARTS:
                    return None
    return starts if len(starts) <= _MOST_STARTS else None


def _before(unit: Unit, place: int, steps: Iterable[int | str]) -> Iterable[int] | None:
    """Come back over attributes: give where the code before them may end; None where it cannot be told so."""
    data, first = unit.section.data, unit.first
    ends: Iterable[int] = [place]
    for step in steps:
        if isinstance(step, int):
            ends = [end - step for end in ends if end - step > first]
        elif step == "number":
            starts = set()
            for end in ends:
                if data[end - 1] < 0x80:
                    start = end - 1
                    starts.add(start)
                    while start - 1 > first and end - start < _LONGEST_LEB and data[start - 1] >= 0x80:
                        start -= 1
                        starts.add(start)
            ends = starts
        else:
            starts = set()
            for end in ends:
                if data[end - 1] == 0:
                    window = bytes(data[max(first + 1, end - 1 - _LONGEST_NAME) : end - 1])
                    length = len(window) - len(window.rstrip(_NAME_BYTES))
                    if length >= _LONGEST_NAME or len(starts) > _LONGEST_NAME:
                        return None
                    starts.update(range(end - 1 - length, end))
            ends = starts
    return ends
