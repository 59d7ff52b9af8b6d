"""The figures that the README.md of each folder in sample_binaries/ derives by hand are those that we read."""

import gzip
from pathlib import Path

import pytest

import footprint
from footprint.elf.abi import PT_GNU_RELRO
from footprint.elf.archive import read_members
from footprint.elf.contents import Contents, ResidueCause, SectionContents, SectionKind, read_contents
from footprint.elf.image import Image, read_image, starts_like_archive, starts_like_elf
from footprint.elf.names import shown_name
from footprint.elf.symbols import Symbol
from footprint.findings.copies import CopyOrigin, Cost
from footprint.model.finding import Confidence, SourceLocation

SAMPLES = Path(__file__).resolve().parents[2] / "sample_binaries"
FILES = sorted(
    str(path.relative_to(SAMPLES))
    for path in SAMPLES.glob("*/*")
    if path.is_file() and (starts_like_elf(path.read_bytes()) or starts_like_archive(path.read_bytes()))
)
STAGES = ["base", "sans_answers", "sans_null_xaction", "sans_crypt"]
ARCHITECTURES = ["arch_i386", "arch_aarch64", "arch_s390x", "arch_powerpc"]
PT_TLS = 7
EM_386, EM_PPC, EM_S390, EM_AARCH64 = 3, 20, 22, 183
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2


def image(name: str) -> Image:
    return read_image((SAMPLES / name).read_bytes(), name)


def sections(name: str) -> dict[str, SectionContents]:
    """Return the contents of each writable section of a sample by the section's name."""
    return by_name(read_contents(image(name)))


def by_name(contents: Contents) -> dict[str, SectionContents]:
    found = {section.section.name: section for section in contents.sections}
    assert len(found) == len(contents.sections)
    return found


def sizes(section: SectionContents) -> dict[str, int]:
    """Return the sizes of the variables of a section; the names are all different."""
    found = {variable.name: variable.size_bytes for variable in section.variables}
    assert len(found) == len(section.variables)
    return found


def residues(section: SectionContents) -> list[tuple[int, int, ResidueCause]]:
    return [(start, end, owner.cause) for start, end, owner in section.ranges.pieces if not isinstance(owner, Symbol)]


# --- all of them ------------------------------------------------------------------------------------------------------


def test_every_folder_but_many_sections_has_its_files_here() -> None:
    folders = {path.name for path in SAMPLES.iterdir() if (path / "README.md").is_file()}
    assert folders - {name.partition("/")[0] for name in FILES} == {"many_sections"}


@pytest.mark.parametrize("name", FILES)
def test_the_verb_symbols_gives_what_the_reader_gives(name: str) -> None:
    path = str(SAMPLES / name)
    data = Path(path).read_bytes()
    if starts_like_archive(data):
        expected = [
            read_contents(read_image(member.data or b"", f"{path}({member.name})"))
            for member in read_members(data, path)
        ]
    else:
        expected = [read_contents(read_image(data, path))]
    found = footprint.symbols(path)
    assert (list(found.files), found.notes) == (expected, ())


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(".a")])
def test_every_byte_of_a_sample_is_a_variable_or_has_a_cause_and_no_symbol_is_astray(name: str) -> None:
    contents = read_contents(image(name))
    assert contents.sections
    assert contents.stray_count == 0
    for section in contents.sections:
        assert section.named_bytes + sum(section.residue_bytes.values()) == section.size_bytes
        assert (ResidueCause.LINKER_TABLE in section.residue_bytes) == (
            section.section.name in {".dynamic", ".got", ".got.plt"}
        )


# --- the same variables on four machines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "is_64", "is_little", "machine"),
    [
        ("arch_i386", False, True, EM_386),
        ("arch_aarch64", True, True, EM_AARCH64),
        ("arch_s390x", True, False, EM_S390),
        ("arch_powerpc", False, False, EM_PPC),
    ],
)
def test_the_header_tells_the_machine(folder: str, *, is_64: bool, is_little: bool, machine: int) -> None:
    read = image(f"{folder}/variables.so")
    assert (read.is_64, read.is_little, read.machine, read.type) == (is_64, is_little, machine, 3)


