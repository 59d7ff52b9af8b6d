"""The maps of linkers: which object each piece of an output section came from."""

from pathlib import Path

import pytest

from footprint.elf.linker_map import Linker, LinkerMap, OutputSection, PlacedSection, read_linker_map
from footprint.errors import InputError

MAPS = Path(__file__).parents[1] / "corpus" / "linker_maps"
BFD_START = """
Memory Configuration

Name             Origin             Length             Attributes
*default*        0x0000000000000000 0xffffffffffffffff

Linker script and memory map

LOAD a.o
"""
LLD_START = "             VMA              LMA     Size Align Out     In      Symbol\n"


def read(text: str, *output_sections: str) -> LinkerMap:
    return read_linker_map(text.encode("utf-8", "surrogateescape"), "a.map", output_sections or None)


def bfd(lines: str) -> LinkerMap:
    return read(BFD_START + lines)


def lld(*lines: str) -> LinkerMap:
    return read(LLD_START + "".join(f"{line}\n" for line in lines))


def placed(result: LinkerMap) -> list[tuple[object, ...]]:
    return [tuple(section) for section in result.sections]


# --- real maps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
@pytest.mark.parametrize("bits", ["64", "32"])
def test_the_map_of_each_linker_tells_whose_a_section_is(linker: str, bits: str) -> None:
    sections_of_map = read_linker_map(
        (MAPS / f"{linker}-{bits}.map").read_bytes(), "a.map", {".data", ".tdata", ".tbss"}
    )
    owned = [section for section in sections_of_map.sections if section.object is not None]
    assert {(one.size_bytes, one.output_section, one.input_section, one.object, one.member) for one in owned} == {
        (8, ".tdata", ".tdata", "first.o", None),
        (20, ".tbss", ".tbss", "first.o", None),
        (40, ".data", ".data", "first.o", None),
        (12, ".data", ".data.second_aligned", "libsecond.a", "second.o"),
        (12, ".data", ".data.second_data", "libsecond.a", "second.o"),
        (3, ".data", ".data.second_static_with_a_name_too_long_for_a_column", "libsecond.a", "second.o"),
    }
    assert sections_of_map.notes == ()
    assert [section.vaddr for section in sections_of_map.sections] == sorted(
        section.vaddr for section in sections_of_map.sections
    )


@pytest.mark.parametrize(
    ("name", "linker"),
    [("bfd-64", Linker.BFD), ("gold-32", Linker.GOLD), ("lld-32", Linker.LLD), ("mold-64", Linker.MOLD)],
)
def test_who_wrote_a_map_is_told_by_what_it_holds(name: str, linker: Linker) -> None:
    assert read_linker_map((MAPS / f"{name}.map").read_bytes(), "a.map").linker is linker


def test_gold_lists_the_objects_of_common_variables_apart() -> None:
    found = read_linker_map((MAPS / "gold-64.map").read_bytes(), "a.map")
    assert found.commons == {"first_bss": ("first.o", None), "second_common": ("libsecond.a", "second.o")}
    assert [section.object for section in found.sections if section.input_section == "** common"] == [None]


# --- GNU ld and gold --------------------------------------------------------------------------------------------------


def test_a_long_name_has_a_line_to_itself() -> None:
    result = bfd(
        ".data           0x0000000000004000       0x10\n"
        " .data.a_name_that_is_too_long\n"
        "                0x0000000000004000       0x10 lib.a(one.o)\n"
        "                0x0000000000004000                a_name_that_is_too_long\n"
    )
    assert placed(result) == [(0x4000, 16, ".data", ".data.a_name_that_is_too_long", "lib.a", "one.o")]


def test_a_long_output_section_has_a_line_to_itself_and_may_be_loaded_elsewhere() -> None:
    result = bfd(
        ".a_very_long_section\n"
        "                0x0000000000004000       0x10 load address 0x0000000000008000\n"
        " .data          0x0000000000004000       0x10 a.o\n"
    )
    assert result.outputs[-1] == OutputSection(".a_very_long_section", 0x4000, 16)
    assert [section.object for section in result.sections] == ["a.o"]


def test_fill_patterns_statements_and_symbols_belong_to_no_object() -> None:
    result = bfd(
        ".data           0x0000000000004000       0x20\n"
        " *(.data .data.*)\n"
        " .data          0x0000000000004000        0x4 a.o\n"
        "                0x0000000000004000                x\n"
        "                                  0x8 (size before relaxing)\n"
        " *fill*         0x0000000000004004        0xc 90909090\n"
        " *(.none)\n"
        "                0x0000000000004010        0x4 LONG 0x1\n"
        "                0x0000000000004014                . = ALIGN (0x8)\n"
        "                [!provide]                        PROVIDE (edata = .)\n"
        " FILL mask 0x90\n"
    )
    assert [(one.vaddr, one.object) for one in result.sections] == [(0x4000, "a.o"), (0x4004, None), (0x4010, None)]
    assert result.notes == ()


def test_discarded_sections_before_the_map_are_in_no_output_section() -> None:
    text = "Discarded input sections\n\n .data          0x0000000000000000        0x4 gone.o\n" + BFD_START
    found = read(
        text + ".data           0x0000000000004000        0x4\n .data          0x0000000000004000        0x4 a.o\n"
    )
    assert [section.object for section in found.sections] == ["a.o"]


