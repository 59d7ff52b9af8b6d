"""Candidates proved: an abbreviation of a variable must stand before a candidate, and what it refers to must exist.

The way back from a candidate is short, but it can lead to two entries, or to one that refers to nothing. Then a walk
from the last sure entry before it decides. Where a unit has so many candidates that a walk through the whole unit is
shorter, the walk decides for all of them. A walk is exact, and its cost is linear in the size of the unit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from footprint.dwarf import dw
from footprint.dwarf.encoding import LEB_FORMS, Abbreviation, AttributeStep, UnitFormat
from footprint.dwarf.units import Entry, Unit
from footprint.errors import InputError
from footprint.members import NamedTuple

# Functions do not nest deeper than their blocks.
_MOST_PARENTS: Final = 64


class Way(NamedTuple):
    """The way to a place: the entry that holds it, and the nearest of its parents, the outermost first."""

    place: int
    offset: int
    parents: tuple[int, ...]


class _Stride(NamedTuple):
    """How to skip an entry of an abbreviation: the size of its attributes, and the reference to its sibling."""

    size_bytes: int | None
    has_children: bool
    sibling_at: int | None
    steps: tuple[AttributeStep, ...]


def ways_to(unit: Unit, places: Sequence[int], starts: Sequence[int] = ()) -> Iterator[Way]:
    """Find the entries of a unit that hold some places, which ascend; a place between entries is skipped.

    The walk to a place begins at an entry before it, where `starts` has one; the way has only the parents after that.
    """
    section, data = unit.section, unit.section.data
    strides: dict[int, _Stride] = {}
    parents: list[int] = []
    end, wanted = unit.first, 0
    while wanted < len(places) and end < unit.end:
        if starts and starts[wanted] > end:
            end = starts[wanted]
            parents.clear()
        start, code, at = end, data[end], end + 1
        if code == 0:
            end = at
            del parents[-1:]
            continue
        if code >= 0x80:
            code, at = section.uleb(start)
        stride = strides.get(code) or strides.setdefault(code, _stride(unit, code, start))
        end = at + stride.size_bytes if stride.size_bytes is not None else _end(unit, stride, at)
        while wanted < len(places) and places[wanted] < end:
            if places[wanted] >= start:
                yield Way(places[wanted], start, tuple(parents[-_MOST_PARENTS:]))
            wanted += 1
        if stride.has_children:
            next_place = places[wanted] if wanted < len(places) else 0
            sibling = 0 if stride.sibling_at is None else unit.start + section.unsigned(at + stride.sibling_at, 4)
            if end < sibling <= next_place:
                end = sibling
            else:
                parents.append(start)


def _end(unit: Unit, stride: _Stride, at: int) -> int:
    for _, form, _, size_bytes in stride.steps:
        at = unit.format.end(unit.section, form, at) if size_bytes is None else at + size_bytes
    return at


def _stride(unit: Unit, code: int, at: int) -> _Stride:
    abbreviation = unit.abbreviations.get(code)
    if abbreviation is None:
        raise unit.section.damage(f"no abbreviation {code}", at)
    layout = unit.layout(abbreviation)
    sibling_at, before = None, 0
    for attribute, form, _, size_bytes in layout.steps:
        if attribute == dw.AT_SIBLING and form == dw.FORM_REF4:
            sibling_at = before
        if size_bytes is None:
            break
        before += size_bytes
    return _Stride(layout.size_bytes, abbreviation.has_children, sibling_at, layout.steps)


# Names contain no control characters; most codes of abbreviations are control characters.
_NAME_BYTES: Final = bytes(range(0x20, 0x100))
_LONGEST_NAME: Final = 256
_LONGEST_LEB: Final = 10
# With more, the walk from the top of the unit is shorter.
_MOST_STARTS: Final = 8
# A name may begin in many places.
_TRIES_OF_TEXT: Final = 32


class Shapes:
    """The possible bytes between the start of a variable and a place in an attribute, by the abbreviations of a unit.

    Attributes:
        fixed: By distance from the place, the codes at this distance by their first byte.
        varying: The ways back where names or numbers of variable size stand between: the size of each attribute before
            the wanted one, the last first, or `number` or `text` where it varies; the abbreviations that have them, by
            their codes as bytes; and the last bytes of these codes.
        is_complete: Whether there are no other ways.
    """

    def __init__(self, unit: Unit, attribute: int, forms: Mapping[int, int]) -> None:
        self.fixed: list[tuple[int, dict[int, list[bytes]]]] = []
        self.varying: list[tuple[tuple[int | str, ...], dict[bytes, Abbreviation], set[int]]] = []
        self.is_complete = True
        fixed: dict[int, dict[int, list[bytes]]] = {}
        varying: dict[tuple[int | str, ...], dict[bytes, Abbreviation]] = {}
        # Many abbreviations have the same attributes.
        steps_by_layout: dict[bytes, tuple[int | str, ...] | None] = {}
        for abbreviation in unit.abbreviations.values():
            if abbreviation.tag != dw.TAG_VARIABLE or attribute not in unit.layout(abbreviation).places:
                continue
            if abbreviation.raw not in steps_by_layout:
                steps_by_layout[abbreviation.raw] = self._steps(unit, abbreviation, attribute, forms)
            steps = steps_by_layout[abbreviation.raw]
            if steps is None:
                continue
            sizes = [step for step in steps if isinstance(step, int)]
            if len(sizes) == len(steps):
                distance = len(abbreviation.code) + sum(sizes)
                fixed.setdefault(distance, {}).setdefault(abbreviation.code[0], []).append(abbreviation.code)
            else:
                varying.setdefault(steps, {})[abbreviation.code] = abbreviation
        self.fixed = list(fixed.items())
        self.varying = [(steps, codes, {code[-1] for code in codes}) for steps, codes in varying.items()]
        text_count = sum("text" in steps for steps in varying)
        self.cost = len(self.fixed) + 8 * len(self.varying) + _TRIES_OF_TEXT * text_count

    def _steps(
        self, unit: Unit, abbreviation: Abbreviation, wanted: int, forms: Mapping[int, int]
    ) -> tuple[int | str, ...] | None:
        """Return the sizes of the attributes before the place, the nearest first; None where no place is possible."""
        steps: list[int | str] = []
        for attribute, form, _, size_bytes in unit.layout(abbreviation).steps:
            if attribute == wanted:
                return _joined([*steps, forms[form]]) if form in forms else None
            if size_bytes is not None:
                steps.append(size_bytes)
            elif form in LEB_FORMS:
                steps.append("number")
            elif form == dw.FORM_STRING:
                steps.append("text")
            else:
                self.is_complete = False
                return None
        return None


def _joined(steps: Iterable[int | str]) -> tuple[int | str, ...]:
    """Return the steps in reverse order; neighbouring steps of fixed size are joined."""
    joined: list[int | str] = []
    for step in steps:
        if isinstance(step, int) and joined and isinstance(joined[-1], int):
            joined[-1] += step
        else:
            joined.append(step)
    return tuple(reversed(joined))


def starts_before(unit: Unit, shapes: Shapes, place: int) -> list[int] | None:
    """Return the possible starts of a variable with the place in its attribute; None where they are too many."""
    data, first = unit.section.data, unit.first
    starts = []
    for distance, codes in shapes.fixed:
        start = place - distance
        if start >= first and (candidates := codes.get(data[start])):
            starts += [start for code in candidates if len(code) == 1 or bytes(data[start : start + len(code)]) == code]
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
    """Go back over attributes: return the possible ends of the code before them; None where they are too many."""
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


T = TypeVar("T")

_NAMED_TAGS: Final = frozenset({dw.TAG_VARIABLE, dw.TAG_MEMBER, dw.TAG_FORMAL_PARAMETER, dw.TAG_CONSTANT})
# array, class, enumeration, pointer, reference, string, structure, subroutine, typedef, union, pointer to member, set,
# subrange, base, const, file, packed, thrown, volatile, restrict, interface, unspecified, shared, type unit's, rvalue
# reference, template alias, coarray, generic subrange, dynamic, atomic, immutable.
_TYPE_TAGS: Final = frozenset(
    {
        *(0x01, 0x02, 0x04, 0x0F, 0x10, 0x12, 0x13, 0x15, 0x16, 0x17, 0x1F, 0x20, 0x21, 0x24, 0x26, 0x29, 0x2C, 0x2D),
        *(0x31, 0x35, 0x37, 0x38, 0x3B, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x4B, 0x4109),
    }
)

# About how many bytes a walk covers in the time of one try of a shape.
_WALKED_BYTES_PER_TRY: Final = 5
# How many bytes of walks all units together may spend beyond that.
_SPARE_BYTES: Final = 1 << 17
# Units are proved in order: those of one program share their abbreviations, or each has its own.
_MOST_SHAPES: Final = 256


class ProvedEntry(NamedTuple, Generic[T]):
    """An entry that was proved to be a variable, and the wanted value that it has."""

    entry: Entry
    what: T


class Candidates(NamedTuple):
    """The candidates of one unit: ascending places of possible values, and the indexes of wanted addresses."""

    unit: Unit
    places: Sequence[int]
    indexes: dict[int, int]


class Prover(Generic[T]):
    """Proves candidates, and keeps what many of them share."""

    def __init__(self, attribute: int, forms: Mapping[int, int]) -> None:
        """Prove places in an attribute of some forms, each with the number of its bytes before the place."""
        self._attribute = attribute
        self._forms = forms
        self._shapes: dict[tuple[UnitFormat, int], Shapes] = {}
        self._types: dict[tuple[Unit, int, int], bool] = {}
        self._spare_bytes = _SPARE_BYTES

    def proved(self, group: Candidates) -> Iterator[ProvedEntry[T]]:
        """Return the variables among the candidates of a unit."""
        unit = group.unit
        shapes = self._shapes.get(unit.table)
        if shapes is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            shapes = self._shapes[unit.table] = Shapes(unit, self._attribute, self._forms)
        doubtful: list[int] = []
        sure_starts: list[int] = []
        sure_start = unit.first
        more_bytes = len(group.places) * shapes.cost * _WALKED_BYTES_PER_TRY - (unit.end - unit.start)
        is_flood = more_bytes > self._spare_bytes
        if not is_flood:
            self._spare_bytes -= max(more_bytes, 0)
        for place in () if is_flood else group.places:
            variable, is_sure = self._prove(group, shapes, place)
            if not is_sure:
                doubtful.append(place)
                sure_starts.append(sure_start)
            elif variable:
                sure_start = variable.entry.offset
                yield variable
        for way in ways_to(unit, group.places) if is_flood else _ways_from(unit, doubtful, sure_starts):
            entry = unit.entry(way.offset)
            if entry.tag != dw.TAG_VARIABLE:
                continue
            there = self._wanted_in(entry, way.place, group)
            if there is not None:
                yield ProvedEntry(entry, there)

    def _prove(self, group: Candidates, shapes: Shapes, place: int) -> tuple[ProvedEntry[T] | None, bool]:
        """Return the variable of a candidate, or None, and whether this result is sure."""
        unit = group.unit
        starts = starts_before(unit, shapes, place)
        if starts is None:
            return None, False
        variable = None
        is_sure = shapes.is_complete
        for start in starts:
            try:
                entry = unit.entry(start)
                there = self._wanted_in(entry, place, group)
                if there is None or not _is_followed_well(entry):
                    continue
                evidence = self._evidence(entry)
            except InputError:
                continue
            if evidence is False:
                continue
            is_sure = is_sure and evidence is True and variable is None
            variable = ProvedEntry(entry, there)
        return variable, is_sure

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> T | None:
        """Return the wanted value of a variable, where it stands at a place."""
        raise NotImplementedError

    def _evidence(self, entry: Entry) -> bool | None:
        """Return whether the references of an entry are valid; None where the entry has none that can be checked."""
        unit = entry.unit
        if dw.AT_NAME in entry.places:
            unit.text(entry, dw.AT_NAME)
        for attribute in (dw.AT_SPECIFICATION, dw.AT_ABSTRACT_ORIGIN):
            if attribute in entry.places:
                named = unit.reference(entry, attribute)
                return None if named is None else named.tag in _NAMED_TAGS
        target = unit.number(entry, dw.AT_TYPE)
        if target is None:
            return None
        key = unit, entry.places[dw.AT_TYPE][0], target
        is_type = self._types.get(key)
        if is_type is None:
            type_entry = unit.reference(entry, dw.AT_TYPE)
            if type_entry is None:
                return None
            is_type = self._types[key] = type_entry.tag in _TYPE_TAGS
        return is_type


def _ways_from(unit: Unit, places: Sequence[int], starts: Sequence[int]) -> list[Way]:
    """Find the entries that hold some places, from entries before them; from the top of the unit where that fails."""
    try:
        return list(ways_to(unit, places, starts))
    except InputError:
        return list(ways_to(unit, places))


def _is_followed_well(entry: Entry) -> bool:
    """Return whether an entry, or the end of a list of entries, can follow an entry."""
    unit = entry.unit
    if entry.end == unit.end:
        return True
    code, _ = unit.section.uleb(entry.end)
    return code == 0 or code in unit.abbreviations
