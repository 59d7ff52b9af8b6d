"""What constructors of libraries write, once it was measured: added to the prediction of each program that has them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import footprint
from footprint.attribution.constructor_writes import ConstructorWrites, with_constructors
from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.start_memory import start_memory
from footprint.attribution.startup_writes import WriteCause
from footprint.elf.image import read_image
from footprint.elf.notes import build_id
from footprint.loader.system import Library
from footprint.loader.target import Environment
from footprint.sources.calibration import keep
from footprint.sources.programs import Programs
from footprint.sources.startup_write_calibration import load_constructors
from tests.elfwriter import (
    DT_NEEDED,
    DT_SONAME,
    RO,
    RW,
    SHT_NOBITS,
    SHT_RELA,
    STT_FUNC,
    STT_OBJECT,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Sym,
    write,
)
from tests.sysroot import GLIBC, Sysroot

PAGE = 4096
GLOB_DAT = 6
FIRST, SECOND = "11" * 20, "22" * 20
INTERPRETER = Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")
DATA = Section(".data", flags=RW, data=bytes(64))


def library(name: str, identity: str, *symbols: Sym) -> bytes:
    """Return a library with four pages of variables, of which no relocation writes any; it looks up its own symbols."""
    variables = Section(".bss", SHT_NOBITS, RW, size=4 * PAGE, addr=0x10000)
    lookups = [Rel(At(".data"), GLOB_DAT, symbol.name, 0) for symbol in symbols]
    tables = [Section(".rela.dyn", SHT_RELA, RO, lookups)] if lookups else []
    dynamic = [Dyn(DT_SONAME, name)]
    file = ElfFile(
        sections=[*tables, DATA, variables], dynamic=dynamic, dynamic_symbols=symbols, build_id=bytes.fromhex(identity)
    )
    return write(file)


def first_page(raw: bytes) -> int:
    """Return the page in which the variables of such a library begin."""
    return next(section.vaddr for section in read_image(raw, "library").sections if section.name == ".bss") // PAGE


FIRST_PAGE = first_page(library("libfirst.so", FIRST))


def graph_of(folder: Path, *symbols: Sym, exported: Sequence[Sym] = ()) -> DependencyGraph:
    """Return a program that needs two libraries; `exported` are symbols of its own, `symbols` those of the first."""
    root = Sysroot(folder)
    root.loader(path=GLIBC)
    root.file("/lib/libfirst.so", library("libfirst.so", FIRST, *symbols))
    root.file("/lib/libsecond.so", library("libsecond.so", SECOND))
    needed = [Dyn(DT_NEEDED, "libfirst.so"), Dyn(DT_NEEDED, "libsecond.so")]
    root.file("/bin/program", write(ElfFile(sections=[INTERPRETER, DATA], dynamic=needed, dynamic_symbols=exported)))
    programs = Programs(str(folder), Environment(hwcaps="baseline"), page_bytes=PAGE, is_calibrated=False)
    return programs.graph("/bin/program")


def identity_of(file: Library) -> str:
    return build_id(file.image) or ""


def wrote(pages: dict[str, tuple[int, ...]], heap_bytes: int = 0, untouched_pages: int = 0) -> ConstructorWrites:
    return ConstructorWrites(PAGE, pages, heap_bytes, untouched_pages, 656)


def constructor_pages(graph: DependencyGraph) -> list[list[int]]:
    """Return, for each object, the pages from the first of its variables on that constructors write."""
    return [
        [page - FIRST_PAGE for run in prediction.causes.get(WriteCause.CONSTRUCTOR, ()) for page in run]
        for prediction in graph.predictions
        if prediction
    ][:3]


def test_pages_are_united_by_the_object_that_they_are_in_whoever_writes_them(tmp_path: Path) -> None:
    measured = {
        FIRST: wrote({FIRST: (FIRST_PAGE, FIRST_PAGE + 1)}),
        # What the second library calls writes in the first.
        SECOND: wrote({FIRST: (FIRST_PAGE + 1, FIRST_PAGE + 3), SECOND: (FIRST_PAGE + 2,)}),
        "33" * 20: wrote({FIRST: (FIRST_PAGE + 2,)}),
    }
    before = graph_of(tmp_path)
    after = with_constructors(before, measured, identity_of)
    assert constructor_pages(after) == [[], [0, 1, 3], [2]]
    grown = [
        new.startup_min_bytes - old.startup_min_bytes
        for old, new in zip(before.predictions, after.predictions, strict=True)
        if old and new
    ]
    assert grown[:3] == [0, 3 * PAGE, PAGE]


def test_the_heap_of_all_is_added_up_and_its_head_is_there_once(tmp_path: Path) -> None:
    # 3,600 + 3,600 + 656 = 7,856 bytes are two pages; with the head for each they would be three.
    known = {FIRST: wrote({}, 3_600), SECOND: wrote({}, 3_600)}
    start = start_memory(with_constructors(graph_of(tmp_path), known, identity_of))
    assert start.heap_bytes == 2 * PAGE


def test_a_block_that_nothing_has_written_costs_its_ends(tmp_path: Path) -> None:
    # The pool of libstdc++: 656 + 72,704 bytes are 18 pages, of which the first and the last are written.
    known = {FIRST: wrote({}, 72_704, untouched_pages=16)}
    assert start_memory(with_constructors(graph_of(tmp_path), known, identity_of)).heap_bytes == 2 * PAGE


def test_with_another_malloc_only_what_was_measured_with_it_counts(tmp_path: Path) -> None:
    malloc = Sym("malloc", At(".data"), 8, STT_FUNC)
    known = {FIRST: wrote({FIRST: (FIRST_PAGE,)}, 3_600), SECOND: wrote({SECOND: (FIRST_PAGE,)}, 3_600)}
    own = with_constructors(graph_of(tmp_path / "own", exported=[malloc]), known, identity_of)
    assert (constructor_pages(own), own.heap_bytes) == ([[], [], []], 0)
    # The first library is the allocator itself: its own pages and heap were measured with it, those of the second not.
    allocator = with_constructors(graph_of(tmp_path / "allocator", malloc), known, identity_of)
    assert (constructor_pages(allocator), allocator.heap_bytes) == ([[], [0], []], 2 * PAGE)


def test_the_page_of_a_variable_that_the_program_takes_over_is_not_counted(tmp_path: Path) -> None:
    stream = Sym("stream", At(".bss", PAGE + 8), PAGE, STT_OBJECT)
    known = {FIRST: wrote({FIRST: tuple(range(FIRST_PAGE, FIRST_PAGE + 4))})}
    alone = with_constructors(graph_of(tmp_path / "alone", stream), known, identity_of)
    assert constructor_pages(alone) == [[], [0, 1, 2, 3], []]
    # As with a copy relocation, the library finds the variable in the program. It is in two of the pages.
    taken = Sym("stream", At(".data"), 8, STT_OBJECT)
    taken_over = with_constructors(graph_of(tmp_path / "taken", stream, exported=[taken]), known, identity_of)
    assert constructor_pages(taken_over) == [[], [0, 3], []]


def test_pages_that_cannot_be_written_are_left_out(tmp_path: Path) -> None:
    known = {FIRST: wrote({FIRST: (0, FIRST_PAGE, FIRST_PAGE + 4, 1 << 50)})}
    assert constructor_pages(with_constructors(graph_of(tmp_path), known, identity_of)) == [[], [0], []]


# --- what is kept -----------------------------------------------------------------------------------------------------

KEPT = {"page_bytes": PAGE, "pages": {FIRST: [FIRST_PAGE]}, "heap_bytes": 8, "untouched_pages": 0, "heap_head_bytes": 8}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of measurements, which is not there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "footprint" / "constructors.json"


def test_an_audit_has_what_was_kept_and_one_for_any_machine_has_not(state: Path, tmp_path: Path) -> None:
    graph_of(tmp_path)
    audits = [footprint.audit("/bin/program", root=tmp_path, page_bytes=PAGE)]
    keep(str(state), "libraries", {FIRST: KEPT})
    audits.append(footprint.audit("/bin/program", root=tmp_path, page_bytes=PAGE))
    audits.append(footprint.audit("/bin/program", root=tmp_path, page_bytes=PAGE, is_reproducible=True))
    before, after, anywhere = [audit.totals.private.bytes or 0 for audit in audits]
    # A page of the library, and one of the heap.
    assert (after - before, anywhere) == (2 * PAGE, before)
    assert [row.bytes for row in audits[1].ledger if row.owner == "[heap]"] == [PAGE]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        json.dumps({"libraries": {FIRST: 7}}),
        json.dumps({"libraries": {FIRST: {}}}),
        json.dumps({"libraries": {FIRST: KEPT | {"page_bytes": 4095}}}),
        json.dumps({"libraries": {FIRST: KEPT | {"pages": {FIRST: ["1"]}}}}),
        json.dumps({"libraries": {FIRST: KEPT | {"pages": {FIRST: [-1]}}}}),
        json.dumps({"libraries": {FIRST: KEPT | {"heap_bytes": 1 << 40}}}),
        json.dumps({"libraries": {FIRST: KEPT | {"heap_bytes": "8"}}}),
    ],
)
def test_a_damaged_file_is_a_note_and_nothing_is_known(state: Path, text: str) -> None:
    state.parent.mkdir(parents=True)
    state.write_text(text, encoding="ascii")
    known, notes = load_constructors()
    assert known == {}
    assert [(note.slug, note.subject) for note in notes] == [("calibration-unreadable", str(state))]
