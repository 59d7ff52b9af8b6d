"""Each page of an object has one state, the private ones add up to its ledger, and what lies in them is named."""

import mmap
import os
from collections.abc import Sequence
from ctypes import addressof, c_char
from pathlib import Path

import pytest

import footprint
from footprint.attribution import page_maps as module
from footprint.attribution.owned_range import LoadedObject, MappingCounts, OwnedRange
from footprint.attribution.page_maps import Presence, not_looked_at, page_maps
from footprint.attribution.symbol_ranges import PageNumbers
from footprint.elf.contents import Contents, read_contents
from footprint.elf.image import read_image
from footprint.model.audit import Audit
from footprint.model.page_map import PageMap, PageState, Place
from footprint.model.row import Attribution, Evidence, MemoryKind
from footprint.process.mappings import NO_COUNTERS, FileKey, Mapping
from footprint.process.pages import PageRange, PageReader
from tests.elfwriter import PF_R, PF_W, PT_LOAD, RW, At, ElfFile, Section, Segment, Sym, write

PAGE = 4096
B = 0x7F0000000000
"""Where the object is loaded: what is linked for vaddr 0x3000 stands at B + 0x3000."""
STAGE = Path(__file__).resolve().parents[2] / "sample_binaries" / "condor_shadow" / "base"
PRIVATE = {PageState.PRIVATE, PageState.RELOCATED, PageState.SWAPPED}
KEY = FileKey("08:01", 7, "/lib/liba.so")
# Four pages of .data: a variable of 32 bytes in the first, one that is the second, nothing else.
IMAGE = read_image(
    write(
        ElfFile(
            sections=[Section(".data", flags=RW, addr=0x3000, data=bytes(4 * PAGE))],
            segments=[Segment(PT_LOAD, PF_R | PF_W, [".data"])],
            symbols=[Sym("first", At(".data", 16), 32), Sym("second", At(".data", PAGE), PAGE)],
        )
    ),
    KEY.name,
)
LOADED = LoadedObject(KEY, IMAGE, B)
MAPPING = Mapping(B + 0x3000, B + 0x7000, "rw-p", 0, KEY.device, KEY.inode, KEY.name, NO_COUNTERS)


