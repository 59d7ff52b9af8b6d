"""Huge pages that a process has released in part: what nobody maps of them, by the flags of their frames."""

from array import array

import pytest

from footprint.process.huge_pages import frame_blocks, released_pages
from footprint.process.mappings import Counters, Mapping
from footprint.process.pages import has_parts_of_huge_pages

# Documentation/admin-guide/mm/pagemap.rst: 12 anonymous, 15 compound head, 16 compound tail, 22 transparent huge page.
HEAD, TAIL, SMALL = 1 << 22 | 1 << 15 | 1 << 12, 1 << 22 | 1 << 16 | 1 << 12, 1 << 12
PRESENT, OF_FILE = 1 << 63, 1 << 61


def words(*values: int) -> bytes:
    return array("Q", values).tobytes()


@pytest.mark.parametrize(
    ("flags", "counts", "released_count"),
    [
        pytest.param([HEAD, TAIL, TAIL, TAIL], [1, 0, 0, 0], 3, id="one page is left"),
        pytest.param([HEAD, TAIL, TAIL, TAIL], [0, 2, 0, 1], 2, id="others map the rest"),
        pytest.param([HEAD, TAIL, TAIL, TAIL], [1, 1, 1, 1], 0, id="whole"),
        pytest.param([SMALL, SMALL, SMALL, SMALL], [1, 0, 0, 0], 0, id="small pages"),
        pytest.param([HEAD, TAIL, HEAD, TAIL], [1, 0, 1, 0], 0, id="two smaller ones"),
        pytest.param([1 << 15, 1 << 16, 1 << 16, 1 << 16], [1, 0, 0, 0], 0, id="compound, of a driver"),
        pytest.param([], [], 0, id="not there"),
    ],
)
def test_what_nobody_maps_of_a_huge_page_is_released(flags: list[int], counts: list[int], released_count: int) -> None:
    assert released_pages(words(*flags), words(*counts)) == released_count


def test_a_page_of_a_huge_page_lies_in_its_block_of_frames_as_in_memory() -> None:
    # With blocks of four pages: the pages 8 to 13, of which those at 9 and 12 lie so.
    frames = [41, 41, 43, 40, 44, 44]
    entries = [PRESENT | frame for frame in frames]
    assert frame_blocks(entries, 8, 4) == [10, 11]
    assert frame_blocks(frames, 8, 4) == []


@pytest.mark.parametrize(
    ("counters", "flags", "may"),
    [
        ({"THPeligible": 1, "Anonymous": 8192, "AnonHugePages": 4096}, "rd wr", True),
        ({"THPeligible": 1, "Anonymous": 4096, "AnonHugePages": 4096}, "rd wr", False),
        ({"THPeligible": 0, "Anonymous": 4096, "AnonHugePages": 0}, "rd wr hg", True),
        ({"THPeligible": 0, "Anonymous": 4096, "AnonHugePages": 0}, "rd wr", False),
    ],
)
def test_only_mappings_that_may_have_had_huge_pages_are_looked_at(
    counters: dict[str, int], flags: str, *, may: bool
) -> None:
    columns = Counters({key: place for place, key in enumerate(counters)}, tuple(counters.values()))
    mapping = Mapping(0x1000, 0x2000, "rw-p", 0, "00:00", 0, "", columns, vm_flags=flags)
    assert has_parts_of_huge_pages(mapping) is may
