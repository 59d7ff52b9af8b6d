"""Where variables live: location expressions, and the addresses that units refer to by index.

Source: DWARF 5, sections 2.6 (Location Descriptions) and 7.27 (Address Table); GNU extensions for split DWARF and TLS.
"""

import re
from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from footprint.dwarf.codes import (
    DW_AT_ADDR_BASE,
    DW_AT_GNU_ADDR_BASE,
    DW_AT_LOCATION,
)
from footprint.dwarf.forms import BLOCK_LENGTH_BYTES
from footprint.dwarf.units import DebugInfo, Entry, Unit
from footprint.errors import InputError

__all__ = ("AddressTable", "Location", "Wanted", "expression")


DW_OP_ADDR: Final = 0x03
DW_OP_CONST4U: Final = 0x0C
DW_OP_CONST8U: Final = 0x0E
DW_OP_PIECE: Final = 0x93
DW_OP_ADDRX: Final = 0xA1
DW_OP_CONSTX: Final = 0xA2
DW_OP_GNU_ADDR_INDEX: Final = 0xFB
DW_OP_GNU_CONST_INDEX: Final = 0xFC
TLS_OPERATIONS: Final = b"\x9b\xe0"  # DW_OP_form_tls_address, DW_OP_GNU_push_tls_address
INDEX_OPERATIONS: Final = bytes([DW_OP_ADDRX, DW_OP_CONSTX, DW_OP_GNU_ADDR_INDEX, DW_OP_GNU_CONST_INDEX])
_ADDRESS_INDEXES: Final = frozenset({DW_OP_ADDRX, DW_OP_GNU_ADDR_INDEX})
_TLS_CONSTANT_BYTES: Final = {DW_OP_CONST4U: 4, DW_OP_CONST8U: 8}

# DW_AT_addr_base and DW_AT_GNU_addr_base as LEB128, with the forms of offsets.
_BASE: Final = re.compile(rb"(?:\x73|\xb3\x42)[\x06\x07\x17]")
_CODES: Final = {2: "H", 4: "I", 8: "Q"}


class Wanted(NamedTuple):
    """The places whose declarations are asked for, and where the block of thread-local variables has its template."""

    vaddrs: frozenset[int]
    tls_offsets: frozenset[int]
    tls_vaddr: int


class Location(NamedTuple):
    """Where a variable lives: a vaddr, or its offset in the block of each thread."""

    value: int
    is_tls: bool


class AddressTable:
    """What is wanted of the addresses that units refer to by index, cut by the bases of the units that own them."""

    def __init__(self, debug: DebugInfo, wanted: Wanted) -> None:
        self._section = debug.sections.get(".debug_addr")
        # gcc 12 has the vaddr in the template there, where it should have the offset.
        misplaced = {wanted.tls_vaddr + offset for offset in wanted.tls_offsets}
        self._values = wanted.vaddrs | wanted.tls_offsets | misplaced
        self._bases: dict[Unit, int] = {}
        for unit in debug.units() if self._section.size_bytes and _have_bases(debug) else ():
            base = address_base(unit)
            if base is not None:
                self._bases[unit] = base
        starts = sorted({*self._bases.values(), self._section.size_bytes})
        self._ends = dict(pairwise(starts))
        self._found: dict[int, dict[int, int]] = {}

    @property
    def units(self) -> Iterable[Unit]:
        """The units that own a part, in their order."""
        return self._bases

    def indexes(self, unit: Unit) -> dict[int, int]:
        """Give the indexes of the wanted addresses in the part of a unit, or of the skeleton that stands for it.

        Raises:
            InputError: Where the unit's part is cut.
        """
        unit = unit.skeleton or unit
        base = self._bases.get(unit)
        if base is None:
            return {}
        known = self._found.get(base)
        if known is None:
            known = self._found[base] = self._read(unit, base)
        return known

    def _read(self, unit: Unit, base: int) -> dict[int, int]:
        # The next part begins with a header; where that is read as addresses, no index leads there.
        end = self._ends.get(base, base)
        address_bytes = unit.format.address_bytes
        values = array(_CODES[address_bytes])
        raw = self._section.data[base:end]
        values.frombytes(raw[: len(raw) // address_bytes * address_bytes])
        if (self._section.order == "little") != (array("H", [1]).tobytes()[0] == 1):
            values.byteswap()
        return {index: value for index, value in enumerate(values) if value in self._values}


def _have_bases(debug: DebugInfo) -> bool:
    """Tell whether some unit may own a part, by the abbreviations of all: most files have none."""
    return _BASE.search(debug.sections.get(".debug_abbrev").data) is not None


def address_base(unit: Unit) -> int | None:
    """Give where the unit's part of .debug_addr begins, or None where it has none, or is damaged."""
    try:
        base = unit.number(unit.root, DW_AT_ADDR_BASE)
        return unit.number(unit.root, DW_AT_GNU_ADDR_BASE) if base is None else base
    except InputError:
        return None


def expression(entry: Entry) -> tuple[int, int] | None:
    """Give where the location expression of an entry starts, and its size; None where it has none.

    Raises:
        InputError: Where it is damaged.
    """
    place = entry.places.get(DW_AT_LOCATION)
    if place is None or place[0] not in BLOCK_LENGTH_BYTES:
        return None
    return entry.unit.format.block(entry.unit.section, place[0], entry.at + place[1])


def location(unit: Unit, start: int, size_bytes: int, indexes: dict[int, int], wanted: Wanted) -> Location | None:
    """Give the wanted place that an expression stands for; None where it stands for anything else.

    Of a variable that an optimiser took apart, it is the place of its first piece.

    Raises:
        InputError: Where it is cut.
    """
    section, end = unit.section, start + size_bytes
    if size_bytes < 2 or end > unit.end:
        return None
    operation = section.data[start]
    value: int | None
    if operation == DW_OP_ADDR:
        at = start + 1 + unit.format.address_bytes
        value = section.unsigned(start + 1, unit.format.address_bytes)
    elif operation in _TLS_CONSTANT_BYTES:
        at = start + 1 + _TLS_CONSTANT_BYTES[operation]
        value = section.unsigned(start + 1, at - start - 1)
    elif operation in INDEX_OPERATIONS:
        index, at = section.uleb(start + 1)
        value = indexes.get(index)
    else:
        return None
    is_tls = operation not in _ADDRESS_INDEXES and operation != DW_OP_ADDR
    if is_tls:
        if at >= end or section.data[at] not in TLS_OPERATIONS:
            return None
        at += 1
    if value is None or at > end or (at < end and section.data[at] != DW_OP_PIECE):
        return None
    if not is_tls:
        return Location(value, is_tls=False) if value in wanted.vaddrs else None
    if value not in wanted.tls_offsets and operation in INDEX_OPERATIONS:
        value -= wanted.tls_vaddr
    return Location(value, is_tls=True) if value in wanted.tls_offsets else None
