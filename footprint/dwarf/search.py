"""Variables found by their addresses: the bytes of an address are searched for, and each candidate is proved.

A variable of static storage carries its address in the debug information as bytes, behind DW_OP_addr. The addresses of
interest have most of these bytes in common, so one regular expression finds every candidate at the speed of memory. A
walk would decode every type and every call on the way. `footprint.dwarf.proof` proves the candidates.

Source: DWARF 5, sections 2.6 (Location Descriptions) and 7.27 (Address Table); GNU extensions for split DWARF and TLS.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.encoding import BLOCK_LENGTH_BYTES
from footprint.dwarf.places import VariablePlace
from footprint.dwarf.proof import Candidates, Prover
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import DebugInfo, Entry, Unit
from footprint.elf import abi
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern

# A byte with this many values in the wanted numbers gets no character class.
_MANY_VALUES: Final = 64


def words_behind(section: DebugSection, before: bytes, words: set[bytes], behind: bytes = b"") -> Iterator[int]:
    """Find the places of words of equal length after the bytes `before`, and before one of the bytes `behind`."""
    if not words:
        return
    first, *rest = [_byte_class(column) for column in zip(*words, strict=True)]
    ending = b"[%s]" % re.escape(behind) if behind else b""
    # The lookahead lets matches overlap.
    start, ahead = (re.escape(before), first + b"".join(rest)) if before else (first, b"".join(rest))
    pattern = re.compile(b"%s(?=%s%s)" % (start, ahead, ending), re.DOTALL)
    size_bytes, data, back = len(next(iter(words))), section.data, 0 if before else 1
    for match in pattern.finditer(data):
        at = match.end() - back
        if bytes(data[at : at + size_bytes]) in words:
            yield at


def _byte_class(column: Iterable[int]) -> bytes:
    values = set(column)
    if len(values) >= _MANY_VALUES:
        return b"."
    return b"[%s]" % b"".join(re.escape(bytes([value])) for value in sorted(values))


TLS_OPERATIONS: Final = b"\x9b\xe0"  # DW_OP_form_tls_address, DW_OP_GNU_push_tls_address
INDEX_OPERATIONS: Final = bytes([dw.OP_ADDRX, dw.OP_CONSTX, dw.OP_GNU_ADDR_INDEX, dw.OP_GNU_CONST_INDEX])
_ADDRESS_INDEXES: Final = frozenset({dw.OP_ADDRX, dw.OP_GNU_ADDR_INDEX})
_TLS_CONSTANT_BYTES: Final = {dw.OP_CONST4U: 4, dw.OP_CONST8U: 8}

# DW_AT_addr_base and DW_AT_GNU_addr_base as LEB128, with the forms of offsets.
_BASE: Final = lazy_pattern(rb"(?:\x73|\xb3\x42)[\x06\x07\x17]")
# For these clang joins variables to one, and describes each by the place of the first of them and an offset.
MERGING_MACHINES: Final = frozenset({abi.EM_AARCH64, abi.EM_ARM, abi.EM_PPC, abi.EM_PPC64, abi.EM_RISCV})

_OFFSET_BEHIND: Final = bytes([dw.OP_PLUS_UCONST])
_CODES: Final = {2: "H", 4: "I", 8: "Q"}


class Wanted(NamedTuple):
    """The places whose declarations are wanted, and the vaddr of the template of thread-local variables."""

    vaddrs: frozenset[int]
    tls_offsets: frozenset[int]
    tls_vaddr: int


class AddressTable:
    """The wanted addresses among those that units refer to by index; each owns a part of .debug_addr.

    Attributes:
        values: The wanted addresses and offsets. Where variables are merged, the table has the others, too.
    """

    def __init__(self, debug: DebugInfo, wanted: Wanted) -> None:
        self._section = debug.sections.get(".debug_addr")
        # gcc 12 writes the vaddr in the template there, in place of the offset.
        misplaced = {wanted.tls_vaddr + offset for offset in wanted.tls_offsets}
        self.values = wanted.vaddrs | wanted.tls_offsets | misplaced
        self._has_merged = debug.image.machine in MERGING_MACHINES
        self._bases: dict[Unit, int] = {}
        for unit in debug.units() if self._section.size_bytes and _have_bases(debug) else ():
            base = address_base(unit)
            if base is not None:
                self._bases[unit] = base
        starts = sorted({*self._bases.values(), self._section.size_bytes})
        self._ends = dict(pairwise(starts))
        self._read_tables: dict[int, dict[int, int]] = {}

    @property
    def units(self) -> Iterable[Unit]:
        """The units that own a part, in their order."""
        return self._bases

    def indexes(self, unit: Unit) -> dict[int, int]:
        """Return the indexes of the wanted addresses in the part of a unit, or of its skeleton."""
        unit = unit.skeleton or unit
        base = self._bases.get(unit)
        if base is None:
            return {}
        numbers = self._read_tables.get(base)
        if numbers is None:
            numbers = self._read_tables[base] = self._read(unit, base)
        return numbers

    def _read(self, unit: Unit, base: int) -> dict[int, int]:
        # The next part begins with a header. No index refers to it, so it does no harm when it is read as addresses.
        end = self._ends.get(base, base)
        address_bytes = unit.format.address_bytes
        values = array(_CODES[address_bytes])
        raw = self._section.data[base:end]
        values.frombytes(raw[: len(raw) // address_bytes * address_bytes])
        if (self._section.order == "little") != (array("H", [1]).tobytes()[0] == 1):
            values.byteswap()
        return {index: value for index, value in enumerate(values) if self._has_merged or value in self.values}


def _have_bases(debug: DebugInfo) -> bool:
    """Return whether any unit may own a part, from the abbreviations of all units: in most files none does."""
    return _BASE.search(debug.sections.get(".debug_abbrev").data) is not None


def address_base(unit: Unit) -> int | None:
    """Return the start of the part of a unit in .debug_addr; None where it has none, or is damaged."""
    try:
        base = unit.number(unit.root, dw.AT_ADDR_BASE)
        return unit.number(unit.root, dw.AT_GNU_ADDR_BASE) if base is None else base
    except InputError:
        return None


def expression(entry: Entry) -> tuple[int, int] | None:
    """Return the start and size of the location expression of an entry; None where it has none."""
    place = entry.places.get(dw.AT_LOCATION)
    if place is None or place[0] not in BLOCK_LENGTH_BYTES:
        return None
    return entry.unit.format.block(entry.unit.section, place[0], entry.at + place[1])


def location(unit: Unit, start: int, size_bytes: int, indexes: dict[int, int], wanted: Wanted) -> VariablePlace | None:
    """Return the wanted place that an expression describes; None for any other expression.

    For a variable that an optimiser split into pieces, it is the place of the first piece.
    """
    section, end = unit.section, start + size_bytes
    if size_bytes < 2 or end > unit.end:
        return None
    operation = section.data[start]
    value: int | None
    if operation == dw.OP_ADDR:
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
    is_tls = operation not in _ADDRESS_INDEXES and operation != dw.OP_ADDR
    if is_tls:
        if at >= end or section.data[at] not in TLS_OPERATIONS:
            return None
        at += 1
    else:
        added, at = section.uleb(at + 1) if section.data[at : min(at + 1, end)] == _OFFSET_BEHIND else (0, at)
        value = None if value is None else value + added
    if value is None or at > end or (at < end and section.data[at] != dw.OP_PIECE):
        return None
    if not is_tls:
        return VariablePlace(value, is_tls=False) if value in wanted.vaddrs else None
    if value not in wanted.tls_offsets and operation in INDEX_OPERATIONS:
        value -= wanted.tls_vaddr
    return VariablePlace(value, is_tls=True) if value in wanted.tls_offsets else None


# Short expressions that begin with an operation on an index. A search for one byte is ten times as fast as one for a
# class of bytes, so the length before it is checked last.
_INDEXED: Final = tuple(
    [
        lazy_pattern(rb"%b(?<=[\x02-\x1f]%b)" % (code, code), re.DOTALL)
        for code in (re.escape(bytes([operation])) for operation in INDEX_OPERATIONS)
    ]
)


def candidates(debug: DebugInfo, wanted: Wanted, addresses: AddressTable) -> Iterator[Candidates]:
    """Find the places of wanted addresses, offsets, or their indexes in the units of .debug_info."""
    section = debug.sections.get(".debug_info")
    places: list[int] = []
    for address_bytes in debug.headers.address_bytes:
        places += _direct(section, dw.OP_ADDR, address_bytes, wanted.vaddrs)
        if debug.image.machine in MERGING_MACHINES:
            places = [*{*places, *_merged(section, address_bytes, wanted.vaddrs)}]
    for operation, size_bytes in _TLS_CONSTANT_BYTES.items():
        # Compilers write the offset of a thread-local variable in as many bytes as an address.
        if size_bytes in debug.headers.address_bytes:
            places += _direct(section, operation, size_bytes, wanted.tls_offsets, TLS_OPERATIONS)
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
    """Find the places of the indexes of wanted addresses in a unit, and join them with its other places."""
    indexes = addresses.indexes(unit)
    if indexes:
        places = sorted({*places, *_indexed(unit, indexes, addresses.values)})
    if places:
        yield Candidates(unit, places, indexes)


def _direct(
    section: DebugSection, operation: int, size_bytes: int, values: frozenset[int], behind: bytes = b""
) -> Iterator[int]:
    """Find the places of an operation with one of some values as its operand."""
    words = {value.to_bytes(size_bytes, section.order) for value in values if 0 <= value < 1 << 8 * size_bytes}
    for place in words_behind(section, bytes([operation]), words, behind):
        yield place - 1


def _merged(section: DebugSection, address_bytes: int, vaddrs: frozenset[int]) -> Iterator[int]:
    """Find the places of an address behind which an offset stands that leads to one of some vaddrs."""
    ahead = re.escape(bytes([dw.OP_ADDR])), address_bytes, re.escape(_OFFSET_BEHIND)
    for match in re.finditer(b"%b(?=.{%d}%b)" % ahead, section.data, re.DOTALL):
        at = match.end()
        with suppress(InputError):
            if section.unsigned(at, address_bytes) + section.uleb(at + address_bytes + 1)[0] in vaddrs:
                yield match.start()


def _indexed(unit: Unit, indexes: dict[int, int], values: frozenset[int]) -> Iterator[int]:
    """Find the places of an operation with one of some indexes as its operand; others are before an offset."""
    for pattern in _INDEXED:
        for match in pattern.finditer(unit.section.data, unit.first, unit.end):
            try:
                index, at = unit.section.uleb(match.end())
            except InputError:
                continue
            if index in indexes and (indexes[index] in values or unit.section.data[at : at + 1] == _OFFSET_BEHIND):
                yield match.start()


class AddressProver(Prover[VariablePlace]):
    """Proves that the location of a variable is a wanted one."""

    def __init__(self, wanted: Wanted) -> None:
        # An expression of interest is short: its length in LEB128 takes one byte.
        super().__init__(dw.AT_LOCATION, {form: size_bytes or 1 for form, size_bytes in BLOCK_LENGTH_BYTES.items()})
        self._wanted = wanted

    def _wanted_in(self, entry: Entry, place: int, group: Candidates) -> VariablePlace | None:
        block = expression(entry)
        if block is None or block[0] != place:
            return None
        return location(entry.unit, *block, group.indexes, self._wanted)
