"""The audit of a program that was not started, on programs in view: which pages, whose, and what they add up to."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import footprint
from footprint.attribution.program_prediction import _page_table_bytes
from footprint.errors import FootprintError, InputError, UsageError
from footprint.model.audit import Audit
from footprint.model.row import Evidence, MemoryKind, Row
from footprint.process.mappings import Mapping
from footprint.verbs.libraries.call import objects_of
from tests.elfwriter import (
    DT_NEEDED,
    DT_RELA,
    DT_SONAME,
    EM_386,
    EM_AARCH64,
    EM_PPC,
    EM_PPC64,
    EM_X86_64,
    ET_EXEC,
    ET_REL,
    PF_R,
    PF_W,
    PT_INTERP,
    PT_LOAD,
    PT_TLS,
    RO,
    RW,
    SHT_DYNAMIC,
    SHT_NOBITS,
    SHT_RELA,
    TLS,
    At,
    Dyn,
    ElfFile,
    Order,
    Rel,
    Section,
    Segment,
    Sym,
    patch,
    write,
)
from tests.examples import examples
from tests.sysroot import GLIBC, Sysroot

K = 1024
RELATIVE = 8  # on x86-64
# 4,700 bytes of the loader and some 1,500 for each of three objects are three pages; so has the stack.
LOADER_BYTES, STACK_BYTES = 12 * K, 12 * K
PROGRAM, LIBRARY = "/bin/program", "/usr/lib/libone.so"

INTERPRETER = Section(".interp", flags=RO, data=GLIBC.encode() + b"\0")
# .dynamic in page 3; .data in pages 4 to 7, the last one of which is half .bss; the rest of .bss in page 8.
DYNAMIC = Section(".dynamic", SHT_DYNAMIC, RW, addr=0x3000)
DATA = Section(".data", flags=RW, data=bytes(0x3800), addr=0x4000)
BSS = Section(".bss", SHT_NOBITS, RW, size=0x1000)
# Two pages of pointers, one relocation in each.
TABLE = Section(".rela.dyn", SHT_RELA, RO, [Rel(0x4000, RELATIVE, addend=0), Rel(0x5FF8, RELATIVE, addend=0)])


def program(*needed: str, **more: Any) -> ElfFile:  # noqa: ANN401 # fields of ElfFile
    fields = {"sections": [INTERPRETER, DYNAMIC, DATA, BSS], "dynamic": [Dyn(DT_NEEDED, name) for name in needed]}
    return ElfFile(**{**fields, **more})


def library(**more: Any) -> ElfFile:  # noqa: ANN401 # fields of ElfFile
    fields = {"sections": [TABLE, DYNAMIC, DATA, BSS], "dynamic": [Dyn(DT_SONAME, "libone.so")]}
    return ElfFile(**{**fields, **more})


@pytest.fixture(autouse=True)
def _no_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def system(
    folder: Path,
    main: ElfFile | bytes,
    library: ElfFile | bytes | None = None,
    **kind: Any,  # noqa: ANN401 # of Facts
) -> Sysroot:
    """Make a root with a program, one library, and a loader of one page that is written."""
    root = Sysroot(folder)
    root.loader(**kind)
    for path, file in ((PROGRAM, main), (LIBRARY, library)):
        if file is not None:
            root.file(path, file if isinstance(file, bytes) else write(file))
    return root


def audited(root: Sysroot, path: str = PROGRAM, **question: Any) -> Audit:  # noqa: ANN401 # arguments of audit
    return footprint.audit(path, root=str(root.root), **{"page_bytes": 0x1000, **question})


def bytes_of(audit: Audit, owner: str) -> int:
    return sum(row.bytes or 0 for row in audit.ledger if row.owner == owner)


def startup_min_and_max(audit: Audit) -> tuple[int | None, int | None]:
    return audit.totals.startup_min.bytes, audit.totals.startup_max.bytes


def slugs(audit: Audit) -> list[str]:
    return [note.slug for note in audit.notes if note.slug != "loader-cache"]


def row(audit: Audit, owner: str, symbol: str) -> Row:
    return next(one for one in audit.ledger if (one.owner, one.symbol) == (owner, symbol))


# --- page by page -----------------------------------------------------------------------------------------------------


def test_each_object_has_the_pages_that_are_written_and_the_process_its_stack_and_loader(tmp_path: Path) -> None:
    result = audited(system(tmp_path, program("libone.so"), library()))
    # The dynamic section and the page in which .bss begins; in the library those of the table, too.
    assert bytes_of(result, PROGRAM) == 2 * 4 * K
    assert bytes_of(result, LIBRARY) == 4 * 4 * K
    assert bytes_of(result, GLIBC) == 4 * K
    assert bytes_of(result, "[stack]") == STACK_BYTES
    assert bytes_of(result, "[loader and thread block]") == LOADER_BYTES
    assert result.totals.private.bytes == 28 * K + STACK_BYTES + LOADER_BYTES
    # Pages 3 to 8 of both, and the one of the loader.
    assert startup_min_and_max(result) == (28 * K, 52 * K)
    assert (result.source, result.pid, result.is_live) == ("prediction", None, False)


def test_the_loader_of_glibc_writes_its_variables_behind_its_file_also(tmp_path: Path) -> None:
    root = system(tmp_path, program())
    texts = Section(".rodata", flags=RO, data=b"\0/lib/x86_64-linux-gnu/\0stable release version 2.41.\n\0")
    named = [Dyn(DT_SONAME, "ld-linux-x86-64.so.2")]
    root.file(GLIBC, write(ElfFile(sections=[texts, DYNAMIC, DATA, BSS], dynamic=named)))
    # As in a library, and page 8, where it keeps its entry for itself.
    assert bytes_of(audited(root), GLIBC) == 3 * 4 * K


def test_causes_are_those_of_pages(tmp_path: Path) -> None:
    root = system(tmp_path, program("libone.so"), library())
    graph = footprint.libraries(PROGRAM, root=str(root.root), page_bytes=0x1000).graph
    # This loader has no page behind its file.
    causes = [linked.predicted.causes for linked in objects_of(graph) if linked.predicted]
    assert (len(causes), all(pages for of_object in causes for pages in of_object.values())) == (3, True)


def test_the_rows_add_up_to_the_totals(tmp_path: Path) -> None:
    result = audited(system(tmp_path, program("libone.so"), library()))
    own = [one for one in result.ledger if one.kind is not MemoryKind.KERNEL]
    totals = result.totals
    assert sum(one.bytes or 0 for one in own) == totals.private.bytes
    assert sum(one.mapped_bytes for one in own) == totals.mapped.bytes
    assert sum(one.mapped_bytes for one in own if one.is_writable) == totals.mapped_writable.bytes
    assert sum(one.bytes or 0 for one in result.ledger if one.kind is MemoryKind.KERNEL) == totals.kernel.bytes
    assert totals.per_process.bytes == (totals.private.bytes or 0) + (totals.kernel.bytes or 0)


def test_a_relocated_table_is_charged_with_its_pages_and_found(tmp_path: Path) -> None:
    one = library(symbols=[Sym("table", At(".data"), 0x2000), Sym("plain", At(".data", 0x2000), 0x1000)])
    result = audited(system(tmp_path, program("libone.so"), one))
    table = row(result, LIBRARY, "table")
    assert (table.bytes, table.pages, table.sole_pages, table.relocated_bytes) == (8 * K, 2, 2, 8 * K)
    assert table.evidence is Evidence.PREDICTED
    # What nothing writes at start is told too: it may be written later, and two builds may differ in it.
    plain = row(result, LIBRARY, "plain")
    assert (plain.bytes, plain.mapped_bytes, plain.pages, plain.sole_pages) == (0, 4 * K, 0, 0)
    assert [(one.rule, one.subject, one.saving_bytes) for one in result.findings if one.rule == "relocated-tables"] == [
        ("relocated-tables", "table", 8 * K)
    ]


@pytest.mark.parametrize(
    ("addrs", "table_count"),
    [
        # A table for each 2 MiB, 1 GiB and 512 GiB in which something is.
        ([0x400000], 3),
        ([0x400000, 0x500000], 3),
        ([0x400000, 0x800000], 4),
        ([0x400000, 0x4000_0000], 5),
        ([0x400000, 0x7F00_0000_0000], 6),
    ],
)
def test_page_tables_are_one_for_each_span_that_is_reached(addrs: list[int], table_count: int) -> None:
    mappings = [Mapping(addr, addr + 0x1000, "rw-p", 0, "00:00", 0, "") for addr in addrs]
    assert _page_table_bytes(mappings, {}, 0x1000) == table_count * 0x1000


def test_of_bss_only_the_page_that_it_shares_with_data_is_written(tmp_path: Path) -> None:
    main = program(sections=[INTERPRETER, DYNAMIC, DATA, replace(BSS, size=0x2800)], dynamic=[Dyn(DT_SONAME, "p")])
    result = audited(system(tmp_path, main))
    bss = [one for one in result.ledger if one.owner == PROGRAM and one.kind is MemoryKind.BSS]
    # It goes from the midst of page 7 to the end of page 9.
    assert sum(one.bytes or 0 for one in bss) == 2 * K
    assert sum(one.mapped_bytes for one in bss) == 10 * K
    # Pages 3 to 9, and that of the loader.
    assert startup_min_and_max(result) == (12 * K, 32 * K)


def test_what_is_sealed_counts_into_the_floor_and_is_not_writable(tmp_path: Path) -> None:
    sealed = Section(".data.rel.ro", flags=RW, data=bytes(0x1000), addr=0x4000)
    data = replace(DATA, addr=0x5000, data=bytes(0x2800))
    main = program(
        sections=[INTERPRETER, replace(TABLE, data=[Rel(0x4000, RELATIVE, addend=0)]), DYNAMIC, sealed, data, BSS],
        dynamic=[Dyn(DT_SONAME, "p")],
        relro=[".dynamic", ".data.rel.ro"],
        symbols=[Sym("names", At(".data.rel.ro"), 0x1000)],
    )
    found = audited(system(tmp_path, main))
    names = row(found, PROGRAM, "names")
    assert (names.kind, names.bytes, names.is_writable) == (MemoryKind.RELRO, 4 * K, False)
    assert startup_min_and_max(found) == (16 * K, 28 * K)


def test_a_program_at_fixed_addresses_moves_no_dynamic_section(tmp_path: Path) -> None:
    places = {INTERPRETER: 0x400400, DYNAMIC: 0x403000, DATA: 0x404000}
    fixed = [replace(one, addr=places.get(one)) for one in (INTERPRETER, DYNAMIC, DATA, BSS)]
    found = audited(system(tmp_path, program("libone.so", type=ET_EXEC, sections=fixed), library()))
    assert bytes_of(found, PROGRAM) == 4 * K
    assert startup_min_and_max(found) == (24 * K, 52 * K)


@pytest.mark.parametrize(
    ("bits", "order", "machine", "relative"),
    [
        (64, "little", EM_X86_64, 8),
        (64, "little", EM_AARCH64, 1027),
        (64, "big", EM_PPC64, 22),
        (32, "little", EM_386, 8),
        (32, "big", EM_PPC, 22),
    ],
)
def test_every_class_and_byte_order_has_the_same_pages(
    tmp_path: Path, bits: Literal[32, 64], order: Order, machine: int, relative: int
) -> None:
    kind: dict[str, Any] = {"bits": bits, "order": order, "machine": machine}
    table = replace(TABLE, data=[Rel(0x4000, relative, addend=0), Rel(0x5FF8, relative, addend=0)])
    one = library(sections=[table, DYNAMIC, DATA, BSS], **kind)
    found = audited(system(tmp_path, program("libone.so", **kind), one, **kind))
    assert startup_min_and_max(found) == (28 * K, 52 * K)
    assert bytes_of(found, LIBRARY) == 16 * K
    assert slugs(found) == []


@pytest.mark.parametrize(
    ("page_kib", "floor_pages", "ceiling_pages"),
    [
        (4, 7, 13),
        # Pages 3; 4 to 7; 8 are pages 0, 1, 2 of this size. .data is in page 1 with the end of the table.
        (16, 2 + 2 + 1, 3 + 3 + 1),
        (64, 1 + 1 + 1, 1 + 1 + 1),
    ],
)
def test_larger_pages_are_fewer(tmp_path: Path, page_kib: int, floor_pages: int, ceiling_pages: int) -> None:
    root = system(tmp_path, program("libone.so", page_bytes=0x10000), library(page_bytes=0x10000))
    found = audited(root, page_bytes=page_kib * K)
    assert startup_min_and_max(found) == (floor_pages * page_kib * K, ceiling_pages * page_kib * K)
    assert found.page_bytes == page_kib * K
    of_rest = [-(-size // (page_kib * K)) * page_kib * K for size in (4_700 + 3 * 1_500, STACK_BYTES)]
    assert found.totals.private.bytes == floor_pages * page_kib * K + sum(of_rest)


@pytest.mark.parametrize("page_bytes", [0, 1, 512, 4097, 1 << 17, -4096])
def test_pages_of_a_size_that_no_machine_has_are_refused(tmp_path: Path, page_bytes: int) -> None:
    root = system(tmp_path, program())
    with pytest.raises(UsageError, match="no machine has pages"):
        audited(root, page_bytes=page_bytes)


def test_thread_local_variables_are_part_of_the_thread_block(tmp_path: Path) -> None:
    block = Section(".tbss", SHT_NOBITS, TLS, size=0x5000, addr=0x3000)
    one = library(sections=[TABLE, DYNAMIC, block, DATA, BSS])
    plain = audited(system(tmp_path / "plain", program("libone.so"), library()))
    found = audited(system(tmp_path / "block", program("libone.so"), one))
    assert bytes_of(found, "[loader and thread block]") - bytes_of(plain, "[loader and thread block]") == 20 * K
    assert found.totals.startup_min == plain.totals.startup_min


# --- the C library, and what else is assumed --------------------------------------------------------------------------


def test_what_is_assumed_of_a_c_library_is_one_estimated_row(tmp_path: Path) -> None:
    libc = library(dynamic=[Dyn(DT_SONAME, "libc.so.6")])
    root = system(tmp_path, program("libc.so.6"))
    root.file("/usr/lib/libc.so.6", write(libc))
    result = audited(root)
    # Four pages of six have relocations, .dynamic or .bss: of four that are assumed, there is room for two.
    rows = [one for one in result.ledger if "first steps" in (one.name or "")]
    assert [(one.owner, one.bytes, one.evidence) for one in rows] == [
        ("/usr/lib/libc.so.6", 2 * 4 * K, Evidence.ESTIMATED)
    ]
    assert startup_min_and_max(result) == (36 * K, 52 * K)
    assert result.totals.startup_min.evidence is Evidence.ESTIMATED
    assert result.totals.startup_max.evidence is Evidence.PREDICTED


def test_without_anything_assumed_the_floor_is_predicted(tmp_path: Path) -> None:
    found = audited(system(tmp_path, program("libone.so"), library()))
    assert found.totals.startup_min.evidence is Evidence.PREDICTED
    assert found.totals.private.evidence is Evidence.ESTIMATED
    assert {one.evidence for one in found.ledger if one.owner in {PROGRAM, LIBRARY, GLIBC}} == {Evidence.PREDICTED}


def test_what_only_a_process_tells_is_unknown(tmp_path: Path) -> None:
    totals = audited(system(tmp_path, program())).totals
    assert totals.shared_once.bytes is totals.cow_shared.bytes is None


# --- many of them -----------------------------------------------------------------------------------------------------


def test_many_cost_as_many_times_as_much_from_start_to_full_use(tmp_path: Path) -> None:
    found = audited(system(tmp_path, program("libone.so"), library()), count=1000)
    each = found.totals.per_process.bytes or 0
    assert found.projection.total_bytes == 1000 * each
    # The startup maximum is 24 KiB above the startup minimum.
    assert [(point.name, point.each_bytes, point.total_bytes) for point in found.projection.points] == [
        ("just started", each, 1000 * each),
        ("every variable written", each + 24 * K, 1000 * (each + 24 * K)),
    ]


def test_as_many_as_fit_are_found(tmp_path: Path) -> None:
    found = audited(system(tmp_path, program("libone.so"), library()), memory_bytes=1 << 30)
    each = found.projection.per_process_bytes
    assert found.projection.count == (1 << 30) // each
    assert (found.projection.count + 1) * each > 1 << 30 >= found.projection.total_bytes


@pytest.mark.parametrize("model", ["fork", "threads"])
def test_workers_and_threads_are_of_a_process_that_is_there(tmp_path: Path, model: str) -> None:
    root = system(tmp_path, program())
    with pytest.raises(UsageError, match=f"the {model} model needs a live process"):
        audited(root, model=model)


def test_a_process_of_a_text_is_not_chosen_in_a_program(tmp_path: Path) -> None:
    root = system(tmp_path, program())
    with pytest.raises(UsageError, match=r"--pid goes with a capture or a saved text; .* is a program"):
        audited(root, pid=7)


# --- which file is meant ----------------------------------------------------------------------------------------------


def test_a_number_is_a_process_even_where_a_program_has_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / str(os.getpid())).write_bytes(write(program()))
    monkeypatch.chdir(tmp_path)
    assert footprint.audit(str(os.getpid())).is_live


def test_a_page_size_does_not_go_with_a_process() -> None:
    with pytest.raises(UsageError, match="--page-size goes with a program"):
        footprint.audit(os.getpid(), page_bytes=0x1000)


def test_a_library_by_itself_is_said_to_be_none(tmp_path: Path) -> None:
    root = system(tmp_path, program("libone.so"), library())
    assert slugs(audited(root, LIBRARY)) == ["no-program"]
    assert slugs(audited(root)) == []


@pytest.mark.parametrize("name", ["[", "[stack]", "[heap]"])
def test_a_program_may_be_called_like_what_is_no_file(tmp_path: Path, name: str) -> None:
    root = system(tmp_path, program("libone.so"), library())
    root.file(f"/bin/{name}", write(program("libone.so")))
    assert bytes_of(audited(root, f"/bin/{name}"), f"/bin/{name}") == 8 * K


# --- what is missing or damaged ---------------------------------------------------------------------------------------


def test_a_missing_library_is_a_note_and_the_rest_of_the_answer(tmp_path: Path) -> None:
    whole = audited(system(tmp_path / "whole", program("libone.so"), library()))
    found = audited(system(tmp_path / "less", program("libone.so", "libgone.so"), library()))
    assert slugs(found) == ["library-missing"]
    assert "libgone.so" in {note.subject for note in found.notes}
    assert startup_min_and_max(found) == startup_min_and_max(whole)


def test_a_library_with_a_damaged_table_is_a_note_and_what_else_is_known(tmp_path: Path) -> None:
    damaged = library(dynamic=[Dyn(DT_SONAME, "libone.so"), Dyn(DT_RELA, 0x999999)])
    found = audited(system(tmp_path, program("libone.so"), damaged))
    assert "file-unreadable" in slugs(found)
    # Without the table there are the page of .bss, and that of .dynamic if it was come to before the damage.
    assert bytes_of(found, LIBRARY) in {4 * K, 8 * K}
    assert (bytes_of(found, PROGRAM), bytes_of(found, GLIBC)) == (8 * K, 4 * K)


def test_of_ten_thousand_missing_libraries_the_first_are_noted_and_the_rest_counted(tmp_path: Path) -> None:
    names = [f"lib{number}.so" for number in range(10_000)]
    # Their names take more than three pages.
    sections = [INTERPRETER, Section(".data", flags=RW, data=bytes(64))]
    found = audited(system(tmp_path, program(*names, sections=sections)))
    assert slugs(found) == ["library-missing"] * 10
    assert found.notes[-1].subject == "9991 more libraries"
    assert bytes_of(found, GLIBC) == 4 * K


def test_an_object_for_the_linker_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a program nor a shared library"):
        audited(system(tmp_path, program(type=ET_REL)))


def test_a_program_with_nothing_to_load_is_damage(tmp_path: Path) -> None:
    empty = Segment(PT_LOAD, PF_R, offset=0, vaddr=0, filesz=0, memsz=0)
    main = program(segments=[Segment(PT_INTERP, PF_R, [".interp"]), empty])
    with pytest.raises(InputError, match="its segments do not fit into an address space"):
        audited(system(tmp_path, main))


def index_of_data(file: bytes) -> int:
    """Return the number of the segment that is written."""
    return next(number for number in range(9) if _is_data(file, number))


def _is_data(file: bytes, number: int) -> bool:
    return patch(patch(file, "p_type", PT_LOAD, number), "p_flags", PF_R | PF_W, number) == file


@pytest.mark.parametrize("field", ["p_vaddr", "p_memsz", "p_filesz"])
@pytest.mark.parametrize("value", [(1 << 47) - 0x1000, 1 << 63, (1 << 64) - 1])
def test_a_program_beyond_all_addresses_is_damage(tmp_path: Path, field: str, value: int) -> None:
    file = write(program("libone.so"))
    with pytest.raises(InputError, match="its segments do not fit into an address space"):
        audited(system(tmp_path, patch(file, field, value, index_of_data(file)), library()))


@pytest.mark.parametrize("value", [(1 << 47) - 0x1000, 1 << 63, (1 << 64) - 1])
def test_a_library_for_which_there_is_no_room_is_left_out(tmp_path: Path, value: int) -> None:
    file = write(library())
    damaged = patch(file, "p_memsz", value, index_of_data(file))
    found = audited(system(tmp_path, program("libone.so"), damaged))
    assert slugs(found) == ["file-unreadable"]
    assert startup_min_and_max(found) == (12 * K, 28 * K)


def test_libraries_go_below_a_program_that_is_in_their_way(tmp_path: Path) -> None:
    # 64 TiB of .bss do not fit between the program, where Linux puts it, and the loader above it.
    file = write(library())
    large = patch(file, "p_memsz", 1 << 46, index_of_data(file))
    found = audited(system(tmp_path, program("libone.so"), large))
    assert slugs(found) == []
    assert (found.totals.mapped.bytes or 0) > 1 << 46
    assert bytes_of(found, PROGRAM) == 8 * K


@pytest.mark.parametrize("value", [1 << 47, (1 << 64) - 1])
def test_thread_local_variables_beyond_all_addresses_are_damage(tmp_path: Path, value: int) -> None:
    block = Section(".tbss", SHT_NOBITS, TLS, size=0x64, addr=0x3000)
    file = write(library(sections=[TABLE, DYNAMIC, block, DATA, BSS]))
    index = next(number for number in range(9) if patch(file, "p_type", PT_TLS, number) == file)
    with pytest.raises(InputError, match="thread-local variables"):
        audited(system(tmp_path, program("libone.so"), patch(file, "p_memsz", value, index)))


# --- any of them ------------------------------------------------------------------------------------------------------

OFFSETS = st.integers(0, 0x9000)


@st.composite
def relocated(draw: st.DrawFn) -> list[Section]:
    """Return the sections of an object with .data and .bss of any size, and relocations anywhere."""
    data = replace(DATA, data=bytes(draw(st.integers(1, 0x6000))))
    offsets: Sequence[int] = draw(st.lists(OFFSETS, max_size=20))
    table = replace(TABLE, data=[Rel(offset, RELATIVE, addend=0) for offset in offsets] or [Rel(0, 0, addend=0)])
    return [table, DYNAMIC, data, replace(BSS, size=draw(st.integers(1, 0x6000)))]


@pytest.fixture(scope="module")
def shared_root(tmp_path_factory: pytest.TempPathFactory) -> Sysroot:
    return system(tmp_path_factory.mktemp("shared"), program())


@examples(60, suppressed=[HealthCheck.function_scoped_fixture])
@given(
    sections=st.tuples(relocated(), relocated()),
    page_bytes=st.sampled_from([0x1000, 0x4000, 0x10000]),
    is_sealed=st.booleans(),
    symbol_bytes=st.integers(1, 0x3000),
)
def test_whatever_is_relocated_rows_add_up_and_the_floor_is_below_the_ceiling(
    shared_root: Sysroot,
    sections: tuple[list[Section], list[Section]],
    page_bytes: int,
    is_sealed: bool,  # noqa: FBT001 # a case
    symbol_bytes: int,
) -> None:
    relro = [".dynamic"] if is_sealed else []
    symbols = [Sym("table", At(".data"), symbol_bytes)]
    main = program("libone.so", sections=[INTERPRETER, *sections[0]], relro=relro, symbols=symbols)
    shared_root.file(PROGRAM, write(main))
    shared_root.file(LIBRARY, write(library(sections=sections[1], relro=relro)))
    result = audited(shared_root, page_bytes=page_bytes)
    startup_min, startup_max = startup_min_and_max(result)
    objects = {PROGRAM, LIBRARY, GLIBC}
    assert sum(bytes_of(result, owner) for owner in objects) == startup_min
    assert 0 < (startup_min or 0) <= (startup_max or 0) <= (result.totals.mapped.bytes or 0)
    assert (startup_min or 0) % page_bytes == 0
    assert all((one.bytes or 0) <= one.mapped_bytes for one in result.ledger if one.owner in objects)
    assert all(0 < one.saving_bytes <= (startup_min or 0) for one in result.findings if one.rule == "relocated-tables")


SOUND = write(program("libone.so"))


@examples(100, suppressed=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(16, 0x500), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_damage_of_the_headers_gives_an_answer_or_one_of_our_errors(
    shared_root: Sysroot, changes: list[tuple[int, int]]
) -> None:
    file = bytearray(SOUND)
    for at, byte in changes:
        file[at] = byte
    shared_root.file(PROGRAM, bytes(file))
    shared_root.file(LIBRARY, write(library()))
    try:
        found = audited(shared_root)
    except FootprintError:
        return
    assert (found.totals.startup_min.bytes or 0) <= (found.totals.startup_max.bytes or 0)
