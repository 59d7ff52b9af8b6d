"""Where threads have their thread-local blocks, by memory in view: control blocks, vectors, and the loader's list."""

import struct
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.process.live_memory import LinkEntry, ThreadVector, loader_entries, thread_vectors

PAGE = 4096
UNUSED = (1 << 64) - 1


class Memory:
    """Some pieces of memory by their address; all else is not there."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        self._pieces = sorted(pieces.items())

    def read(self, addr: int, size_bytes: int) -> bytes:
        for start, data in self._pieces:
            if start <= addr < start + len(data):
                return data[addr - start : addr - start + size_bytes]
        return b""

    def skip(self, addr: int, end_addr: int) -> int:
        for start, data in self._pieces:
            if addr < start + len(data):
                return min(max(addr, start), end_addr)
        return end_addr


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


TCB, VECTOR = 0x7F0000010FC0, 0x5000
BLOCKS = {
    # A page of a stack: the variables of two modules, then the control block.
    TCB - 0xFC0: bytes(0xFC0) + words(TCB, VECTOR, TCB) + bytes(40),
    # Four entries: their number before the vector, the generation, then pairs of an address and what to free.
    VECTOR - 16: words(4, 0, 1, 0, TCB - 64, 0, TCB - 192, 0, UNUSED, 0, 0x9000, 0x9000),
}


def vectors(memory: Memory, *places: tuple[int, int]) -> list[ThreadVector]:
    return list(thread_vectors(memory, 8, places))


def test_a_control_block_leads_to_the_blocks_that_a_thread_got_at_its_start() -> None:
    # The third module was never used, and the block of the fourth was allocated later.
    expected = ThreadVector(TCB, (TCB - 64, TCB - 192, None, None))
    assert vectors(Memory(BLOCKS), (TCB - 0xFC0, TCB + 64)) == [expected]
    # A stack pointer is not aligned, and pages below may not be there.
    assert vectors(Memory(BLOCKS), (TCB - 0x5000 - 8, TCB + 64)) == [expected]


@pytest.mark.parametrize(
    "vector",
    [words(0, 0, 1, 0), words(1 << 40, 0, 1, 0), words(4, 0, 1, 0, TCB - 64), b""],
    ids=["no entries", "too many", "cut", "not there"],
)
def test_a_vector_that_does_not_fit_is_no_thread(vector: bytes) -> None:
    assert vectors(Memory(BLOCKS | {VECTOR - 16: vector}), (TCB - 0xFC0, TCB + 64)) == []


def test_pointers_that_lead_elsewhere_are_no_control_block() -> None:
    page = bytes(0xFC0) + words(TCB, VECTOR, TCB + 8) + bytes(40)
    assert vectors(Memory(BLOCKS | {TCB - 0xFC0: page}), (TCB - 0xFC0, TCB + 64)) == []


def test_control_blocks_are_found_wherever_they_lie_in_much_memory() -> None:
    # Each piece that is read at once has 128 KiB: blocks at both sides of its borders, and at both ends.
    start, size, piece = 0x7F0000020000, 0x50000, 0x20000
    addrs = [start + at for at in (0, 0x140, piece - 64, piece, 2 * piece - 64, 2 * piece + 192, size - 64)]
    memory = bytearray(size)
    for addr in addrs:
        memory[addr - start : addr - start + 24] = words(addr, VECTOR, addr)
    # Addresses of other places of the same pages are none.
    memory[0x400:0x418] = words(start + 0x440, VECTOR, start + 0x440)
    found = vectors(Memory(BLOCKS | {start: bytes(memory)}), (start, start + size))
    assert [vector.tcb_addr for vector in found] == addrs


@given(st.binary(max_size=600), st.integers(0, 2**64 - 1))
def test_whatever_is_in_memory_is_read_without_an_error(data: bytes, addr: int) -> None:
    memory = Memory({addr: data, 0x1000: data})
    for vector in thread_vectors(memory, 8, [(addr, addr + len(data)), (0x1000, 0x1000 + len(data))]):
        assert all(addr is None or addr < vector.tcb_addr for addr in vector.block_addrs)
    loader_entries(memory, 8, data)
    loader_entries(memory, 4, words(3, addr, 4, 56, 5, 2) + data)


HEADERS, DYNAMIC, DEBUG, LIST = 0x400040, 0x403000, 0x7000, 0x8000
AUXV = words(3, HEADERS, 4, 56, 5, 2, 9, 0x401000, 0, 0)
# PT_PHDR and PT_DYNAMIC of a program that is linked to 0 and loaded at 0x400000.
PROGRAM = {
    HEADERS: words(6 | 4 << 32, 0x40, 0x40, 0x40, 112, 112, 8, 2 | 6 << 32, 0x3000, 0x3000, 0, 0, 0, 8),
    DYNAMIC: words(1, 5, 21, DEBUG, 0, 0),
    DEBUG: words(1, LIST),
    LIST: words(0x400000, 0, DYNAMIC, LIST + 64) + bytes(32) + words(0x7F0000000000, 0, 0x7F0000002000, 0),
}


def test_the_list_of_the_loader_has_the_objects_in_load_order() -> None:
    assert [one.section_addr for one in loader_entries(Memory(PROGRAM), 8, AUXV)] == [DYNAMIC, 0x7F0000002000]


def test_the_number_of_a_module_is_behind_what_the_loader_knows_of_its_variables() -> None:
    # A program at 0x400000: 16 bytes of .tdata at 0x3d00, 64 bytes in all, aligned to 32; two offsets, module 3.
    known = words(0x403D00, 16, 64, 32, 0, 64, 3, 0)
    entries = PROGRAM | {LIST: words(0x400000, 0, DYNAMIC, 0) + bytes(800) + known}
    (entry,) = loader_entries(Memory(entries), 8, AUXV)
    assert entry.module_number(0x3D00, 16, 64, 32) == 3
    # A library whose variables are others is not this one.
    assert entry.module_number(0x3D00, 16, 72, 32) is None
    assert entry.module_number(0x4D00, 16, 64, 32) is None


def test_the_variables_of_a_static_program_are_the_first_module() -> None:
    (entry,) = loader_entries(Memory({}), 8, AUXV)
    assert entry.module_number(0x3D00, 16, 64, 32) == 1


@pytest.mark.parametrize("missing", [HEADERS, DYNAMIC, DEBUG, LIST])
def test_without_the_list_only_the_program_is_known(missing: int) -> None:
    assert loader_entries(Memory({at: data for at, data in PROGRAM.items() if at != missing}), 8, AUXV) == (
        LinkEntry(HEADERS),
    )


def test_a_list_that_is_a_circle_ends() -> None:
    circle = PROGRAM | {LIST: words(0, 0, DYNAMIC, LIST)}
    assert {loader_entry.section_addr for loader_entry in loader_entries(Memory(circle), 8, AUXV)} == {DYNAMIC}


def test_memory_full_of_control_blocks_is_not_read_without_end() -> None:
    # Each 64 bytes are a control block, and all lead to a vector of 4,000 blocks.
    count = 4000
    page = b"".join(words(addr, VECTOR, addr, 0, 0, 0, 0, 0) for addr in range(TCB, TCB + 64 * 5000, 64))
    memory = Memory({TCB: page, VECTOR - 16: words(count, 0, 1, 0) + words(64, 0) * count})
    found = vectors(memory, (TCB, TCB + len(page)))
    assert sum([len(one.block_addrs) for one in found]) <= 1 << 20
