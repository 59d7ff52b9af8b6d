"""The places of units: their headers, and the index of a package of split units (`.dwp`).

Headers alone tell where units start and end: most units are never decoded.

Source: DWARF 5, sections 7.5.1 (Unit Headers) and 7.3.5 (DWARF Package Files), and those of versions 2 to 4.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.sections import DebugSection, DebugSections
from footprint.errors import InputError

_HEADER_BYTES: Final = 16
_MOST_COLUMNS: Final = 16

Shifts = dict[int, int]
"""By the number of a section the start of the part of a unit in it."""


def read_shifts(sections: DebugSections) -> dict[tuple[str, int], Shifts]:
    """Return the parts of each unit of a package, by the section that holds it and by its start."""
    shifts_by_unit: dict[tuple[str, int], Shifts] = {}
    for name in (".debug_cu_index", ".debug_tu_index"):
        for shifts in _rows(sections.get(name)):
            for number, holder in ((dw.SECT_TYPES, ".debug_types"), (dw.SECT_INFO, ".debug_info")):
                if number in shifts:
                    shifts_by_unit[holder, shifts[number]] = shifts
                    break
    return shifts_by_unit


def _rows(index: DebugSection) -> list[Shifts]:
    if not index.size_bytes:
        return []
    column_count, unit_count, slot_count = (index.unsigned(at, 4) for at in (4, 8, 12))
    # After a hash table of signatures and their rows follow one row of section numbers and one row for each unit.
    columns_at = _HEADER_BYTES + slot_count * 12
    if column_count > _MOST_COLUMNS or columns_at + (unit_count + 1) * column_count * 4 > index.size_bytes:
        raise index.damage(f"{unit_count} units of {column_count} sections reach beyond its end", 4)
    words = [index.unsigned(columns_at + 4 * place, 4) for place in range((unit_count + 1) * column_count)]
    columns = words[:column_count]
    starts = range(column_count, len(words), column_count or 1)
    return [dict(zip(columns, words[start : start + column_count], strict=True)) for start in starts]


ADDRESS_BYTES: Final = frozenset({2, 4, 8})
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_LONGEST_LENGTH: Final = 0xFFFFFFF0
# The length, the version, the kind, and the size of an address: in version 5, and in earlier versions.
_HEADS: Final = {"little": Struct("<IHBB2xB"), "big": Struct(">IHBB2xB")}
# The smallest length of a unit of version 5 by its kind, of one of any other kind, and of earlier versions.
_LEAST_BYTES: Final = {1: 8, 3: 8, 4: 16, 5: 16}
_ENOUGH_BYTES: Final = 20
_OLD_LEAST_BYTES: Final = 7


class Headers:
    """The units of a section, ascending.

    Attributes:
        starts: The starts of their headers.
        ends: Their ends.
        address_bytes: The sizes of addresses that occur.
        offset_bytes: The sizes of offsets that occur.
        damage: The error in the first header that cannot be read; what follows it is left out.
    """

    def __init__(self, section: DebugSection, read: Callable[[int], tuple[tuple[int, int] | None, int]]) -> None:
        """Find the units of a section.

        `read` reads any header at an offset and checks it: it returns the sizes of offsets and addresses, or None for a
        unit to skip, and the end of the unit.
        """
        self.starts, self.ends = array("Q"), array("Q")
        self.address_bytes: set[int] = set()
        self.offset_bytes: set[int] = set()
        self.damage: InputError | None = None
        data, size_bytes = section.data, section.size_bytes
        head = _HEADS[section.order]
        unpack, head_bytes = head.unpack_from, head.size
        add_start, add_end, add_size = self.starts.append, self.ends.append, self.address_bytes.add
        at = 0
        while at < size_bytes:
            if at + head_bytes <= size_bytes:
                length_bytes, version, kind, new, old = unpack(data, at)
                address_bytes = new if version == 5 else old
                end = at + 4 + length_bytes
                # This is enough for the rest of the header.
                least = _LEAST_BYTES.get(kind, _ENOUGH_BYTES) if version == 5 else _OLD_LEAST_BYTES
                is_known = 2 <= version <= 5 and address_bytes in ADDRESS_BYTES
                if is_known and least <= length_bytes < _LONGEST_LENGTH and end <= size_bytes:
                    add_start(at)
                    add_end(end)
                    add_size(address_bytes)
                    at = end
                    continue
            # Linkers may pad with zeros, and a damaged file may have only zeros.
            filled = _NOT_ZERO.search(data, at)
            if filled is None:
                break
            at += (filled.start() - at) // 4 * 4
            try:
                sizes, end = read(at)
            except InputError as error:
                self.damage = error
                break
            if sizes is not None:
                add_start(at)
                add_end(end)
                self.offset_bytes.add(sizes[0])
                add_size(sizes[1])
            if end <= at:
                break
            at = end
        if self.starts:
            self.offset_bytes.add(4)

    def at(self, offset: int) -> int | None:
        """Return the number of the unit that an offset lies in; None where it lies in none."""
        place = bisect_right(self.starts, offset) - 1
        return place if place >= 0 and offset < self.ends[place] else None

    def holding(self, places: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Return the numbers of the units that hold some places, each with its places. The places ascend."""
        first = 0
        while first < len(places):
            number = bisect_right(self.starts, places[first]) - 1
            past = bisect_left(places, self.ends[number], first) if number >= 0 else first
            if past > first:
                yield number, places[first:past]
            first = max(past, first + 1)
