"""The source lines of code: the rows of a line table, written by hand."""

import pytest

from footprint.dwarf.code_lines import code_lines
from footprint.elf.image import Image, read_image
from footprint.errors import InputError
from footprint.model.finding import SourceLocation
from tests.dwarfwriter import (
    AT_COMP_DIR,
    AT_NAME,
    AT_STMT_LIST,
    SEC_OFFSET,
    STRING,
    TAG_COMPILE_UNIT,
    Die,
    Unit,
    sections,
    uleb,
)
from tests.elfwriter import ElfFile, write

COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, CONST_ADD_PC, FIXED_ADVANCE_PC = 1, 2, 3, 4, 5, 8, 9
END = b"\0\1\1"


def at(vaddr: int) -> bytes:
    return b"\0\x09\2" + vaddr.to_bytes(8, "little")


def special(advance: int, step: int) -> bytes:
    """Return the opcode that adds to the address and to the line: opcode_base 13, line_base -5, line_range 14."""
    return bytes([13 + 14 * advance + step + 5])


def made(*rows: bytes, version: int = 5, start: int = 0) -> Image:
    """Return a file with a unit for each program of rows; `start` is added to the place of each table."""
    units, place = [], 0
    for number, program in enumerate(rows):
        files = (("none.c", 0), ("a.c", 0), (f"b{number}.c", 0)) if version >= 5 else (("a.c", 0), (f"b{number}.c", 0))
        directories = ("/src",) if version >= 5 else ()
        attributes = (AT_STMT_LIST, SEC_OFFSET, place + start), (AT_NAME, STRING, "a.c"), (AT_COMP_DIR, STRING, "/src")
        unit = Unit(Die(TAG_COMPILE_UNIT, attributes), version, directories=directories, files=files, rows=program)
        units.append(unit)
        (table,) = [one.data for one in sections([unit]) if one.name == ".debug_line"]
        assert isinstance(table, bytes)
        place += len(table)
    return read_image(write(ElfFile(sections=sections(units))), "a.so")


@pytest.mark.parametrize("version", [4, 5])
def test_a_row_reaches_to_the_next_one_of_its_sequence(version: int) -> None:
    rows = [
        at(0x1000) + special(0, 3),  # 0x1000: line 4
        bytes([SET_COLUMN, 7, ADVANCE_PC]) + uleb(0x80) + bytes([ADVANCE_LINE, 0x7E, COPY]),  # 0x1080: line 2
        bytes([SET_FILE, 2, CONST_ADD_PC, COPY]),  # 17 on, 0x1091: line 2 of the other file
        bytes([FIXED_ADVANCE_PC, 0x0F, 0]) + END,  # 0x10a0
    ]
    lines = code_lines(made(b"".join(rows), version=version), [0xFFF, 0x1000, 0x107F, 0x1080, 0x1091, 0x109F, 0x10A0])
    assert lines == {
        0x1000: SourceLocation("/src/a.c", 4),
        0x107F: SourceLocation("/src/a.c", 4),
        0x1080: SourceLocation("/src/a.c", 2),
        0x1091: SourceLocation("/src/b0.c", 2),
        0x109F: SourceLocation("/src/b0.c", 2),
    }


def test_each_address_is_looked_up_in_the_table_that_has_it() -> None:
    first = at(0x1000) + special(0, 1) + special(4, 1) + END + at(0x3000) + special(0, 2) + special(4, 0) + END
    second = bytes([SET_FILE, 2]) + at(0x2000) + special(0, 4) + special(4, 0) + END
    lines = code_lines(made(first, second), [0x3001, 0x2003, 0x1000])
    assert lines == {
        0x3001: SourceLocation("/src/a.c", 3),
        0x2003: SourceLocation("/src/b1.c", 5),
        0x1000: SourceLocation("/src/a.c", 2),
    }


def test_a_table_that_no_unit_names_has_no_lines() -> None:
    assert code_lines(made(at(0x1000) + special(0, 1) + special(4, 1) + END, start=1), [0x1000]) == {}


def test_a_file_without_line_tables_has_no_lines() -> None:
    assert code_lines(read_image(write(ElfFile()), "a.so"), [0x1000]) == {}


def test_a_program_that_ends_in_an_operand_is_damage() -> None:
    with pytest.raises(InputError, match=r"\.debug_line"):
        code_lines(made(at(0x1000) + special(0, 1) + bytes([ADVANCE_PC, 0x80])), [0x1000])