@pytest.mark.parametrize("folder", ARCHITECTURES)
def test_the_variables_have_the_same_sizes_on_every_machine(folder: str) -> None:
    result = sections(f"{folder}/variables.so")
    data = sizes(result[".data"]) | (sizes(result[".sdata"]) if folder == "arch_powerpc" else {})
    assert data == {"data_global": 64, "data_static": 24, "data_weak": 8}
    assert sizes(result[".bss"]) == {"bss_global": 4096, "bss_static": 256, "bss_weak": 128}
    assert sizes(result[".tdata"]) == {"tdata_global": 16, "tdata_static": 8}
    assert sizes(result[".tbss"]) == {"tbss_global": 512, "tbss_static": 64}
    pointer_bytes = 8 if folder in {"arch_aarch64", "arch_s390x"} else 4
    assert sizes(result[".data.rel.ro"]) == {"relro_table": 6 * pointer_bytes}


@pytest.mark.parametrize("folder", ARCHITECTURES)
def test_the_sections_are_as_large_as_the_sum_of_their_variables(folder: str) -> None:
    found = sections(f"{folder}/variables.so")
    named = {name: one.named_bytes for name, one in found.items() if ResidueCause.LINKER_TABLE not in one.residue_bytes}
    data = {".data": 88, ".sdata": 8} if folder == "arch_powerpc" else {".data": 96}
    relro_bytes = 48 if folder in {"arch_aarch64", "arch_s390x"} else 24
    assert named == {".bss": 4480, ".tdata": 24, ".tbss": 576, ".data.rel.ro": relro_bytes, **data}
    assert {name: found[name].size_bytes for name in named} == named


@pytest.mark.parametrize("folder", ARCHITECTURES)
def test_eleven_variables_have_a_size_and_mapping_symbols_are_none_of_them(folder: str) -> None:
    found = sections(f"{folder}/variables.so").values()
    bindings = [variable.binding for one in found for variable in one.variables if variable.size_bytes]
    assert len(bindings) == 11
    assert [bindings.count(binding) for binding in (STB_GLOBAL, STB_WEAK, STB_LOCAL)] == [5, 2, 4]
    names = {variable.name for one in found for variable in one.variables}
    assert names.isdisjoint({"$d", "_TLS_MODULE_BASE_", "_DYNAMIC", "__bss_start"})


@pytest.mark.parametrize("folder", ARCHITECTURES)
def test_thread_local_variables_stand_at_their_offsets_on_every_machine(folder: str) -> None:
    tls, found = image(f"{folder}/variables.so").segment(PT_TLS), sections(f"{folder}/variables.so")
    assert tls is not None
    assert (tls.file_bytes, tls.memory_bytes, tls.align) == (24, 600, 8)
    places = {
        variable.name: one.section.vaddr - tls.vaddr + variable.offset
        for one in found.values()
        if one.kind is SectionKind.TLS
        for variable in one.variables
    }
    assert places == {"tdata_global": 0, "tdata_static": 16, "tbss_global": 24, "tbss_static": 536}


@pytest.mark.parametrize("folder", ARCHITECTURES)
def test_the_writable_segment_ends_with_bss_and_begins_with_relro(folder: str) -> None:
    read, result = image(f"{folder}/variables.so"), sections(f"{folder}/variables.so")
    (load,) = [each for each in read.loads if each.is_writable]
    relro = read.segment(PT_GNU_RELRO)
    assert relro is not None
    assert load.memory_bytes - load.file_bytes == 4480
    assert relro.vaddr == result[".tdata"].section.vaddr
    assert relro.vaddr + relro.memory_bytes == result[".data"].section.vaddr // 4096 * 4096
    relro_names = {name for name, one in result.items() if one.kind is SectionKind.RELRO}
    assert relro_names >= {".data.rel.ro", ".dynamic"}
    assert (result[".data"].kind, result[".bss"].kind) == (SectionKind.DATA, SectionKind.BSS)


# --- stripped, or without section headers -----------------------------------------------------------------------------


def test_a_stripped_library_names_what_it_exports_and_the_rest_says_why_it_has_no_name() -> None:
    contents = read_contents(image("stripped_shared_object/variables.so"))
    result = by_name(contents)
    assert contents.symbols_from == ".dynsym"
    figures = {name: (result[name].size_bytes, result[name].named_bytes, residues(result[name])) for name in result}
    assert figures.pop(".dynamic")[1] == 0
    assert figures == {
        ".data": (96, 72, [(64, 88, ResidueCause.STRIPPED)]),
        ".bss": (4480, 4224, [(4224, 4480, ResidueCause.STRIPPED)]),
        ".tdata": (24, 16, [(16, 24, ResidueCause.STRIPPED)]),
        ".tbss": (576, 512, [(512, 576, ResidueCause.STRIPPED)]),
        ".data.rel.ro": (48, 48, []),
    }
    names = {variable.name for one in result.values() for variable in one.variables}
    assert names == {f"{name}_global" for name in ("data", "bss", "tdata", "tbss")} | {
        "data_weak",
        "bss_weak",
        "relro_table",
    }


