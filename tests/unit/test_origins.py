"""From which object or source file each byte of writable memory came: sums add up to the sections."""

import re
from collections import Counter
from pathlib import Path

import pytest

from footprint.elf.contents import SectionKind, read_contents
from footprint.elf.image import read_image
from footprint.elf.linker_map import read_linker_map
from footprint.elf.origins import ByteOrigin, Origins
from footprint.elf.selection import EVERYTHING, Selection, name_pattern
from footprint.errors import UsageError
from tests.elfwriter import (
    ET_REL,
    RW,
    SHN_ABS,
    SHN_COMMON,
    SHT_NOBITS,
    STB_LOCAL,
    STT_FILE,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Sym,
    write,
)

MAPS = Path(__file__).parents[1] / "corpus" / "linker_maps"
SECOND = ByteOrigin("libsecond.a", "second.o")
STATIC = "second_static_with_a_name_too_long_for_a_column"
of_each_linker = pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])


def in_corpus(name: str, map_name: str | None = None, selection: Selection = EVERYTHING) -> Origins:
    image = read_image((MAPS / f"{name}.so").read_bytes(), f"{name}.so")
    linker_map = read_linker_map((MAPS / f"{map_name or name}.map").read_bytes(), f"{map_name or name}.map")
    return Origins(image, read_contents(image), (image.file, None), linker_map).selected(selection)


def unmapped(file: ElfFile, itself: tuple[str, str | None] = ("a.o", None)) -> Origins:
    image = read_image(write(file), "a file")
    return Origins(image, read_contents(image), itself)


def by_variable(result: Origins) -> dict[str, ByteOrigin]:
    return {
        variable.name: result.of(section, variable)
        for section in result.sections
        for variable in section.contents.variables
    }


def by_label(result: Origins) -> dict[str, int]:
    """Add up by origin, checked to be all there is."""
    sums: Counter[str] = Counter()
    for section in result.sections:
        shares = result.shares(section)
        assert sum(share.size_bytes for share in shares.values()) == section.contents.size_bytes
        sums.update({origin.label: share.size_bytes for origin, share in shares.items()})
    return dict(sums)


# --- by the map -------------------------------------------------------------------------------------------------------


@of_each_linker
@pytest.mark.parametrize("bits", ["64", "32"])
def test_variables_come_from_the_object_that_they_are_named_after(linker: str, bits: str) -> None:
    result = in_corpus(f"{linker}-{bits}")
    # mold names the entries of its global offset table too: first_bss$got.
    all_named = by_variable(result)
    named = {name: all_named[name] for name in all_named if re.fullmatch("(?:first|second)_[a-z_]+", name)}
    assert len(named) == 11
    for name, origin in named.items():
        assert (origin.object, origin.member) == (("first.o", None) if name.startswith("first") else SECOND[:2])
    assert named["first_static"].unit == "first.c"
    assert named[STATIC].unit == "second.c"
    assert named["first_data"].unit is None
    assert list(result.notes()) == []


@of_each_linker
def test_the_sums_of_objects_are_those_of_their_sections(linker: str) -> None:
    sums = by_label(in_corpus(f"{linker}-64"))
    assert sums["first.o"] == 192
    assert sums["libsecond.a(second.o)"] == 435
    assert set(sums) == {
        "first.o",
        "libsecond.a(second.o)",
        "[no object: fill]",
        "[no object: made by the linker]",
    }


def test_the_map_of_another_link_attributes_nothing() -> None:
    found = in_corpus("bfd-64", "lld-64")
    sums = by_label(found)
    assert set(sums) <= {"[no object: the map is of another link]", "first.o", "[no object: made by the linker]"}
    (note,) = found.notes()
    assert note.slug == "linker-map-differs"
    assert ".data" in note.detail


def test_a_section_that_the_map_has_twice_is_not_told() -> None:
    text = "  VMA  LMA  Size Align Out     In      Symbol\n" + "".join(
        f"    0    0     8     4 .data\n    0    0     8     4         {name}.o:(.data)\n" for name in "ab"
    )
    file = ElfFile(
        type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(8))], symbols=[Sym("x", At(".data"), 8)]
    )
    image = read_image(write(file), "a.o")
    found = Origins(image, read_contents(image), ("a.o", None), read_linker_map(text.encode(), "a.map"))
    assert by_label(found) == {"[no object: the map is of another link]": 8}


def test_objects_of_link_time_optimisation_are_noted() -> None:
    text = "  VMA  LMA  Size Align Out     In      Symbol\n    0    0     8     4 .data\n"
    text += "    0    0     8     4         /tmp/cc1.ltrans0.ltrans.o:(.data)\n"
    file = ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(8))])
    image = read_image(write(file), "a.o")
    found = Origins(image, read_contents(image), ("a.o", None), read_linker_map(text.encode(), "a.map"))
    assert [note.slug for note in found.notes()] == ["linker-map-lto"]


