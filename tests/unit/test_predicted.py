"""What an object costs before it runs: which pages each cause writes, what can be written, what is mapped; in view."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.attribution.object_prediction import (
    UNKNOWN_LIBC,
    LibcStart,
    ObjectPrediction,
    count_pages,
    predict,
)
from footprint.attribution.startup_writes import WriteCause
from footprint.elf.image import Image, read_image
from footprint.errors import InputError, Note
from footprint.loader.target import Libc
from footprint.model.row import Evidence
from tests.elfwriter import (
    DT_BIND_NOW,
    DT_DEBUG,
    DT_FLAGS,
    DT_FLAGS_1,
    DT_JMPREL,
    DT_NEEDED,
    DT_PLTGOT,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    EM_AARCH64,
    EM_MIPS,
    EM_RISCV,
    ET_EXEC,
    PF_R,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_GNU_RELRO,
    PT_LOAD,
    PT_TLS,
    RO,
    RW,
    SHT_DYNAMIC,
    SHT_NOBITS,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    TLS,
    At,
    Dyn,
    ElfFile,
    Order,
    Rel,
    Section,
    Segment,
    Size,
    Sym,
    patch,
    write,
)

Bits = Literal[32, 64]
FILES: list[tuple[Bits, Order]] = [(64, "little"), (64, "big"), (32, "little"), (32, "big")]
four_kinds_of_file = pytest.mark.parametrize(("bits", "order"), FILES, ids=[f"{bits}-{order}" for bits, order in FILES])

# x86-64
ADDRESS, COPY, GLOB_DAT, JUMP_SLOT, RELATIVE, DTPMOD, TLSDESC, IRELATIVE = 1, 5, 6, 7, 8, 16, 36, 37

# .dynamic in page 3; .data in pages 4 to 7, the last one of which is half .bss; the rest of .bss in page 8.
DYNAMIC = Section(".dynamic", SHT_DYNAMIC, RW, addr=0x3000)
DATA = Section(".data", flags=RW, data=bytes(0x3800), addr=0x4000)
BSS = Section(".bss", SHT_NOBITS, RW, size=0x1000)


def library(*relocations: Rel, tables: Sequence[Section] = (), **more: Any) -> ElfFile:  # noqa: ANN401 # fields of ElfFile
    kind = SHT_REL if any(relocation.addend is None for relocation in relocations) else SHT_RELA
    table = [Section(".rel.dyn", kind, RO, list(relocations))] if relocations else []
    return ElfFile(
        **{
            "sections": [*table, *tables, DYNAMIC, DATA, BSS],
            "dynamic": [Dyn(DT_NEEDED, "libc.so.6")],
            "page_bytes": 0x1000,
            **more,
        }
    )


def image_of(file: ElfFile | bytes) -> Image:
    return read_image(file if isinstance(file, bytes) else write(file), "library.so")


def predicted(
    file: ElfFile | bytes,
    page_bytes: int = 0x1000,
    *,
    is_program: bool = False,
    libc: Libc = Libc.GLIBC,
    libc_start: LibcStart | None = None,
) -> ObjectPrediction:
    return predict(image_of(file), page_bytes, is_program=is_program, libc=libc, libc_start=libc_start)


def numbers(pages: Sequence[range]) -> list[int]:
    return [page for run in pages for page in run]


def pages_of(
    cause: WriteCause,
    file: ElfFile | bytes,
    page_bytes: int = 0x1000,
    *,
    is_program: bool = False,
    libc: Libc = Libc.GLIBC,
) -> list[int]:
    return numbers(predicted(file, page_bytes, is_program=is_program, libc=libc).causes.get(cause, ()))


# --- relocations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (RELATIVE, WriteCause.RELATIVE),
        (ADDRESS, WriteCause.ABSOLUTE),
        (GLOB_DAT, WriteCause.GLOB_DAT),
        (JUMP_SLOT, WriteCause.JUMP_SLOT),
        (DTPMOD, WriteCause.TLS),
        (TLSDESC, WriteCause.TLS),
        (IRELATIVE, WriteCause.IRELATIVE),
        (99, WriteCause.ABSOLUTE),
    ],
)
@four_kinds_of_file
def test_each_type_of_relocation_writes_the_page_of_its_offset(
    bits: Bits, order: Order, kind: int, cause: WriteCause
) -> None:
    symbols = [Sym("wanted", 0, 8)]
    file = library(Rel(0x5010, kind, "wanted", 0), bits=bits, order=order, dynamic_symbols=symbols)
    assert pages_of(cause, file) == [5]


@four_kinds_of_file
def test_entries_without_addend_count_alike(bits: Bits, order: Order) -> None:
    file = library(Rel(0x5010, RELATIVE), Rel(0x5020, RELATIVE), Rel(0x6000, RELATIVE), bits=bits, order=order)
    assert pages_of(WriteCause.RELATIVE, file) == [5, 6]


def test_an_address_without_a_symbol_is_relative() -> None:
    # MIPS has one type for both.
    assert pages_of(WriteCause.RELATIVE, library(Rel(0x5010, 3), machine=EM_MIPS, bits=32)) == [5]


def test_a_type_means_what_it_does_on_its_machine() -> None:
    file = library(Rel(0x5010, 1027, addend=0), Rel(0x6010, 8, "far", 0), dynamic_symbols=[Sym("far")])
    found = predicted(replace(file, machine=EM_AARCH64)).causes
    assert (found[WriteCause.RELATIVE], found[WriteCause.ABSOLUTE]) == ((range(5, 6),), (range(6, 7),))


def test_a_relocation_of_type_0_writes_nothing() -> None:
    assert 5 not in numbers(predicted(library(Rel(0x5010, 0, addend=0))).startup_min)


def test_relative_ones_at_the_head_of_a_table_do_not_hide_what_follows() -> None:
    symbols = [Sym("wanted", 0, 8)]
    many = [Rel(0x4000 + 8 * number, RELATIVE, addend=0) for number in range(600)]
    file = library(*many, Rel(0x6000, GLOB_DAT, "wanted", 0), Rel(0x7000, RELATIVE, addend=0), dynamic_symbols=symbols)
    found = predicted(file).causes
    assert found[WriteCause.RELATIVE] == (range(4, 6), range(7, 8))
    assert found[WriteCause.GLOB_DAT] == (range(6, 7),)


def test_packed_relative_relocations_have_a_cause_of_their_own() -> None:
    file = library(tables=[Section(".relr.dyn", SHT_RELR, RO, [0x4000, 0b11, 0x6000])])
    assert pages_of(WriteCause.RELR, file) == [4, 6]


def test_a_copied_object_is_written_from_end_to_end() -> None:
    symbols = [Sym("other", 0, 8), Sym("taken_over", At(".data", 0xFF0), 0x1020)]
    file = library(Rel(0x4FF0, COPY, "taken_over", 0), dynamic_symbols=symbols)
    assert pages_of(WriteCause.COPY, file) == [4, 5, 6]


def test_a_tls_descriptor_is_two_words() -> None:
    symbols = [Sym("wanted", 0, 8)]
    assert pages_of(WriteCause.TLS, library(Rel(0x4FF8, TLSDESC, "wanted", 0), dynamic_symbols=symbols)) == [4, 5]
    assert pages_of(WriteCause.TLS, library(Rel(0x4FF8, DTPMOD, "wanted", 0), dynamic_symbols=symbols)) == [4]


def test_relocations_outside_of_the_object_are_not_believed() -> None:
    file = library(Rel(0x123456789, RELATIVE, addend=0), Rel(0xFFFFFFFFFFFFFFF8, RELATIVE, addend=0))
    assert set(predicted(file).causes) == {WriteCause.DYNAMIC, WriteCause.PARTIAL_BSS}


def test_text_that_is_relocated_can_be_written() -> None:
    found = predicted(library(Rel(0x10, RELATIVE, addend=0)))
    assert numbers(found.startup_min) == [0, 3, 7]
    assert numbers(found.startup_max) == [0, 3, 4, 5, 6, 7, 8]


def test_a_static_program_finds_its_relocations_without_a_dynamic_section() -> None:
    table = Section(".rela.plt", SHT_RELA, RO, [Rel(0x5010, IRELATIVE, addend=0)], link=".symtab")
    file = ElfFile(type=ET_EXEC, sections=[replace(table, addr=0x1000), DATA, BSS], symbols=[Sym("main")])
    assert pages_of(WriteCause.IRELATIVE, file, is_program=True) == [5]


def static_program(*names: str) -> ElfFile:
    """Return a static program that calls a resolver, in page 5, with variables in pages 8 and 9."""
    table = Section(".rela.plt", SHT_RELA, RO, [Rel(0x5010, IRELATIVE, addend=0)], link=".symtab")
    words = Section(".data", flags=RW, data=bytes(64), addr=0x5000)
    variables = Section(".bss", SHT_NOBITS, RW, size=0x6000, addr=0x6000)
    symbols = [Sym(name, 0x8000 + 0x1000 * place, 8) for place, name in enumerate(names)]
    return ElfFile(type=ET_EXEC, sections=[replace(table, addr=0x1000), words, variables], symbols=symbols)


def test_the_start_of_a_static_program_writes_variables_that_its_symbols_name_and_at_least_four_pages() -> None:
    unnamed = predicted(static_program("main"), is_program=True, libc=Libc.OTHER)
    assert (numbers(unnamed.startup_min), unnamed.assumed_pages) == ([5], 4)
    assert unnamed.startup_min_bytes == 5 * 0x1000
    named = predicted(static_program("_dl_random", "__environ"), is_program=True, libc=Libc.OTHER)
    assert numbers(named.causes[WriteCause.LIBC_START]) == [8, 9]
    assert (numbers(named.startup_min), named.assumed_pages) == ([5, 8, 9], 2)


def test_a_static_program_with_the_streams_of_cxx_has_written_them() -> None:
    found = predicted(static_program("_ZSt4cout", "_ZSt5other"), is_program=True, libc=Libc.OTHER)
    assert numbers(found.causes[WriteCause.CONSTRUCTOR]) == [8]
    assert found.startup_min_bytes == (2 + 4) * 0x1000


# --- what the loader notes for itself ---------------------------------------------------------------------------------


def test_the_dynamic_section_is_moved_by_glibc_only() -> None:
    assert pages_of(WriteCause.DYNAMIC, library()) == [3]
    assert pages_of(WriteCause.DYNAMIC, library(), libc=Libc.MUSL) == []


@pytest.mark.parametrize("change", [{"type": ET_EXEC}, {"machine": EM_RISCV}, {"machine": EM_MIPS}])
def test_it_is_not_where_nothing_moves_or_the_abi_has_it_read_only(change: dict[str, Any]) -> None:
    assert pages_of(WriteCause.DYNAMIC, library(**change)) == []


def test_it_is_not_where_its_segment_is_read_only() -> None:
    file = write(library())
    assert pages_of(WriteCause.DYNAMIC, patch(file, "p_flags", PF_R, index_of(file, PT_DYNAMIC))) == []


def index_of(file: bytes, kind: int) -> int:
    return next(index for index, segment in enumerate(image_of(file).segments) if segment.type == kind)


def test_only_the_entries_that_are_addresses_of_tables_are_moved() -> None:
    # 300 names of libraries are 4,800 bytes: the tables come behind them, in the next page.
    file = library(dynamic=[Dyn(DT_NEEDED, "libc.so.6")] * 300)
    file = replace(file, sections=[replace(DYNAMIC, addr=0x2000), DATA, BSS])
    assert pages_of(WriteCause.DYNAMIC, file) == [3]


def test_debuggers_are_told_of_the_program_only() -> None:
    file = library(dynamic=[Dyn(DT_DEBUG)])
    assert pages_of(WriteCause.DEBUG, file, is_program=True) == [3]
    assert pages_of(WriteCause.DEBUG, file) == []


def with_plt(*more: Dyn) -> ElfFile:
    plt = Section(".rela.plt", flags=RO, data=[Rel(0x6000, JUMP_SLOT, addend=0)], align=8)
    tags = [Dyn(DT_JMPREL, At(".rela.plt")), Dyn(DT_PLTRELSZ, Size(".rela.plt")), Dyn(DT_PLTREL, DT_RELA)]
    return library(tables=[plt], dynamic=[*tags, Dyn(DT_PLTGOT, 0x4FF0), *more])


def test_lazy_binding_writes_two_words_of_the_got_behind_the_first() -> None:
    found = predicted(with_plt())
    assert found.causes[WriteCause.GOT] == (range(4, 6),)
    assert found.causes[WriteCause.JUMP_SLOT] == (range(6, 7),)


@pytest.mark.parametrize("tag", [Dyn(DT_BIND_NOW), Dyn(DT_FLAGS, 8), Dyn(DT_FLAGS_1, 1)])
def test_binding_at_once_does_not_but_writes_the_slots_all_the_same(tag: Dyn) -> None:
    found = predicted(with_plt(tag))
    assert WriteCause.GOT not in found.causes
    assert found.causes[WriteCause.JUMP_SLOT] == (range(6, 7),)


def test_a_static_pie_binds_nothing_later() -> None:
    assert WriteCause.GOT not in predicted(with_plt(), is_program=True).causes
    interpreter = Section(".interp", flags=RO, data=b"/lib64/ld-linux-x86-64.so.2\0")
    dynamic = replace(with_plt(), sections=[interpreter, *with_plt().sections])
    assert WriteCause.GOT in predicted(dynamic, is_program=True).causes


@pytest.mark.parametrize(("kind", "pages"), [({}, [4, 5]), ({"type": ET_EXEC}, [5])])
def test_on_mips_the_whole_got_is_relocated_without_a_table(kind: dict[str, Any], pages: list[int]) -> None:
    # 0x300 local words, then one for each of the last 0x100 of 0x110 symbols.
    counts = [Dyn(0x7000000A, 0x300), Dyn(0x70000011, 0x110), Dyn(0x70000013, 0x10)]
    file = library(machine=EM_MIPS, bits=32, order="big", dynamic=[Dyn(DT_PLTGOT, 0x4800), *counts], **kind)
    assert pages_of(WriteCause.GOT, file) == pages


# --- .bss and the ends of segments ------------------------------------------------------------------------------------


def test_the_last_page_of_the_file_is_zeroed_where_bss_begins() -> None:
    assert pages_of(WriteCause.PARTIAL_BSS, library()) == [7]


def test_it_is_not_where_bss_begins_with_a_page_or_there_is_none() -> None:
    whole = Section(".data", flags=RW, data=bytes(0x4000), addr=0x4000)
    assert pages_of(WriteCause.PARTIAL_BSS, library(sections=[DYNAMIC, whole, BSS])) == []
    assert pages_of(WriteCause.PARTIAL_BSS, library(sections=[DYNAMIC, DATA])) == []
    # With larger pages it begins within one.
    assert pages_of(WriteCause.PARTIAL_BSS, library(sections=[DYNAMIC, whole, BSS]), 0x10000) == [0]


def test_musl_gives_the_rest_of_the_last_page_to_malloc() -> None:
    assert pages_of(WriteCause.DONATED, library(), libc=Libc.MUSL) == [8]
    assert pages_of(WriteCause.DONATED, library()) == []
    full = library(sections=[DYNAMIC, DATA, Section(".bss", SHT_NOBITS, RW, size=0x17F0)])
    assert pages_of(WriteCause.DONATED, full, libc=Libc.MUSL) == []
    # RELRO ends before it.
    assert pages_of(WriteCause.DONATED, library(relro=[".dynamic"]), libc=Libc.MUSL) == [8]


@pytest.mark.parametrize(("needed", "pages"), [([], [7]), ([Dyn(DT_NEEDED, "libc.so")], [])])
def test_musl_writes_its_variables_in_itself(needed: list[Dyn], pages: list[int]) -> None:
    file = library(dynamic=needed, dynamic_symbols=[Sym("__environ", At(".bss", 8), 8)])
    assert pages_of(WriteCause.LIBC_START, file, libc=Libc.MUSL) == pages
    assert pages_of(WriteCause.LIBC_START, file) == []


# --- startup minimum and maximum --------------------------------------------------------------------------------------


def test_pages_are_united_over_causes_and_each_knows_those_that_it_alone_writes() -> None:
    symbols = [Sym("wanted", 0, 8)]
    writes = [(0x4000, RELATIVE), (0x5000, RELATIVE), (0x5010, GLOB_DAT), (0x7000, GLOB_DAT)]
    found = predicted(library(*(Rel(at, kind, "wanted", 0) for at, kind in writes), dynamic_symbols=symbols))
    assert numbers(found.startup_min) == [3, 4, 5, 7]
    assert found.startup_min_bytes == 4 * 0x1000
    assert found.evidence is Evidence.PREDICTED


def test_the_ceiling_is_all_that_is_writable_relro_too() -> None:
    file = library(relro=[".dynamic"])
    assert numbers(predicted(file).startup_max) == [3, 4, 5, 6, 7, 8]
    assert predicted(file).startup_max_bytes == 6 * 0x1000


def test_segments_that_share_a_larger_page_have_it_once() -> None:
    text, table = Section(".text", flags=RO, data=bytes(0x800)), Section(".data", flags=RW, data=bytes(0x800))
    segments = [Segment(PT_LOAD, PF_R, [".text"], vaddr=0x1000), Segment(PT_LOAD, PF_R | PF_W, [".data"], vaddr=0x3000)]
    found = predicted(ElfFile(sections=[text, table], segments=segments, page_bytes=0x4000), 0x4000)
    assert (numbers(found.startup_max), found.mapping_count, found.mapped_bytes) == ([0], 1, 0x4000)


@pytest.mark.parametrize(("page_bytes", "pages"), [(0x1000, [3, 5, 7]), (0x4000, [0, 1]), (0x10000, [0])])
def test_pages_of_any_size(page_bytes: int, pages: list[int]) -> None:
    found = predicted(library(Rel(0x5010, RELATIVE, addend=0), page_bytes=0x10000), page_bytes)
    assert numbers(found.startup_min) == pages
    assert found.startup_min_bytes == len(pages) * page_bytes
    assert found.notes == ()


def test_pages_larger_than_the_file_is_aligned_for_are_a_what_if() -> None:
    assert [note.slug for note in predicted(library(), 0x4000).notes] == ["page-size-assumed"]


# --- the C library's first steps --------------------------------------------------------------------------------------

CALIBRATED = LibcStart((4, 6), 0x1000, 2, "calibrated")


def test_what_the_c_library_is_known_to_write_in_itself_is_part_of_the_floor() -> None:
    found = predicted(library(), libc_start=CALIBRATED)
    assert found.causes[WriteCause.LIBC_START] == (range(4, 5), range(6, 7))
    assert (found.startup_min_bytes, found.evidence) == (4 * 0x1000, Evidence.PREDICTED)


def test_what_is_assumed_of_it_makes_the_floor_an_estimate() -> None:
    found = predicted(library(), libc_start=UNKNOWN_LIBC)
    assert (count_pages(found.startup_min), found.assumed_pages, found.evidence) == (2, 4, Evidence.ESTIMATED)
    assert found.startup_min_bytes == 6 * 0x1000


def test_a_damaged_calibration_of_the_c_library_is_told_with_what_is_assumed_in_its_place() -> None:
    odd = Note("calibration-unreadable", "libc.json", "it is not a calibration of footprint")
    assert predicted(library(), libc_start=replace(UNKNOWN_LIBC, notes=(odd,))).notes == (odd,)


def test_no_more_is_assumed_than_can_be_written() -> None:
    assert predicted(library(), 0x10000, libc_start=UNKNOWN_LIBC).startup_min_bytes == 0x10000


def test_known_pages_are_known_for_larger_ones_and_assumed_for_smaller_ones() -> None:
    assert predicted(library(), 0x4000, libc_start=CALIBRATED).causes[WriteCause.LIBC_START] == (range(1, 2),)
    smaller = predicted(library(), 0x1000, libc_start=replace(CALIBRATED, page_bytes=0x4000))
    assert (smaller.assumed_pages, smaller.evidence) == (2, Evidence.ESTIMATED)


def test_a_library_that_writes_nothing_in_itself_is_known_to() -> None:
    found = predicted(library(), libc_start=LibcStart((), 0x1000, 0, "calibrated"))
    assert (found.assumed_pages, found.evidence) == (0, Evidence.PREDICTED)


# --- threads and the process ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("align", "size_bytes"), [(1, 0x64), (16, 0x70), (64, 0x80)])
def test_the_block_of_a_thread_is_a_multiple_of_its_alignment(align: int, size_bytes: int) -> None:
    sections = [Section(".tbss", SHT_NOBITS, TLS, size=0x64, align=align), DATA]
    found = predicted(ElfFile(sections=sections))
    assert found.tls_bytes == size_bytes


def test_an_object_without_thread_locals_has_no_part_of_it() -> None:
    assert predicted(library()).tls_bytes == 0


# --- mappings ---------------------------------------------------------------------------------------------------------


def test_a_mapping_for_each_segment_one_for_bss_and_one_for_relro() -> None:
    found = predicted(library(relro=[".dynamic"]))
    # The headers; a hole that stays reserved; .dynamic as RELRO; .data; .bss.
    assert (found.mapping_count, found.mapped_bytes) == (5, 9 * 0x1000)
    assert predicted(library()).mapping_count == 4


def test_holes_of_a_program_are_not_reserved() -> None:
    found = predicted(library(relro=[".dynamic"]), is_program=True)
    assert (found.mapping_count, found.mapped_bytes) == (4, 7 * 0x1000)


def test_relro_ends_with_its_last_whole_page() -> None:
    file = write(library(relro=[".dynamic"]))
    short = patch(file, "p_memsz", 0xFFF, index_of(file, PT_GNU_RELRO))
    assert predicted(short).mapping_count == predicted(file).mapping_count - 1


def test_a_static_program_of_musl_leaves_relro_writable() -> None:
    file = library(relro=[".dynamic"])
    assert predicted(file, is_program=True, libc=Libc.MUSL).mapping_count == 3


def test_neighbours_of_one_file_that_are_alike_are_one_mapping() -> None:
    sections = [Section(".rodata", flags=RO, data=bytes(0x1000)), Section(".more", flags=RO, data=bytes(0x1000))]
    segments = [
        Segment(PT_LOAD, PF_R, [".rodata"], vaddr=0x1000, offset=0x1000),
        Segment(PT_LOAD, PF_R, [".more"], vaddr=0x2000, offset=0x2000),
        Segment(PT_LOAD, PF_R | PF_X, vaddr=0x3000, offset=0x3000, filesz=0x10, memsz=0x10),
    ]
    assert predicted(ElfFile(sections=sections, segments=segments)).mapping_count == 2


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most_pages", "refused_count"), [(1, 1), (2, 0)])
def test_pages_of_copied_objects_behind_their_first_are_counted(
    monkeypatch: pytest.MonkeyPatch, most_pages: int, refused_count: int
) -> None:
    monkeypatch.setattr("footprint.attribution.startup_writes._MOST_COPIED_PAGES", most_pages)
    file = library(Rel(0x5000, COPY, "large", 0), dynamic_symbols=[Sym("large", At(".data"), 0x2001)])
    assert ["larger than any program" in note.detail for note in predicted(file).notes] == [True] * refused_count


def test_a_damaged_table_is_a_note_and_the_rest_of_the_answer() -> None:
    file = library(Rel(0x5010, RELATIVE, addend=0), dynamic=[Dyn(DT_RELA, 0x999999)])
    found = predicted(file)
    assert [(note.slug, note.subject) for note in found.notes] == [("file-unreadable", "library.so")]
    assert found.causes[WriteCause.PARTIAL_BSS] == (range(7, 8),)
    assert found.mapping_count == 4


@pytest.mark.parametrize("size_bytes", [1 << 40, (1 << 64) - 1])
def test_a_copied_object_larger_than_any_program_is_damage(size_bytes: int) -> None:
    file = library(Rel(0x5010, COPY, "huge", 0), dynamic_symbols=[Sym("huge", At(".data"), size_bytes)])
    found = predicted(file)
    assert "larger than any program" in found.notes[0].detail
    assert count_pages(found.startup_min) <= 6


def test_huge_segments_are_no_more_work_than_small_ones() -> None:
    file = write(library())
    load = [index for index, segment in enumerate(image_of(file).segments) if segment.type == PT_LOAD][-1]
    found = predicted(patch(file, "p_memsz", (1 << 64) - 1, load), libc=Libc.MUSL)
    assert found.startup_max_bytes > 1 << 63


def test_a_thread_block_may_claim_anything() -> None:
    file = write(ElfFile(sections=[Section(".tbss", SHT_NOBITS, TLS, size=0x64), DATA]))
    found = predicted(patch(file, "p_align", (1 << 64) - 1, index_of(file, PT_TLS)))
    assert found.tls_bytes == (1 << 64) - 1


SOUND = write(
    replace(
        with_plt(Dyn(DT_DEBUG)),
        relro=[".dynamic"],
        dynamic_symbols=[Sym("taken_over", At(".data"), 8), Sym("far")],
    )
)


@given(
    st.lists(st.tuples(st.integers(16, len(SOUND) - 1), st.integers(0, 255)), min_size=1, max_size=8),
    st.sampled_from([0x1000, 0x4000, 0x10000]),
    st.sampled_from(list(Libc)),
    st.booleans(),
)
def test_any_damage_gives_an_answer_or_one_of_our_errors(
    changes: list[tuple[int, int]],
    page_bytes: int,
    libc: Libc,
    is_program: bool,  # noqa: FBT001 # a case
) -> None:
    file = bytearray(SOUND)
    for at, byte in changes:
        file[at] = byte
    try:
        found = predict(read_image(bytes(file), "library.so"), page_bytes, is_program=is_program, libc=libc)
    except InputError:
        return
    assert all(one.pages.stop <= after.pages.start for one, after in pairwise(found.areas))
    assert 0 <= found.startup_min_bytes <= found.startup_max_bytes
    assert set(numbers(found.startup_min)) == {page for runs in found.causes.values() for page in numbers(runs)}