def test_without_section_headers_the_writable_segment_is_all_that_is_known() -> None:
    read = image("no_section_headers/no_section_headers.so")
    contents = read_contents(read)
    assert (read.sections, contents.symbols_from) == ((), None)
    assert [section.size_bytes for section in contents.sections if section.kind is SectionKind.BSS] == [8192]
    in_file = [section for section in contents.sections if section.kind is not SectionKind.BSS]
    assert sum(one.size_bytes for one in in_file) == 8 + 272 + 64
    assert {cause for section in contents.sections for cause in section.residue_bytes} == {ResidueCause.NO_SECTIONS}
    relro = read.segment(PT_GNU_RELRO)
    assert relro is not None
    assert relro.memory_bytes == 8 + 272


# --- one fact each ----------------------------------------------------------------------------------------------------


def test_bss_may_be_longer_than_the_file() -> None:
    read = image("bss_beyond_file_size/bss_beyond_file_size.so")
    found = by_name(read_contents(read))
    assert (sizes(found[".data"]), sizes(found[".bss"])) == ({"beginning": 8}, {"beyond_file": 65_536})
    assert len(read.data) == 5176 < found[".bss"].size_bytes
    (load,) = [each for each in read.loads if each.is_writable]
    assert load.memory_bytes - load.file_bytes == 65_536


def test_a_const_table_of_pointers_is_private_memory_that_is_shown_read_only() -> None:
    read = image("relro_written_but_read_only/relro_written_but_read_only.so")
    result = by_name(read_contents(read))
    assert {name: (one.kind.value, one.size_bytes) for name, one in result.items()} == {
        ".data.rel.ro": ("relro", 64),
        ".dynamic": ("relro", 256),
        ".data": ("data", 8),
    }
    assert (sizes(result[".data.rel.ro"]), sizes(result[".data"])) == ({"weekday_names": 64}, {"today": 8})
    relro = read.segment(PT_GNU_RELRO)
    assert relro is not None
    assert relro.memory_bytes == 64 + 256
    assert relro.vaddr + relro.memory_bytes == result[".data"].section.vaddr


def test_two_names_of_one_variable_are_counted_once() -> None:
    result = sections("two_symbols_at_one_address/two_symbols_at_one_address.so")
    listed = {name: [(each.name, each.aliases, each.size_bytes) for each in result[name].variables] for name in result}
    assert listed == {
        ".dynamic": [],
        ".data": [("counters", ("counters_alias",), 16)],
        ".bss": [("buffer", ("buffer_weak_alias",), 64)],
    }
    assert result[".data"].named_bytes + result[".bss"].named_bytes == 80
    assert result[".data"].lost_bytes == result[".bss"].lost_bytes == 0


def test_common_variables_are_in_no_section_of_the_object() -> None:
    result = sections("common_symbols/common_symbols.o")
    assert {name: sizes(one) for name, one in result.items()} == {
        ".data": {"defined_data": 8},
        ".bss": {"defined_zero": 8},
        "COMMON": {"common_large": 1000, "common_small": 4},
    }
    assert (result["COMMON"].kind, result["COMMON"].size_bytes) == (SectionKind.BSS, 1004)


def test_tbss_takes_no_bytes_of_what_follows_it() -> None:
    result = sections("thread_locals/thread_locals.so")
    assert {name: sizes(one) for name, one in result.items() if name != ".dynamic"} == {
        ".tdata": {"tdata_first": 16, "tdata_second": 32},
        ".tbss": {"tbss_large": 4096, "tbss_static": 64},
        ".data.rel.ro": {"follows_tbss": 16},
        ".data": {"after": 8},
    }
    assert {name: one.size_bytes for name, one in result.items() if name != ".dynamic"} == {
        ".tdata": 48,
        ".tbss": 4160,
        ".data.rel.ro": 16,
        ".data": 8,
    }
    tbss, follower = result[".tbss"].section, result[".data.rel.ro"].section
    assert tbss.vaddr == follower.vaddr
    assert tbss.vaddr < result[".data"].section.vaddr < tbss.vaddr + tbss.size_bytes


def test_a_label_without_size_is_the_cause_of_the_bytes_behind_it() -> None:
    found = sections("symbol_without_size/symbol_without_size.so")[".data"]
    assert (found.size_bytes, found.named_bytes, found.residue_bytes) == (64, 16, {ResidueCause.UNSIZED: 48})
    labels = [owner.label for _, _, owner in found.ranges.pieces if not isinstance(owner, Symbol)]
    assert labels == ["[symbol without size: unsized]"]
    assert [(variable.name, variable.offset, variable.size_bytes) for variable in found.variables] == [
        ("unsized", 0, 0),
        ("sized", 48, 16),
    ]


