"""The functions of a file by its unwind tables: those that its symbols have, also when the symbols are stripped."""

from pathlib import Path

import pytest

from footprint.elf.abi import PT_GNU_EH_FRAME
from footprint.elf.functions import FunctionStarts, read_functions
from footprint.elf.image import Image, read_image
from tests.elfwriter import ElfFile, write

SAMPLES = Path(__file__).resolve().parents[2] / "sample_binaries"
PROGRAM = SAMPLES / "heap_by_function" / "heap"


def read(path: Path) -> Image:
    return read_image(path.read_bytes(), str(path))


def test_functions_with_a_size_are_where_their_symbols_are() -> None:
    image = read(PROGRAM)
    starts = FunctionStarts(image)
    # The functions of the C runtime are written in assembler, here without unwind tables.
    named = {one.name: one for one in read_functions(image) if one.size_bytes and not one.name.startswith("_")}
    assert named.keys() == {"load_parameters", "parse_file", "main"}
    for one in named.values():
        for vaddr in (one.vaddr, one.vaddr + one.size_bytes - 1):
            assert starts.at(vaddr) == (one.vaddr, one.vaddr + one.size_bytes)


def test_addresses_outside_of_code_are_in_no_function() -> None:
    image = read(PROGRAM)
    starts = FunctionStarts(image)
    assert starts
    assert [starts.at(vaddr) for vaddr in (0, image.loads[-1].vaddr, 1 << 63)] == [None] * 3


def test_a_file_without_an_index_has_no_functions() -> None:
    starts = FunctionStarts(read_image(write(ElfFile()), "empty"))
    assert not starts
    assert starts.at(0x1000) is None


@pytest.mark.parametrize("value", [0x00, 0x7F, 0x80, 0xFF])
def test_a_damaged_index_or_entry_names_no_function_or_a_wrong_one(value: int) -> None:
    # No error leaves the reader, and no address is in a function that begins behind it.
    data = bytearray(PROGRAM.read_bytes())
    segment = read(PROGRAM).segment(PT_GNU_EH_FRAME)
    assert segment is not None
    # The entries follow the index.
    for offset in range(segment.offset, segment.offset + segment.file_bytes + 0x100):
        before, data[offset] = data[offset], value
        starts = FunctionStarts(read_image(bytes(data), "damaged"))
        for vaddr in range(0x1000, 0x2000, 256):
            found = starts.at(vaddr)
            assert found is None or found[0] <= vaddr < found[1]
        data[offset] = before


def test_an_entry_beyond_any_file_names_no_function() -> None:
    data = bytearray(PROGRAM.read_bytes())
    headers = int.from_bytes(data[32:40], "little")
    for place in range(headers, headers + 56 * int.from_bytes(data[56:58], "little"), 56):
        if data[place : place + 4] == (1).to_bytes(4, "little"):  # PT_LOAD: its offset
            data[place + 8 : place + 16] = (0xF0 << 56).to_bytes(8, "little")
    assert FunctionStarts(read_image(bytes(data), "damaged", with_sections=False)).at(0x1200) is None


def test_a_file_that_is_cut_within_its_index_has_fewer_functions_or_none() -> None:
    data = PROGRAM.read_bytes()
    segment = read(PROGRAM).segment(PT_GNU_EH_FRAME)
    assert segment is not None
    for end in range(segment.offset, segment.offset + segment.file_bytes + 64, 5):
        starts = FunctionStarts(read_image(data[:end], "cut", with_sections=False))
        assert all(starts.at(vaddr) is None for vaddr in range(0x1000, 0x2000, 256)) or end > segment.offset