def test_a_variable_where_the_map_has_nothing_is_named_so() -> None:
    text = "  VMA  LMA  Size Align Out     In      Symbol\n    0    0    18     4 .data\n"
    text += "    0    0     8     4         a.o:(.data)\n"
    symbols = [Sym("x", At(".data"), 8), Sym("y", At(".data", 8), 8)]
    file = ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(24))], symbols=symbols)
    image = read_image(write(file), "a.o")
    found = Origins(image, read_contents(image), ("a.o", None), read_linker_map(text.encode(), "a.map"))
    assert by_label(found) == {"a.o": 8, "[no object: not in the map]": 8, "[no object: fill]": 8}


# --- without a map ----------------------------------------------------------------------------------------------------


def source(name: str) -> Sym:
    return Sym(name, type=STT_FILE, binding=STB_LOCAL, section=SHN_ABS)


def test_an_object_is_itself_where_all_of_it_comes_from() -> None:
    sections = [Section(".data", flags=RW, data=bytes(24)), Section(".bss", SHT_NOBITS, RW, size=8)]
    symbols = [source("a.c"), Sym("x", At(".data"), 8), Sym("common", 8, 16, section=SHN_COMMON)]
    found = unmapped(ElfFile(type=ET_REL, sections=sections, symbols=symbols), ("lib.a", "a.o"))
    assert by_label(found) == {"lib.a(a.o)": 48}
    assert by_variable(found) == {name: ByteOrigin("lib.a", "a.o", "a.c") for name in ("x", "common")}


def test_symbol_tables_tell_the_source_files_of_local_variables() -> None:
    sections = [
        Section(".data", flags=RW, data=b"\1" * 40),
        Section(".tdata", flags=TLS, data=bytes(8)),
        Section(".bss", SHT_NOBITS, RW, size=16),
    ]
    symbols = [
        Sym("orphan", At(".data"), 8, binding=STB_LOCAL),
        source("a.c"),
        Sym("x", At(".data", 8), 8, binding=STB_LOCAL),
        Sym("thread", At(".tdata"), 8, type=STT_TLS, binding=STB_LOCAL),
        source("b.c"),
        Sym("y", At(".data", 16), 8, binding=STB_LOCAL),
        Sym("_DYNAMIC", At(".bss"), 8, binding=STB_LOCAL),
        Sym("z", At(".data", 24), 8),
    ]
    found = unmapped(ElfFile(sections=sections, symbols=symbols))
    assert by_variable(found)["thread"] == ByteOrigin(unit="a.c")
    assert by_label(found) == {
        "[no source file: not in the symbol table]": 16,
        "[no source file: not local]": 8,
        "a.c": 16,
        "b.c": 8,
        "[no symbol]": 16,
    }


# --- filters ----------------------------------------------------------------------------------------------------------


def names(selection: Selection) -> set[str]:
    return {name for name in by_variable(in_corpus("lld-64", selection=selection)) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(kinds=frozenset({SectionKind.TLS})), {"first_tls", "first_tbss"}),
        (Selection(is_local=True), {"first_static", STATIC}),
        (Selection(least_bytes=80), {"first_bss", "second_common"}),
        (Selection(pattern=name_pattern("^first_b|relro$")), {"first_bss", "first_relro"}),
        (
            Selection(frozenset({SectionKind.DATA}), is_local=False, least_bytes=12, pattern=name_pattern("second")),
            {"second_data", "second_aligned"},
        ),
    ],
    ids=["kind", "local", "size", "name", "all of them"],
)
def test_filters_leave_what_was_asked_for(selection: Selection, expected: set[str]) -> None:
    assert names(selection) == expected


def test_what_filters_leave_out_stays_in_the_sums() -> None:
    sums = by_label(in_corpus("lld-64", selection=Selection(least_bytes=80)))
    everything = by_label(in_corpus("lld-64"))
    assert sums["first.o"] == 80
    assert sums["libsecond.a(second.o)"] == 400
    assert set(sums) == {"first.o", "libsecond.a(second.o)", "[not selected]"}
    assert sum(sums.values()) == sum(everything.values())


def test_a_name_may_be_found_as_it_is_shown() -> None:
    file = ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], symbols=[Sym("_ZN3foo3barE", At(".data"), 8)])
    contents = read_contents(read_image(write(file), "a file"))
    for pattern, count in (("^foo::bar$", 1), ("3bar", 1), ("baz", 0)):
        (section,) = Selection(pattern=name_pattern(pattern)).of(contents).sections
        assert len(section.variables) == count


@pytest.mark.parametrize("pattern", ["(", "a" * 5000, "a{99999999999}"])
def test_what_is_no_pattern_is_wrong_use(pattern: str) -> None:
    with pytest.raises(UsageError):
        name_pattern(pattern)
