"""Page bits and counters of a mapping that disagree: what changed while they were read explains it, or nothing does."""

import pytest

from footprint.process.mappings import MemoryMap
from footprint.process.maps_text import parse_maps
from footprint.process.pages import PageRange
from footprint.process.snapshot import contradicted

START = 0x7F0000000000


def memory(private_kib: int, shared_kib: int = 0) -> MemoryMap:
    """Write smaps of one anonymous mapping."""
    whole_kib = private_kib + shared_kib
    return parse_maps(
        f"{START:x}-{START + (64 << 20):x} rw-p 00000000 00:00 0 \n"
        f"Size: 65536 kB\nRss: {whole_kib} kB\nShared_Clean: 0 kB\nShared_Dirty: {shared_kib} kB\n"
        f"Private_Clean: 0 kB\nPrivate_Dirty: {private_kib} kB\nAnonymous: {whole_kib} kB\n".encode(),
        "smaps",
    )


def bits(private_kib: int) -> dict[int, tuple[PageRange, ...]]:
    """Return the page bits of this mapping."""
    return {START: (PageRange(START, START + private_kib * 1024),)}


@pytest.mark.parametrize(
    ("before", "after", "is_wrong"),
    [
        pytest.param(memory(100), memory(100), False, id="they agree"),
        pytest.param(memory(80), memory(120), False, id="it grew before and after its page bits were read"),
        pytest.param(memory(120), memory(80), False, id="it shrank before and after them"),
        pytest.param(memory(80), memory(90), True, id="it grew, but to less than they show"),
        pytest.param(memory(36, 4000), memory(36, 4000), True, id="a fork split its huge pages"),
    ],
)
def test_page_bits_are_wrong_if_no_change_meanwhile_explains_them(
    before: MemoryMap, after: MemoryMap, *, is_wrong: bool
) -> None:
    assert (contradicted(bits(100), before, after) != []) is is_wrong


def test_a_mapping_that_came_or_went_meanwhile_is_no_contradiction() -> None:
    empty = memory(4)._replace(mappings=())
    assert contradicted(bits(4), memory(4), empty) == []
    assert contradicted(bits(4), empty, memory(4)) == []
