"""Variables found by their addresses: the bytes of the address are searched for, and what is found is proved.

A variable of static storage carries its address in the debug information as bytes, behind DW_OP_addr. All addresses of
interest have most of these bytes in common, so that one regular expression finds every candidate at the speed of
memory, where a walk would decode every type and every call on the way.

A candidate is proved, not believed (`footprint.dwarf.proof`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from footprint.dwarf.codes import DW_AT_LOCATION
from footprint.dwarf.forms import BLOCK_LENGTH_BYTES
from footprint.dwarf.locations import (
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
from footprint.dwarf.proof import Candidates, Prover
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import DebugInfo, Entry, Unit
from footprint.dwarf.words import words_behind
from footprint.errors import InputError

__all__ = ("AddressProver", "candidates", "indexed")


# Short expressions that begin with an operation on an index. One byte is searched for ten times as fast as one of a
# class, so that the length before it is looked at last.
_INDEXED: Final = tuple(
    [
        re.compile(rb"%b(?<=[\x02-\x1f]%b)" % (code, code), re.DOTALL)
        for code in (re.escape(bytes([operation])) for operation in INDEX_OPERATIONS)
    ]
)


def candidates(debug: DebugInfo, wanted: Wanted, addresses: AddressTable) -> Iterator[Candidates]:
    """Find where wanted addresses, offsets or their indexes stand in the units of .debug_info."""
    section = debug.sections.get(".debug_info")
    places: list[int] = []
    for address_bytes in debug.headers.address_bytes:
        places += _direct(section, DW_OP_ADDR, address_bytes, wanted.vaddrs)
    places += _direct(section, DW_OP_CONST8U, 8, wanted.tls_offsets, TLS_OPERATIONS)
    places += _direct(section, DW_OP_CONST4U, 4, wanted.tls_offsets, TLS_OPERATIONS)
    places.sort()
    owners = iter(addresses.units)
    owner = next(owners, None)
    for number, here in debug.headers.holding(places):
        unit = debug.unit(number)
        while owner is not None and owner.start < unit.start:
            yield from indexed(owner, addresses)
            owner = next(owners, None)
        if owner is unit:
            yield from indexed(unit, addresses, here)
            owner = next(owners, None)
        else:
            yield Candidates(unit, here, {})
    while owner is not None:
        yield from indexed(owner, addresses)
        owner = next(owners, None)


def indexed(unit: Unit, addresses: AddressTable, places: Sequence[int] = ()) -> Iterator[Candidates]:
    """Find where the indexes of wanted addresses stand in a unit, and join them with other places, if there are any."""
    indexes = addresses.indexes(unit)
    if indexes:
        places = sorted({*places, *_indexed(unit, indexes)})
    if places:
        yield Candidates(unit, places, indexes)


def _direct(
    section: DebugSection, operation: int, size_bytes: int, values: frozenset[int], behind: bytes = b""
) -> Iterator[int]:
    """Find an operation with one of some values as its operand."""
    words = {value.to_bytes(size_bytes, section.order) for value in values if 0 <= value < 1 << 8 * size_bytes}
    for place in words_behind(section, bytes([operation]), words, behind):
        yield place - 1


def _indexed(unit: Unit, indexes: dict[int, int]) -> Iterator[int]:
    """Find an operation with one of some indexes as its operand."""
    for pattern in _INDEXED:
        for match in pattern.finditer(unit.section.data, unit.first, unit.end):
            try:
                index, _ = unit.section.uleb(match.end())
            except InputError:
                continue
            if index in indexes:
                yield match.start()


class AddressProver(Prover[Location]):
    """Proves that the location of a variable is a wanted one."""

    def __init__(self, wanted: Wanted) -> None:
        # An expression of interest is short: LEB128 tells its length in one byte.
        super().__init__(DW_AT_LOCATION, {form: size_bytes or 1 for form, size_bytes in BLOCK_LENGTH_BYTES.items()})
        self._wanted = wanted

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> Location | None:
        block = expression(entry)
        if block is None or block[0] != place:
            return None
        return location(entry.unit, *block, group.indexes, self._wanted)
