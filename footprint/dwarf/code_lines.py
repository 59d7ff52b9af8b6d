"""The source lines of code: the rows that the program of a line table makes for some addresses.

The program of the table is run that has the last sequence which begins before an address.

Source: DWARF 5, section 6.2 (Line Number Information), and those of versions 2 to 4.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from footprint.dwarf import dw
from footprint.dwarf.lines import SourceFiles
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import DebugInfo, Unit
from footprint.elf.image import Image
from footprint.model.finding import SourceLocation

# DW_LNE_set_address with an address of 8 bytes.
_SET_ADDRESS: Final = re.compile(rb"\0\x09\x02(?=(.{8}))", re.DOTALL)
_MOST_TRIED: Final = 3
# The table of one unit; a program is run in Python.
_MOST_TABLE_BYTES: Final = 1 << 22


class _Row(NamedTuple):
    """A row of a line table: from its address on, the code is of this line."""

    vaddr: int
    file: int
    line: int
    is_end: bool


def code_lines(image: Image, vaddrs: Iterable[int]) -> Mapping[int, SourceLocation]:
    """Return the lines that the instructions at some vaddrs were compiled from, as far as the file itself has them.

    Raises:
        InputError: Where the debug information is damaged.
    """
    debug = DebugInfo(image)
    section = debug.sections.get(".debug_line")
    sequences = sorted(
        (int.from_bytes(match[1], section.order), match.start()) for match in _SET_ADDRESS.finditer(section.data)
    )
    if not sequences:
        return {}
    tables, files = list(_tables(section)), SourceFiles()
    units: dict[int | None, Unit] = {}
    for unit in debug.units():
        units.setdefault(unit.number(unit.root, dw.AT_STMT_LIST), unit)
    lines: dict[int, SourceLocation] = {}
    places = {vaddr: bisect_right(sequences, (vaddr, section.size_bytes)) for vaddr in sorted(set(vaddrs))}
    # Other bytes may look like a sequence: then it is one of those before. Each table is run for all of its addresses.
    for back in range(1, _MOST_TRIED + 1):
        wanted: dict[int, list[int]] = {}
        for vaddr, past in places.items():
            if vaddr not in lines and past >= back:
                wanted.setdefault(tables[bisect_right(tables, sequences[past - back][1]) - 1], []).append(vaddr)
        for table, of_table in wanted.items():
            for vaddr, row in _rows_at(section, table, of_table).items() if table in units else ():
                if path := files.path(units[table], row.file):
                    lines[vaddr] = SourceLocation(path, row.line)
    return lines


def _tables(section: DebugSection) -> Iterator[int]:
    """Yield the starts of the line tables."""
    at = 0
    while at < section.size_bytes:
        yield at
        length_bytes, _, start = section.initial_length(at)
        at = start + length_bytes


def _rows_at(section: DebugSection, table: int, vaddrs: Sequence[int]) -> Mapping[int, _Row]:
    """Return the first row of a table that covers each of some sorted addresses."""
    last = _Row(0, 0, 0, is_end=True)
    rows: dict[int, _Row] = {}
    for row in _rows(section, table):
        if not last.is_end and last.vaddr < row.vaddr:
            for vaddr in vaddrs[bisect_left(vaddrs, last.vaddr) : bisect_left(vaddrs, row.vaddr)]:
                rows.setdefault(vaddr, last)
        last = row
    return rows


def _rows(section: DebugSection, table: int) -> Iterator[_Row]:  # noqa: C901, PLR0912 # a branch an opcode
    """Run the program of a line table, and yield its rows."""
    length_bytes, offset_bytes, at = section.initial_length(table)
    end = at + length_bytes
    if length_bytes > _MOST_TABLE_BYTES:
        return
    version = section.unsigned(at, 2)
    at += 4 if version >= 5 else 2
    header_bytes, at = section.unsigned(at, offset_bytes), at + offset_bytes
    program = at + header_bytes
    least_bytes, at = section.unsigned(at, 1), at + (3 if version >= 4 else 2)
    line_base, line_range, opcode_base = (section.unsigned(at + place, 1) for place in range(3))
    line_base -= 256 * (line_base > 127)
    if not line_range:
        raise section.damage("a line table without a range of lines", table)
    operand_counts = [section.unsigned(at + 3 + place, 1) for place in range(opcode_base - 1)]
    vaddr, file, line = 0, 1, 1
    at = program
    while at < end:
        opcode, at = section.unsigned(at, 1), at + 1
        if opcode >= opcode_base:
            advance, step = divmod(opcode - opcode_base, line_range)
            vaddr, line = vaddr + advance * least_bytes, line + line_base + step
            yield _Row(vaddr, file, line, is_end=False)
        elif not opcode:
            size_bytes, at = section.uleb(at)
            kind = section.unsigned(at, 1) if size_bytes else 0
            if kind == dw.LNE_END_SEQUENCE:
                yield _Row(vaddr, file, line, is_end=True)
                vaddr, file, line = 0, 1, 1
            elif kind == dw.LNE_SET_ADDRESS:
                vaddr = section.unsigned(at + 1, size_bytes - 1)
            at += size_bytes
        elif opcode == dw.LNS_COPY:
            yield _Row(vaddr, file, line, is_end=False)
        elif opcode == dw.LNS_ADVANCE_PC:
            advance, at = section.uleb(at)
            vaddr += advance * least_bytes
        elif opcode == dw.LNS_ADVANCE_LINE:
            step, at = section.sleb(at)
            line += step
        elif opcode == dw.LNS_SET_FILE:
            file, at = section.uleb(at)
        elif opcode == dw.LNS_CONST_ADD_PC:
            vaddr += (255 - opcode_base) // line_range * least_bytes
        elif opcode == dw.LNS_FIXED_ADVANCE_PC:
            vaddr, at = vaddr + section.unsigned(at, 2), at + 2
        else:
            for _ in range(operand_counts[opcode - 1]):
                at = section.uleb(at)[1]
