"""The way to an entry from the top of its unit: exact, and at a cost that is linear in the size of the unit."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from footprint.elf.dwarf.forms import Step
from footprint.elf.dwarf.units import Unit

__all__ = ("Way", "ways_to")

DW_AT_SIBLING: Final = 0x01
DW_FORM_REF4: Final = 0x13


class Way(NamedTuple):
    """The way to a place: the entry it is in, and those that this one is below, the outermost first."""

    place: int
    offset: int
    parents: tuple[int, ...]


class _Stride(NamedTuple):
    """How to pass over the entries of an abbreviation: where their attributes end, and the reference to a sibling."""

    size_bytes: int | None
    has_children: bool
    sibling_at: int | None
    steps: tuple[Step, ...]


def ways_to(unit: Unit, places: Sequence[int]) -> Iterator[Way]:
    """Find the entries of a unit that hold some places, which ascend; a place between entries is passed over.

    Raises:
        InputError: Where an entry on the way is damaged.
    """
    section, data, end_of = unit.section, unit.section.data, unit.format.end
    strides: dict[int, _Stride] = {}
    parents: list[int] = []
    at, wanted = unit.first, 0
    while wanted < len(places) and at < unit.end:
        start = at
        code = data[at]
        at += 1
        if code == 0:
            if parents:
                parents.pop()
            continue
        if code >= 0x80:
            code, at = section.uleb(start)
        stride = strides.get(code)
        if stride is None:
            stride = strides[code] = _stride(unit, code, start)
        values_at = at
        if stride.size_bytes is None:
            for _, form, _, size_bytes in stride.steps:
                at = end_of(section, form, at) if size_bytes is None else at + size_bytes
        else:
            at += stride.size_bytes
        while wanted < len(places) and places[wanted] < at:
            if places[wanted] >= start:
                yield Way(places[wanted], start, tuple(parents))
            wanted += 1
        if stride.has_children:
            if stride.sibling_at is not None and wanted < len(places):
                sibling = unit.start + section.unsigned(values_at + stride.sibling_at, 4)
                if at < sibling <= places[wanted]:
                    at = sibling
                    continue
            parents.append(start)


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
