"""A file is placed where the addresses of a profile fit its functions, and nowhere where they fit as well elsewhere."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from footprint.attribution.heap_places import Binary, Origin, place_files
from footprint.elf.abi import ET_DYN
from footprint.heap.profile import Frame

BIAS = 0x55_5555_5000
MAIN, SIZE = 0x1200, 3 * 4096  # main covers parts of four pages
FILL = 0x5000


def program(*functions: tuple[str, int, int]) -> Binary:
    """Return a file with these functions: name, vaddr, size."""
    load = SimpleNamespace(vaddr=0x1000, memory_bytes=0x8000, flags=1)
    image = SimpleNamespace(type=ET_DYN, loads=(load,), machine=0)
    return Binary("/p", cast("Any", image), cast("Any", SimpleNamespace(extents=lambda _words: functions)))


def frames(**offsets: tuple[int, ...]) -> list[Frame]:
    """Return calls in each function at distances from its start, in a process where the file has BIAS."""
    starts = {"main": MAIN, "fill": FILL, "inlined": MAIN}
    return [Frame(BIAS + starts[name] + offset, name, "p.c", 1) for name, found in offsets.items() for offset in found]


@pytest.mark.parametrize(
    ("calls", "bias"),
    [
        (
            frames(main=(0x10, 0x800, 0x1400, SIZE - 1)),
            BIAS,
        ),  # at the pages beside it, the first or the last is outside
        (frames(main=tuple(range(0, SIZE, 64)), fill=(8,)), BIAS),
        (frames(main=(0x1800, 0x1900)), None),  # fits at three biases
        # Calls that were inlined into main, and of whose function the file has a copy.
        (frames(main=(0x10, 0x800, 0x1400, SIZE - 1), inlined=(0x900,)), BIAS),
        (frames(fill=(8, 20)), BIAS),
        ([], None),
    ],
)
def test_a_file_is_placed_where_all_its_calls_fit(calls: list[Frame], bias: int | None) -> None:
    binary = program(("main", MAIN, SIZE), ("fill", FILL, 64), ("inlined", FILL + 64, 16))
    placed = place_files(calls, [binary], "a profile", [])
    assert {one.bias_addr for one in placed} == ({bias} if bias else set())


def test_a_versioned_name_is_found_and_a_label_without_a_size_speaks_against_no_place() -> None:
    """A static symbol table writes `fill@@LIB_1`; assembler may give a label no size."""
    binary = program(("fill@@LIB_1", FILL, 64), ("main", MAIN, 0))._replace(origin=Origin.COMMAND)
    calls = [*frames(fill=(8, 20)), *frames(main=tuple(range(0, 64, 8)))]
    assert [one.bias_addr for one in place_files(calls, [binary], "a profile", [])] == [BIAS]