def test_an_archive_holds_its_objects_under_their_full_names() -> None:
    data = (SAMPLES / "archive_of_objects/libmembers.a").read_bytes()
    found = {
        each.name: by_name(read_contents(read_image(each.data or b"", each.name))) for each in read_members(data, "a")
    }
    assert list(found) == ["short.o", "a_name_longer_than_fifteen.o"]
    assert {name: sizes(one) for name, one in found["short.o"].items()} == {".data": {"short_data": 16}}
    assert {name: sizes(one) for name, one in found["a_name_longer_than_fifteen.o"].items()} == {
        ".bss": {"long_zero": 24},
        "COMMON": {"long_common": 40},
    }


def test_more_sections_than_16_bits_can_count_are_all_accounted_for(tmp_path: Path) -> None:
    unpacked = tmp_path / "many_sections.o"
    unpacked.write_bytes(gzip.decompress((SAMPLES / "many_sections/many_sections.o.gz").read_bytes()))
    read = read_image(unpacked.read_bytes(), str(unpacked))
    (contents,) = footprint.symbols(str(unpacked)).files
    assert len(read.sections) == 65_409
    assert len(contents.sections) == 65_400
    assert sum(section.size_bytes for section in contents.sections) == 261_600
    variables = {variable.name: section for section in contents.sections for variable in section.variables}
    places = {name: (one.section.index, one.section.name, one.named_bytes) for name, one in variables.items()}
    assert places == {"in_first_section": (4, ".bss.many_0", 4), "in_last_section": (65_403, ".bss.many_255", 4)}
    without_symbol = [section for section in contents.sections if section.residue_bytes == {ResidueCause.NO_SYMBOL: 4}]
    assert (contents.symbol_count, len(without_symbol)) == (3, 65_398)


# --- a program in four stages of an audit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "bss_bytes", "bss_padding", "dynamic_bytes"),
    [
        # Between ConfigTab and priv_history 28; behind the copies of the header's variable the linker rounds up by 4.
        ("base", 10_384, 28 + 4, 352),
        ("sans_answers", 2192, 28 + 4, 352),
        ("sans_null_xaction", 1760, 28, 352),
        ("sans_crypt", 1760, 28, 320),
    ],
)
def test_the_sections_of_a_stage_have_the_sizes_of_the_table(
    stage: str, bss_bytes: int, bss_padding: int, dynamic_bytes: int
) -> None:
    result = sections(f"condor_shadow/{stage}")
    assert {name: (one.kind, one.size_bytes) for name, one in result.items()} == {
        ".data": (SectionKind.DATA, 320),
        ".bss": (SectionKind.BSS, bss_bytes),
        ".got.plt": (SectionKind.DATA, 72),
        ".dynamic": (SectionKind.DATA, dynamic_bytes),
    }
    assert (sizes(result[".data"]), sum(result[".data"].residue_bytes.values())) == ({"CondorEnvironList": 288}, 4 + 28)
    assert result[".bss"].named_bytes == bss_bytes - bss_padding
    assert result[".bss"].residue_bytes == {ResidueCause.PADDING: bss_padding}


@pytest.mark.parametrize("stage", STAGES)
def test_the_variables_of_a_stage_have_the_sizes_of_the_table(stage: str) -> None:
    bss = [each for each in sections(f"condor_shadow/{stage}")[".bss"].variables if "NULL_XACTION" not in each.name]
    found = {each.name.partition(".")[0]: each.size_bytes for each in bss if not each.name.startswith("answer")}
    assert found == {
        "priv_history": 512,
        "ConfigTab": 452,
        "pe_logname": 256,
        "pe_user": 256,
        "_ZZ15priv_identifierE2id": 256,
    }
    assert {each.name for each in bss if each.binding == STB_GLOBAL} == {"ConfigTab"}
    assert shown_name("_ZZ15priv_identifierE2id") == "priv_identifier::id"


@pytest.mark.parametrize(
    ("stage", "answers"), [*zip(STAGES, ({"answer.0": 4096, "answer.1": 4096}, {}, {}, {}), strict=True)]
)
def test_the_two_static_buffers_answer_have_a_symbol_each(stage: str, answers: dict[str, int]) -> None:
    bss = sections(f"condor_shadow/{stage}")[".bss"].variables
    found = [each for each in bss if each.name.startswith("answer")]
    assert {each.name: each.size_bytes for each in found} == answers
    assert {each.binding for each in found} <= {STB_LOCAL}


