"""The way to an entry from the top of its unit: exact, and at a cost that is linear in the size of the unit."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from footprint.dwarf.codes import (
    DW_AT_SIBLING,
)
from footprint.dwarf.forms import AttributeStep
from footprint.dwarf.units import Unit

__all__ = ("Way", "ways_to")

DW_FORM_REF4: Final = 0x13

# Functions are not nested deeper than their blocks.
_MOST_PARENTS: Final = 64


class Way(NamedTuple):
    """The way to a place: the entry it is in, and the nearest of those that this one is below, the outermost first."""

    place: int
    offset: int
    parents: tuple[int, ...]


class _Stride(NamedTuple):
    """How to pass over the entries of an abbreviation: where their attributes end, and the reference to a sibling."""

    size_bytes: int | None
    has_children: bool
    sibling_at: int | None
    steps: tuple[AttributeStep, ...]


def ways_to(unit: Unit, places: Sequence[int], starts: Sequence[int] = ()) -> Iterator[Way]:
    """Find the entries of a unit that hold some places, which ascend; a place between entries is passed over.

    Args:
        unit: The unit.
        places: Where something stands.
        starts: For each place an entry at or before it, where they are known: what lies before that need not be passed
            on the way. The parents that are told are then only those on the way from there.

    Raises:
        InputError: Where an entry on the way is damaged.
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
        if attribute == DW_AT_SIBLING and form == DW_FORM_REF4:
            sibling_at = before
        if size_bytes is None:
            break
        before += size_bytes
    return _Stride(layout.size_bytes, abbreviation.has_children, sibling_at, layout.steps)
