"""The index of a package of split units (`.dwp`): which part of each section belongs to which unit.

Source: DWARF 5, section 7.3.5 (DWARF Package Files); its version 2 for split units of DWARF 4.
"""

from typing import Final

from footprint.dwarf.sections import DebugSection, DebugSections

__all__ = ("DW_SECT_ABBREV", "DW_SECT_LINE", "DW_SECT_STR_OFFSETS", "Shifts", "read_shifts")

DW_SECT_INFO: Final = 1
DW_SECT_TYPES: Final = 2
DW_SECT_ABBREV: Final = 3
DW_SECT_LINE: Final = 4
DW_SECT_STR_OFFSETS: Final = 6

_HEADER_BYTES: Final = 16
_MOST_COLUMNS: Final = 16

Shifts = dict[int, int]
"""By the number of a section, where the part of a unit begins in it."""


def read_shifts(sections: DebugSections) -> dict[tuple[bool, int], Shifts]:
    """Give the parts of each unit, by whether it stands in .debug_types and where it begins; none outside of packages.

    Raises:
        InputError: Where an index is damaged.
    """
    found: dict[tuple[bool, int], Shifts] = {}
    for name in (".debug_cu_index", ".debug_tu_index"):
        for shifts in _rows(sections.get(name)):
            is_types = DW_SECT_TYPES in shifts
            start = shifts.get(DW_SECT_TYPES if is_types else DW_SECT_INFO)
            if start is not None:
                found[is_types, start] = shifts
    return found


def _rows(index: DebugSection) -> list[Shifts]:
    if not index.size_bytes:
        return []
    column_count, unit_count, slot_count = (index.unsigned(at, 4) for at in (4, 8, 12))
    # Behind a hash table of signatures, and the row of each, stands one row of section numbers, then one for each unit.
    columns_at = _HEADER_BYTES + slot_count * 12
    if column_count > _MOST_COLUMNS or columns_at + (unit_count + 1) * column_count * 4 > index.size_bytes:
        raise index.damage(f"{unit_count} units of {column_count} sections reach beyond its end", 4)
    words = [index.unsigned(columns_at + 4 * place, 4) for place in range((unit_count + 1) * column_count)]
    columns = words[:column_count]
    starts = range(column_count, len(words), column_count or 1)
    return [dict(zip(columns, words[start : start + column_count], strict=True)) for start in starts]