def test_headings_may_be_translated() -> None:
    text = BFD_START.replace("Linker script and memory map", "Linker-Skript und Memory-Map")
    assert read(text + ".data           0x4000        0x4\n .data          0x4000        0x4 a.o\n").sections


def test_what_the_linker_makes_is_not_the_first_objects() -> None:
    found = bfd(".got            0x4000       0x28\n .got           0x4000       0x28 /usr/lib/Scrt1.o\n")
    assert [section.object for section in found.sections] == [None]


def test_lines_may_end_as_on_windows() -> None:
    text = (
        BFD_START
        + ".data           0x4000        0x4\n .data.rel.ro.local\n                0x4000        0x4 c:\\o\\a.o\n"
    )
    assert [section.object for section in read(text.replace("\n", "\r\n")).sections] == ["c:\\o\\a.o"]


def test_names_that_are_no_utf_8_are_kept() -> None:
    found = bfd(".data           0x4000        0x4\n .data          0x4000        0x4 \udcff (1).o\n")
    assert [(section.object, section.member) for section in found.sections] == [("\udcff (1).o", None)]


# --- lld and mold -----------------------------------------------------------------------------------------------------


def test_lld_before_version_7_has_one_address() -> None:
    result = read(
        "Address          Size             Align Out     In      Symbol\n"
        "0000000000201000 0000000000000015     4 .data\n"
        "0000000000201000 000000000000000e     4         test.o:(.data)\n"
        "0000000000201005 0000000000000000     0                 f(int)\n"
    )
    assert result.linker is Linker.LLD
    assert placed(result) == [(0x201000, 14, ".data", ".data", "test.o", None)]


def test_lld_lists_assignments_of_a_linker_script_among_the_sections() -> None:
    result = lld(
        "            1000             1000        0     1 __start = .",
        "            1000             1000       10     4 .data",
        "            1000             1000        0     1         . = ALIGN(8)",
        "            1000             1000        8     4         C:/b/a.o:(.data)",
        "            1008             1008        8     1         . += 8",
        "            1010             1010        4     1 . += 4",
        "            1010             1010        4     1         stray.o:(.data)",
    )
    assert result.outputs == (OutputSection(".data", 0x1000, 16),)
    assert placed(result) == [(0x1000, 8, ".data", ".data", "C:/b/a.o", None)]


def test_mold_writes_sizes_as_decimals() -> None:
    result = read(
        "               VMA       Size Align Out     In      Symbol\n"
        "            0x3a00        268    64 .data\n"
        "            0x3a20        196    32         liba.a(one.o):(.data)\n"
        "            0x3a20          0     0                 one_data\n"
    )
    assert result.linker is Linker.MOLD
    assert placed(result) == [(0x3A20, 196, ".data", ".data", "liba.a", "one.o")]


def test_symbols_may_look_like_anything() -> None:
    found = lld(
        "            1000             1000       10     4 .data",
        "            1000             1000       10     4         a.o:(.data)",
        "            1000             1000       10     1                 b.o:(.data)",
    )
    assert [section.object for section in found.sections] == ["a.o"]


# --- what is asked for, and damage ------------------------------------------------------------------------------------


def test_only_the_output_sections_that_are_wanted_are_kept() -> None:
    found = read_linker_map((MAPS / "lld-64.map").read_bytes(), "a.map", {".tbss"})
    assert {section.output_section for section in found.sections} == {".tbss"}
    assert ".data" in {output.name for output in found.outputs}


def test_lines_of_no_known_shape_are_counted_in_a_note() -> None:
    result = lld(
        "            1000             1000       10     4 .data", "rubbish", "  zz", "            1000             1000"
    )
    (note,) = result.notes
    assert (note.slug, note.subject) == ("linker-map-unknown-lines", "a.map")
    assert note.detail.startswith("3 lines ")
    result = bfd(".data           0x4000       0x10\n .data          0x40zz        0x4 a.o\n")
    assert [note.slug for note in result.notes] == ["linker-map-unknown-lines"]


def test_what_reaches_beyond_all_addresses_is_no_entry() -> None:
    found = bfd(".data           0x4000       0x10\n .data          0xffffffffffffffff        0x4 a.o\n")
    assert (found.sections, [note.slug for note in found.notes]) == ((), ["linker-map-unknown-lines"])


def test_a_last_line_without_an_end_is_noted() -> None:
    found = bfd(".data           0x4000       0x10\n .data          0x4000        0x4 a.o")
    assert [note.slug for note in found.notes] == ["linker-map-truncated"]
    assert found.sections == (PlacedSection(0x4000, 4, ".data", ".data", "a.o", None),)


@pytest.mark.parametrize(
    ("text", "cause", "offset"),
    [
        ("", "the file is empty", None),
        ("\x7fELF", "not a map of GNU ld, gold, lld or mold", 0),
        ("# Path: a.out\n# Arch: x86_64\n", "not a map of GNU ld, gold, lld or mold", 0),
        (LLD_START, "a map of lld that places no section", len(LLD_START)),
    ],
)
def test_what_is_no_map_is_refused(text: str, cause: str, offset: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert (caught.value.file, caught.value.cause, caught.value.offset) == ("a.map", cause, offset)
