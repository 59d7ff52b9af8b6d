"""Candidates proved: some abbreviation of a variable must stand before one, and what it refers to must be there.

Where two entries could have been meant, or what one refers to is absent, the way to them decides, from the last entry
before them that is sure. The way from the top of the unit decides where there are so many candidates that it is the
shorter one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from footprint.dwarf.codes import (
    DW_AT_ABSTRACT_ORIGIN,
    DW_AT_NAME,
    DW_AT_SPECIFICATION,
    DW_AT_TYPE,
    DW_TAG_CONSTANT,
    DW_TAG_FORMAL_PARAMETER,
    DW_TAG_MEMBER,
    DW_TAG_VARIABLE,
)
from footprint.dwarf.forms import UnitFormat
from footprint.dwarf.shapes import Shapes, starts_before
from footprint.dwarf.units import Entry, Unit
from footprint.dwarf.walk import Way, ways_to
from footprint.errors import InputError

__all__ = ("Candidates", "ProvedEntry", "Prover")

T = TypeVar("T")

_NAMED_TAGS: Final = frozenset({DW_TAG_VARIABLE, DW_TAG_MEMBER, DW_TAG_FORMAL_PARAMETER, DW_TAG_CONSTANT})
# array, class, enumeration, pointer, reference, string, structure, subroutine, typedef, union, pointer to member, set,
# subrange, base, const, file, packed, thrown, volatile, restrict, interface, unspecified, shared, type unit's, rvalue
# reference, template alias, coarray, generic subrange, dynamic, atomic, immutable.
_TYPE_TAGS: Final = frozenset(
    {
        *(0x01, 0x02, 0x04, 0x0F, 0x10, 0x12, 0x13, 0x15, 0x16, 0x17, 0x1F, 0x20, 0x21, 0x24, 0x26, 0x29, 0x2C, 0x2D),
        *(0x31, 0x35, 0x37, 0x38, 0x3B, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x4B, 0x4109),
    }
)

# About how many bytes a walk passes in the time that one shape takes to be tried.
_WALKED_BYTES_PER_TRY: Final = 5
# How many bytes' walks may be spent beyond that, in all units together.
_SPARE_BYTES: Final = 1 << 17
# Units follow each other; those of one program share their abbreviations, or have their own.
_MOST_SHAPES: Final = 256


class ProvedEntry(NamedTuple, Generic[T]):
    """An entry that was proved to be a variable, and what was looked for in it."""

    entry: Entry
    what: T


class Candidates(NamedTuple):
    """The places of one unit where what is wanted may stand, ascending; and the indexes of wanted addresses."""

    unit: Unit
    places: Sequence[int]
    indexes: dict[int, int]


class Prover(Generic[T]):
    """Proves candidates, and remembers what many of them have in common."""

    def __init__(self, attribute: int, forms: Mapping[int, int]) -> None:
        """Prove places in an attribute of some forms, each given with how many bytes stand there before the place."""
        self._attribute = attribute
        self._forms = forms
        self._shapes: dict[tuple[UnitFormat, int], Shapes] = {}
        self._types: dict[tuple[Unit, int, int], bool] = {}
        self._spare_bytes = _SPARE_BYTES

    def proved(self, group: Candidates) -> Iterator[ProvedEntry[T]]:
        """Give the variables among the candidates of a unit.

        Raises:
            InputError: Where the unit's abbreviations, or an entry on the way to a doubtful candidate, are damaged.
        """
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
            found, is_sure = self._prove(group, shapes, place)
            if not is_sure:
                doubtful.append(place)
                sure_starts.append(sure_start)
            elif found:
                sure_start = found.entry.offset
                yield found
        for way in ways_to(unit, group.places) if is_flood else _ways_from(unit, doubtful, sure_starts):
            entry = unit.entry(way.offset)
            if entry.tag != DW_TAG_VARIABLE:
                continue
            there = self._wanted_in(entry, way.place, group)
            if there is not None:
                yield ProvedEntry(entry, there)

    def _prove(self, group: Candidates, shapes: Shapes, place: int) -> tuple[ProvedEntry[T] | None, bool]:
        """Give the variable of a candidate, if it is one, and whether that is sure."""
        unit = group.unit
        starts = starts_before(unit, shapes, place)
        if starts is None:
            return None, False
        found = None
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
            is_sure = is_sure and evidence is True and found is None
            found = ProvedEntry(entry, there)
        return found, is_sure

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> T | None:
        """Give what is wanted of a variable, if that stands at a place."""
        raise NotImplementedError

    def _evidence(self, entry: Entry) -> bool | None:
        """Tell whether what an entry refers to is there, or None where that cannot be told."""
        unit = entry.unit
        if DW_AT_NAME in entry.places:
            unit.text(entry, DW_AT_NAME)
        for attribute in (DW_AT_SPECIFICATION, DW_AT_ABSTRACT_ORIGIN):
            if attribute in entry.places:
                named = unit.reference(entry, attribute)
                return None if named is None else named.tag in _NAMED_TAGS
        target = unit.number(entry, DW_AT_TYPE)
        if target is None:
            return None
        key = unit, entry.places[DW_AT_TYPE][0], target
        known = self._types.get(key)
        if known is None:
            type_entry = unit.reference(entry, DW_AT_TYPE)
            if type_entry is None:
                return None
            known = self._types[key] = type_entry.tag in _TYPE_TAGS
        return known


def _ways_from(unit: Unit, places: Sequence[int], starts: Sequence[int]) -> list[Way]:
    """Find the entries that hold some places, from entries before them; from the top of the unit if that leads astray.

    Raises:
        InputError: Where an entry on the way is damaged.
    """
    try:
        return list(ways_to(unit, places, starts))
    except InputError:
        return list(ways_to(unit, places))


def _is_followed_well(entry: Entry) -> bool:
    """Tell whether an entry, or the end of a list of them, can follow an entry."""
    unit = entry.unit
    if entry.end == unit.end:
        return True
    code, _ = unit.section.uleb(entry.end)
    return code == 0 or code in unit.abbreviations
