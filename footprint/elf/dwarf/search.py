"""Variables found by their addresses: the bytes of the address are searched for, and what stands around them proved.

A variable of static storage carries its address in the debug information as bytes, behind DW_OP_addr. All addresses of
interest have most of these bytes in common, so that one regular expression finds every candidate at the speed of
memory, where a walk would decode every type and every call on the way.

A candidate is proved, not believed: some abbreviation of a variable must stand before it at the distance that its own
attributes take, and what the entry refers to must be there. Where two entries could have been meant, the way from the
top of the unit decides.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from footprint.elf.dwarf.codes import (
    DW_AT_ABSTRACT_ORIGIN,
    DW_AT_NAME,
    DW_AT_SPECIFICATION,
    DW_AT_TYPE,
    DW_TAG_CONSTANT,
    DW_TAG_FORMAL_PARAMETER,
    DW_TAG_MEMBER,
    DW_TAG_VARIABLE,
)
from footprint.elf.dwarf.forms import (
    Format,
)
from footprint.elf.dwarf.locations import (
    DW_OP_ADDR,
    DW_OP_CONST4U,
    DW_OP_CONST8U,
    INDEX_OPERATIONS,
    TLS_OPERATIONS,
    AddressTable,
    Location,
    Wanted,
    expression,
    location,
)
from footprint.elf.dwarf.sections import DebugSection
from footprint.elf.dwarf.shapes import Shapes, starts_before
from footprint.elf.dwarf.units import DebugInfo, Entry, Unit
from footprint.elf.dwarf.walk import ways_to
from footprint.errors import InputError

__all__ = ("Candidates", "Found", "Prover", "candidates")

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

# A byte that takes this many values in the wanted addresses is not worth a class of its own.
_MANY_VALUES: Final = 64
_INDEXED: Final = re.compile(rb"[\x02-\x1f][%s]" % re.escape(INDEX_OPERATIONS))
# About how many bytes a walk passes in the time that one shape takes to be tried.
_WALKED_BYTES_PER_TRY: Final = 5
_SMALL_BYTES: Final = 1 << 16


class Found(NamedTuple):
    """An entry that was proved to be a variable at a wanted place."""

    entry: Entry
    location: Location


class Candidates(NamedTuple):
    """The places of one unit where the location of a wanted variable may stand, ascending."""

    unit: Unit
    places: Sequence[int]
    indexes: dict[int, int]


def candidates(
    debug: DebugInfo, units: Sequence[Unit], wanted: Wanted, addresses: AddressTable
) -> Iterator[Candidates]:
    """Find where wanted addresses, offsets or their indexes stand in units of .debug_info, which ascend."""
    section = debug.sections.get(".debug_info")
    places: list[int] = []
    if not any(unit.skeleton for unit in units):
        # A split unit holds no address: the linker would have to come back for it.
        for address_bytes in {unit.format.address_bytes for unit in units}:
            places += _direct(section, DW_OP_ADDR, address_bytes, wanted.vaddrs)
        places += _direct(section, DW_OP_CONST8U, 8, wanted.tls_offsets, TLS_OPERATIONS)
        places += _direct(section, DW_OP_CONST4U, 4, wanted.tls_offsets, TLS_OPERATIONS)
        places.sort()
    for unit in units:
        indexes = addresses.indexes(unit)
        first = bisect_left(places, unit.first)
        here = places[first : bisect_left(places, unit.end, first)]
        if indexes:
            here = sorted({*here, *_indexed(unit, indexes)})
        if here:
            yield Candidates(unit, here, indexes)


def _direct(
    section: DebugSection, operation: int, size_bytes: int, values: frozenset[int], behind: bytes = b""
) -> Iterator[int]:
    """Find an operation with one of some values as its operand."""
    words = {value.to_bytes(size_bytes, section.order) for value in values if value < 1 << 8 * size_bytes}
    if not words:
        return
    operand = b"".join(_byte_class(column) for column in zip(*words, strict=True))
    ending = b"[%s]" % re.escape(behind) if behind else b""
    pattern = re.compile(b"%s(?=%s%s)" % (re.escape(bytes([operation])), operand, ending), re.DOTALL)
    data = section.data
    for match in pattern.finditer(data):
        at = match.end()
        if bytes(data[at : at + size_bytes]) in words:
            yield at - 1


def _byte_class(column: Iterable[int]) -> bytes:
    values = set(column)
    if len(values) >= _MANY_VALUES:
        return b"."
    return b"[%s]" % b"".join(re.escape(bytes([value])) for value in sorted(values))


def _indexed(unit: Unit, indexes: dict[int, int]) -> Iterator[int]:
    """Find an operation with one of some indexes as its operand."""
    for match in _INDEXED.finditer(unit.section.data, unit.first, unit.end):
        try:
            index, _ = unit.section.uleb(match.end())
        except InputError:
            continue
        if index in indexes:
            yield match.end() - 1


class Prover:
    """Proves candidates, and remembers what many of them have in common."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._shapes: dict[tuple[Format, int], Shapes] = {}
        self._types: dict[tuple[Unit, int, int], bool] = {}

    def proved(self, group: Candidates) -> Iterator[Found]:
        """Give the variables among the candidates of a unit.

        Raises:
            InputError: Where the unit's abbreviations, or an entry on the way to a doubtful candidate, are damaged.
        """
        unit = group.unit
        shapes = self._shapes.get(unit.table)
        if shapes is None:
            shapes = self._shapes[unit.table] = Shapes(unit)
        doubtful: list[int] = []
        is_flood = len(group.places) * shapes.cost * _WALKED_BYTES_PER_TRY > unit.end - unit.start + _SMALL_BYTES
        for place in () if is_flood else group.places:
            found, is_sure = self._prove(group, shapes, place)
            if not is_sure:
                doubtful.append(place)
            elif found:
                yield found
        for way in ways_to(unit, group.places if is_flood else doubtful):
            entry = unit.entry(way.offset)
            there = self._location(entry, way.place, group.indexes)
            if there is not None:
                yield Found(entry, there)

    def _prove(self, group: Candidates, shapes: Shapes, place: int) -> tuple[Found | None, bool]:
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
                there = self._location(entry, place, group.indexes)
                if there is None or not _is_followed_well(entry):
                    continue
                evidence = self._evidence(entry)
            except InputError:
                continue
            if evidence is False:
                continue
            is_sure = is_sure and evidence is True and found is None
            found = Found(entry, there)
        return found, is_sure

    def _location(self, entry: Entry, place: int, indexes: dict[int, int]) -> Location | None:
        """Give the wanted location of an entry, if its expression starts at a place."""
        if entry.tag != DW_TAG_VARIABLE:
            return None
        block = expression(entry)
        if block is None or block[0] != place:
            return None
        return location(entry.unit, *block, indexes, self._wanted)

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


def _is_followed_well(entry: Entry) -> bool:
    """Tell whether an entry, or the end of a list of them, can follow an entry."""
    unit = entry.unit
    if entry.end == unit.end:
        return True
    code, _ = unit.section.uleb(entry.end)
    return code == 0 or code in unit.abbreviations