class Files:
    """What the one file says: it has these variables, and relocations write its page 4."""

    def contents_of(self, _loaded: LoadedObject) -> Contents:
        return read_contents(IMAGE)

    def relocated_pages_of(self, _loaded: LoadedObject, page_bytes: int) -> PageNumbers:
        return PageNumbers((4,), B // page_bytes)


def page(number: int, past: int = 0, *, is_swapped: bool = False) -> PageRange:
    return PageRange(B + number * PAGE, B + (past or number + 1) * PAGE, is_swapped)


def map_of(
    private: Sequence[PageRange] | None, private_bytes: int | None, presence: Presence = not_looked_at
) -> PageMap:
    part = OwnedRange(
        MAPPING, MAPPING.start_addr, MAPPING.end_addr, KEY.name, MemoryKind.DATA, Attribution.NAME, LOADED
    )
    held = MappingCounts(private_bytes, None, 0, 0, Evidence.MEASURED)
    pages = None if private is None else {MAPPING.start_addr: private}
    (found,) = page_maps([part], [held], pages, Files(), PAGE, presence)
    return found


def runs_of(page_map: PageMap) -> list[tuple[str, int]]:
    return [(state.name, count) for part in page_map.parts for state, count in part.runs]


def test_each_page_is_private_relocated_swapped_shared_or_untouched() -> None:
    found = map_of([page(3, 5), page(6, is_swapped=True)], 3 * PAGE, lambda _mapping: (page(3, 6),))
    assert runs_of(found) == [("PRIVATE", 1), ("RELOCATED", 1), ("SHARED", 1), ("SWAPPED", 1)]
    found = map_of([page(6)], PAGE, lambda _mapping: (page(3), page(6)))
    assert runs_of(found) == [("SHARED", 1), ("UNTOUCHED", 2), ("PRIVATE", 1)]


def test_where_nobody_looked_what_is_not_private_is_just_that() -> None:
    assert runs_of(map_of([page(4)], PAGE)) == [("NOT_PRIVATE", 1), ("RELOCATED", 1), ("NOT_PRIVATE", 2)]


def test_without_page_bits_the_counters_decide_where_they_can() -> None:
    assert runs_of(map_of(None, 0)) == [("NOT_PRIVATE", 4)]
    assert runs_of(map_of(None, 4 * PAGE)) == [("PRIVATE", 1), ("RELOCATED", 1), ("PRIVATE", 2)]
    assert runs_of(map_of(None, PAGE)) == [("UNKNOWN", 4)]
    assert runs_of(map_of(None, None)) == [("UNKNOWN", 4)]


def test_variables_stand_at_their_addresses_below_their_section() -> None:
    found = map_of([page(3)], PAGE)
    assert found.sections == (Place(B + 0x3000, 4 * PAGE, ".data", None),)
    assert found.variables is not None
    assert Place(B + 0x3010, 32, ".data", "first") in found.variables
    assert Place(B + 0x4000, PAGE, ".data", "second") in found.variables
    assert sum(place.size_bytes for place in found.variables) == 4 * PAGE


def test_a_section_is_told_as_far_as_the_pages_of_its_object_reach() -> None:
    part = OwnedRange(MAPPING, B + 0x4000, B + 0x6000, KEY.name, MemoryKind.DATA, Attribution.NAME, LOADED)
    (found,) = page_maps([part], [MappingCounts(0, None, 0, 0, Evidence.MEASURED)], {}, Files(), PAGE)
    assert found.sections == (Place(B + 0x4000, 2 * PAGE, ".data", None),)
    behind = part._replace(start_addr=B + 0x7000, end_addr=B + 0x8000)
    (found,) = page_maps([behind], [MappingCounts(0, None, 0, 0, Evidence.MEASURED)], {}, Files(), PAGE)
    assert found.sections == ()


def test_what_a_map_has_no_room_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 3)
    result = map_of([page(3)], PAGE)
    assert (result.parts, result.omitted_pages) == ((), 4)
    monkeypatch.setattr(module, "MOST_PAGES", 4)
    monkeypatch.setattr(module, "MOST_SECTIONS", 0)
    monkeypatch.setattr(module, "_MOST_VARIABLES", 1)
    result = map_of([page(3)], PAGE)
    assert result.omitted_pages == 0
    assert (result.sections, result.omitted_sections) == ((), 1)
    # Both variables, and what lies before, between and behind them.
    assert len(result.variables or ()) == 1
    assert result.omitted_variables == 4


def bytes_of_maps(audit: Audit) -> dict[str, int]:
    found: dict[str, int] = {}
    for page_map in audit.page_maps:
        count = sum(count for part in page_map.parts for state, count in part.runs if state in PRIVATE)
        found[page_map.owner] = found.get(page_map.owner, 0) + count * audit.page_bytes
    return found


def bytes_of_rows(audit: Audit) -> dict[str, int]:
    """Return the private bytes of owners, without what is assumed of pages that are not known."""
    found: dict[str, int] = {}
    for row in audit.ledger:
        found[row.owner] = found.get(row.owner, 0) + (row.bytes or 0 if row.mapped_bytes else 0)
    return found


def test_the_private_pages_of_a_prediction_add_up_to_its_ledger() -> None:
    audit = footprint.audit(str(STAGE), has_page_maps=True)
    maps, rows = bytes_of_maps(audit), bytes_of_rows(audit)
    assert len(maps) > 3
    assert maps == {owner: rows[owner] for owner in maps}
    assert footprint.audit(str(STAGE)).page_maps == ()


def test_pages_that_were_read_or_written_are_present_and_no_others() -> None:
    size = os.sysconf("SC_PAGE_SIZE")
    with mmap.mmap(-1, 16 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory[2 * size] = memory[3 * size] = 1
        assert memory[10 * size] == 0
        start = addressof(c_char.from_buffer(memory))
        mapping = MAPPING._replace(start_addr=start, end_addr=start + 16 * size)
        folder = os.open("/proc/self", os.O_RDONLY)
        try:
            with PageReader(folder, size) as reader:
                found = reader.read_present(mapping)
        finally:
            os.close(folder)
    assert [((one.start_addr - start) // size, (one.end_addr - start) // size) for one in found] == [(2, 4), (10, 11)]