@pytest.mark.parametrize(("stage", "count"), [*zip(STAGES, (107, 107, 0, 0), strict=True)])
def test_the_variable_of_a_header_is_there_once_for_each_file_that_includes_it(stage: str, count: int) -> None:
    bss = sections(f"condor_shadow/{stage}")[".bss"].variables
    copies = [each for each in bss if each.name == "_ZN7classadL12NULL_XACTIONE"]
    assert {copy.size_bytes for copy in copies} <= {4}
    offsets = [copy.offset for copy in copies]
    assert offsets == sorted(set(offsets))
    assert len(offsets) == count
    if count:
        assert (offsets[-1] - offsets[0], copies[0].aliases) == (4 * 106, ())
        assert shown_name(copies[0].name) == "classad::NULL_XACTION"


@pytest.mark.parametrize("stage", STAGES)
def test_the_stages_were_linked_as_in_2010_without_relro(stage: str) -> None:
    read = image(f"condor_shadow/{stage}")
    assert (read.type, read.segment(PT_GNU_RELRO)) == (2, None)
    (load,) = [each for each in read.loads if each.is_writable]
    assert load.memory_bytes - load.file_bytes == sections(f"condor_shadow/{stage}")[".bss"].size_bytes


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (
            "libunused.so",
            {
                ".data": {"unused_boxes": 4096},
                ".bss": {"unused_state": 159_744},
                ".data.rel.ro": {"unused_ciphers": 32},
            },
        ),
        ("libunused_dep.so", {".data": {"unused_dep_words": 4096}, ".bss": {"unused_dep_state": 16_384}}),
    ],
)
def test_the_libraries_that_nobody_uses_hold_what_the_table_says(
    library: str, expected: dict[str, dict[str, int]]
) -> None:
    found = sections(f"condor_shadow/{library}")
    held = {name: sizes(one) for name, one in found.items() if ResidueCause.LINKER_TABLE not in one.residue_bytes}
    assert held == expected
    assert all(found[name].size_bytes == found[name].named_bytes for name in held)
    assert all(found[name].section.vaddr % 4096 == 0 for name in (".data", ".bss"))


# --- what a header defines --------------------------------------------------------------------------------------------


def test_107_copies_of_a_header_s_variable_are_found_by_their_name_and_source_files() -> None:
    (found,) = footprint.duplicates(str(SAMPLES / "condor_shadow" / "base")).files
    (one,) = found.copies
    assert (one.name, len(one.copies), one.size_bytes, one.waste_bytes) == ("_ZN7classadL12NULL_XACTIONE", 107, 4, 424)
    assert one.units == tuple(f"unit_{number:03}.cpp" for number in range(1, 108))
    assert (one.section, one.cost, one.confidence) == (".bss", Cost.WHEN_TOUCHED, Confidence.HIGH)


def test_the_debug_information_proves_them_by_the_line_that_declares_them() -> None:
    (found,) = footprint.duplicates(str(SAMPLES / "condor_shadow" / "base_debug")).files
    (one,) = found.copies
    assert (len(one.copies), one.waste_bytes, one.origin) == (107, 424, CopyOrigin.HEADER)
    assert (one.confidence, one.location) == (Confidence.PROOF, SourceLocation("classad.h", 3))


@pytest.mark.parametrize(("name", "lines"), [("base", [None, None]), ("base_debug", [21, 17])])
def test_one_of_the_two_answers_is_used_by_dead_code_only(name: str, lines: list[int | None]) -> None:
    findings = footprint.duplicates(str(SAMPLES / "condor_shadow" / name)).findings
    dead, used = [finding for finding in findings if finding.rule == "large-static"]
    assert (dead.subject, dead.kind, used.subject, used.kind) == ("answer.0", "dead-code", "answer.1", "buffer")
    assert dead.confidence is Confidence.HIGH
    assert "only for answer_that_nobody_asks_for, which nothing calls" in dead.message
    assert used.message.endswith(", for answer_of_the_schedd")
    assert [one.location and one.location.line for one in (dead, used)] == lines


@pytest.mark.parametrize("stage", ["sans_null_xaction", "sans_crypt"])
def test_without_the_header_nothing_is_there_more_than_once(stage: str) -> None:
    found = footprint.duplicates(str(SAMPLES / "condor_shadow" / stage))
    assert (found.files[0].copies, found.linked_twice, found.findings) == ((), (), ())
