"""What the writable sections of a file hold: every byte has one owner, a variable or a cause."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from footprint.elf.contents import Contents, Residue, ResidueCause, SectionContents, SectionKind, read_contents
from footprint.elf.image import read_image
from footprint.elf.symbols import Symbol
from footprint.errors import InputError
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    EM_AARCH64,
    EM_PPC64,
    ET_DYN,
    ET_EXEC,
    ET_REL,
    PF_R,
    PF_W,
    PT_GNU_RELRO,
    PT_LOAD,
    RO,
    RW,
    RX,
    SHN_COMMON,
    SHT_DYNAMIC,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_PROGBITS,
    STB_GLOBAL,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_FUNC,
    STT_NOTYPE,
    STT_SECTION,
    STT_TLS,
    TLS,
    At,
    ElfFile,
    Section,
    Segment,
    Sym,
    patch,
    write,
)

in_an_object_and_linked = pytest.mark.parametrize("elf_type", [ET_REL, ET_DYN, ET_EXEC], ids=["object", "dyn", "exec"])
SHT_PREINIT_ARRAY = 16


def contents(file: ElfFile | bytes) -> Contents:
    return read_contents(read_image(file if isinstance(file, bytes) else write(file), "libdemo.so"))


def section(file: ElfFile | bytes, name: str) -> SectionContents:
    """Return the contents of the one section of a name, their sum checked."""
    (one,) = [each for each in contents(file).sections if each.section.name == name]
    assert one.named_bytes + sum(one.residue_bytes.values()) == one.size_bytes
    return one


def owners(section_: SectionContents) -> list[tuple[int, int, str]]:
    """Return each range of a section with its owner: the name of a variable, or a cause in brackets."""
    return [
        (start, end, owner.name if isinstance(owner, Symbol) else owner.label)
        for start, end, owner in section_.ranges.pieces
    ]


def data(size: int, *symbols: Sym, fill: bytes = b"\1", align: int = 16) -> SectionContents:
    """Return the contents of a .data of so many bytes with some symbols; a last symbol elsewhere makes a .symtab."""
    sections = [Section(".data", flags=RW, data=fill * size, align=align)]
    return section(ElfFile(sections=sections, symbols=[*symbols, Sym("elsewhere")]), ".data")


def bss(size: int, *symbols: Sym, align: int = 16) -> SectionContents:
    sections = [Section(".bss", SHT_NOBITS, RW, size=size, align=align)]
    return section(ElfFile(sections=sections, symbols=[*symbols, Sym("elsewhere")]), ".bss")


def in_data(name: str, offset: int, size: int, binding: int = STB_GLOBAL) -> Sym:
    return Sym(name, At(".data", offset), size, binding=binding)


def in_bss(name: str, offset: int, size: int) -> Sym:
    return Sym(name, At(".bss", offset), size)


# --- variables --------------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
@in_an_object_and_linked
def test_a_section_is_cut_among_its_variables(elf_type: int, kind: dict[str, Any]) -> None:
    sections = [Section(".rodata", flags=RO, data=bytes(7)), Section(".data", flags=RW, data=bytes(40), align=8)]
    symbols = [in_data("second", 24, 16), in_data("first", 0, 24)]
    part = section(ElfFile(**kind, type=elf_type, sections=sections, symbols=symbols), ".data")
    assert owners(part) == [(0, 24, "first"), (24, 40, "second")]
    found = [(each.name, each.aliases, each.offset, each.size_bytes, each.binding) for each in part.variables]
    assert found == [
        ("first", (), 0, 24, STB_GLOBAL),
        ("second", (), 24, 16, STB_GLOBAL),
    ]
    assert (part.named_bytes, part.residue_bytes, part.lost_bytes) == (40, {}, 0)


def test_copies_at_different_places_are_variables_of_their_own() -> None:
    part = data(12, *(in_data("NULL_XACTION", 4 * number, 4, STB_LOCAL) for number in range(3)))
    assert [(variable.name, variable.aliases, variable.offset) for variable in part.variables] == [
        ("NULL_XACTION", (), 0),
        ("NULL_XACTION", (), 4),
        ("NULL_XACTION", (), 8),
    ]
    assert part.named_bytes == 12


def test_a_section_lists_only_its_own_variables() -> None:
    sections = [Section(".data", flags=RW, data=bytes(8)), Section(".bss", SHT_NOBITS, RW, size=8)]
    found = contents(ElfFile(sections=sections, symbols=[in_data("table", 0, 8), in_bss("zeros", 0, 8)]))
    listed = {one.section.name: [variable.name for variable in one.variables] for one in found.sections}
    assert listed == {".data": ["table"], ".bss": ["zeros"]}


def test_sections_and_files_as_symbols_name_no_bytes() -> None:
    left_out = [Sym(name, At(".data"), 16, kind, STB_LOCAL) for name, kind in (("", STT_SECTION), ("a.c", STT_FILE))]
    one = data(16, *left_out)
    assert (one.variables, owners(one)) == ((), [(0, 16, "[no symbol]")])


@pytest.mark.parametrize(
    ("section_of", "expected"),
    [
        pytest.param(
            lambda: data(16, Sym("trampoline", At(".data"), 16, STT_FUNC)),
            [(0, 16, "trampoline")],
            id="a function in a writable section owns its bytes",
        ),
        pytest.param(lambda: bss(16, in_bss("end", 0, 16)), [(0, 16, "end")], id="a variable may be named like a mark"),
        pytest.param(
            lambda: bss(48, in_bss("a", 0, 36)),
            [(0, 36, "a"), (36, 48, "[padding]")],
            id="zeros up to the alignment of the section at its end are padding",
        ),
        pytest.param(
            # GNU ld ends .bss at a multiple of 8, whatever the alignment of the section: 2,188 bytes become 2,192.
            lambda: bss(2192, in_bss("a", 0, 2188), align=32),
            [(0, 2188, "a"), (2188, 2192, "[padding]")],
            id="the few bytes by which a linker rounds the end of bss are padding",
        ),
    ],
)
def test_who_owns_the_bytes_of_a_section(
    section_of: Callable[[], SectionContents], expected: list[tuple[int, int, str]]
) -> None:
    assert owners(section_of()) == expected


def test_a_name_that_is_not_text_is_kept_as_it_is() -> None:
    assert [variable.name for variable in data(16, in_data("caf\udce9", 0, 16)).variables] == ["caf\udce9"]


# --- two names of one variable ----------------------------------------------------------------------------------------


def test_two_names_of_the_same_bytes_are_one_variable() -> None:
    one = data(16, in_data("counters", 0, 16), in_data("counters_alias", 0, 16))
    assert [(variable.name, variable.aliases) for variable in one.variables] == [("counters", ("counters_alias",))]
    assert (one.named_bytes, one.lost_bytes) == (16, 0)


@pytest.mark.parametrize("strong", [STB_GLOBAL, STB_GNU_UNIQUE])
def test_the_global_name_comes_first_then_the_weak_then_the_local(strong: int) -> None:
    bindings = {"local": STB_LOCAL, "a_weak_one": STB_WEAK, "z_the_global_one": strong}
    (variable,) = data(16, *(in_data(name, 0, 16, binding) for name, binding in bindings.items())).variables
    assert (variable.name, variable.aliases, variable.binding) == ("z_the_global_one", ("a_weak_one", "local"), strong)


def test_of_names_of_one_binding_the_shorter_comes_first_then_the_alphabet_decides() -> None:
    (variable,) = data(16, *(in_data(name, 0, 16) for name in ("aaaa", "zz", "b", "ab"))).variables
    assert (variable.name, variable.aliases) == ("b", ("ab", "zz", "aaaa"))


def test_a_name_given_twice_is_no_alias_of_itself() -> None:
    (variable,) = data(16, in_data("table", 0, 16, STB_LOCAL), in_data("table", 0, 16, STB_LOCAL)).variables
    assert (variable.name, variable.aliases) == ("table", ())


# --- symbols that overlap ---------------------------------------------------------------------------------------------


def test_of_two_sizes_at_one_place_the_longer_owns_the_bytes_and_the_loss_is_counted() -> None:
    one = data(16, in_data("first_field", 0, 4), in_data("whole", 0, 16))
    assert owners(one) == [(0, 16, "whole")]
    assert [variable.name for variable in one.variables] == ["whole", "first_field"]
    assert one.lost_bytes == 4


def test_a_symbol_inside_another_is_listed_and_owns_nothing() -> None:
    one = data(16, in_data("outer", 0, 16), in_data("inner", 4, 4))
    assert owners(one) == [(0, 16, "outer")]
    assert (one.named_bytes, one.lost_bytes) == (16, 4)


def test_of_two_symbols_that_overlap_the_first_keeps_its_bytes() -> None:
    one = data(16, in_data("first", 0, 12), in_data("second", 8, 8))
    assert owners(one) == [(0, 12, "first"), (12, 16, "second")]
    assert one.lost_bytes == 4


def test_a_symbol_that_reaches_beyond_its_section_owns_what_is_there() -> None:
    one = data(16, in_data("too_long", 8, 1 << 40))
    assert owners(one) == [(0, 8, "[no symbol]"), (8, 16, "too_long")]
    assert one.variables[0].size_bytes == 1 << 40


# --- symbols that lie elsewhere than they say -------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-1, 16, 17, -0x1000, 1 << 40])
def test_a_symbol_that_does_not_lie_in_the_section_it_names_is_counted_as_stray(offset: int) -> None:
    sections = [Section(".data", flags=RW, data=bytes(16), addr=0x2000)]
    found = contents(ElfFile(sections=sections, symbols=[in_data("astray", offset, 4), in_data("table", 0, 16)]))
    assert found.stray_count == 1
    assert [variable.name for variable in found.sections[0].variables] == ["table"]


def test_two_names_of_one_stray_place_are_two_strays() -> None:
    sections = [Section(".data", flags=RW, data=bytes(16), addr=0x2000)]
    assert contents(ElfFile(sections=sections, symbols=[in_data("a", 99, 4), in_data("b", 99, 4)])).stray_count == 2


def test_a_label_at_the_end_of_a_section_is_not_stray() -> None:
    sections = [Section(".data", flags=RW, data=bytes(16))]
    found = contents(ElfFile(sections=sections, symbols=[in_data("end_of_table", 16, 0), in_data("table", 0, 16)]))
    assert found.stray_count == 0
    assert owners(found.sections[0]) == [(0, 16, "table")]


def test_the_mark_before_an_aligned_bss_is_not_stray() -> None:
    # As in libXrender.so.1.3.0: ld sets __bss_start before it aligns .bss, and says that it lies in .bss.
    sections = [Section(".data", flags=RW, data=bytes(7)), Section(".bss", SHT_NOBITS, RW, size=16, align=16)]
    mark = Sym("__bss_start", At(".data", 7), 0, STT_NOTYPE, section=".bss")
    assert contents(ElfFile(sections=sections, symbols=[mark])).stray_count == 0


# --- symbols without size ---------------------------------------------------------------------------------------------


def test_a_symbol_without_size_owns_nothing_and_names_the_cause_of_what_follows_it() -> None:
    one = data(64, in_data("unsized", 0, 0), in_data("sized", 48, 16))
    assert owners(one) == [(0, 48, "[symbol without size: unsized]"), (48, 64, "sized")]
    assert [(variable.name, variable.size_bytes) for variable in one.variables] == [("unsized", 0), ("sized", 16)]
    assert one.residue_bytes == {ResidueCause.UNSIZED: 48}


def test_a_symbol_without_size_reaches_to_the_next_one() -> None:
    one = data(48, in_data("first", 0, 0), in_data("second", 16, 0), in_data("third", 40, 0))
    causes = ["[symbol without size: first]", "[symbol without size: second]", "[symbol without size: third]"]
    assert owners(one) == [(0, 16, causes[0]), (16, 40, causes[1]), (40, 48, causes[2])]


def test_what_stands_before_a_symbol_without_size_has_its_own_cause() -> None:
    one = data(32, in_data("sized", 0, 5), in_data("unsized", 16, 0))
    assert owners(one) == [(0, 5, "sized"), (5, 16, "[no symbol]"), (16, 32, "[symbol without size: unsized]")]


def test_a_symbol_without_size_within_a_variable_takes_nothing_from_it() -> None:
    one = data(16, in_data("table", 0, 16), in_data("start_of_table", 0, 0), in_data("middle_of_table", 8, 0))
    assert owners(one) == [(0, 16, "table")]
    assert one.lost_bytes == 0


def test_two_names_without_size_at_one_place_are_one_label() -> None:
    one = data(16, in_data("a_label", 0, 0), in_data("label", 0, 0))
    assert owners(one) == [(0, 16, "[symbol without size: label]")]
    assert [(variable.name, variable.aliases) for variable in one.variables] == [("label", ("a_label",))]


@pytest.mark.parametrize("name", ["$d", "$d.realdata", "$x", ".L0", ".LC17", ""])
def test_mapping_symbols_and_local_labels_name_nothing(name: str) -> None:
    one = data(16, Sym(name, At(".data"), 0, STT_NOTYPE, STB_LOCAL))
    assert (one.variables, owners(one)) == ((), [(0, 16, "[no symbol]")])


@pytest.mark.parametrize("other", ["$d", ".L0", ""])
def test_a_label_at_the_place_of_a_mapping_symbol_counts(other: str) -> None:
    # An assembler for ARM writes `$d` wherever data begin, and so where the first label of .data stands.
    labels = [Sym(name, At(".data"), 0, STT_NOTYPE, STB_LOCAL) for name in (other, "table")]
    one = data(16, *labels)
    assert owners(one) == [(0, 16, "[symbol without size: table]")]
    assert [variable.name for variable in one.variables] == ["table"]


@pytest.mark.parametrize("name", ["__bss_start", "_edata", "_end", "end", "__data_start", "data_start", "__TMC_END__"])
def test_the_marks_of_linkers_name_a_place_and_no_bytes(name: str) -> None:
    one = bss(16, Sym(name, At(".bss"), 0, STT_NOTYPE))
    assert (one.variables, owners(one)) == ((), [(0, 16, "[no symbol]")])


# --- COMMON -----------------------------------------------------------------------------------------------------------

TENTATIVE = [Sym("small", 4, 4, section=SHN_COMMON), Sym("large", 64, 1000, section=SHN_COMMON)]


@in_all_classes_and_orders
def test_the_common_variables_of_an_object_have_a_section_of_their_own_the_largest_first(kind: dict[str, Any]) -> None:
    one = section(ElfFile(**kind, type=ET_REL, symbols=TENTATIVE), "COMMON")
    assert owners(one) == [(0, 1000, "large"), (1000, 1004, "small")]
    assert (one.section.index, one.kind, one.size_bytes) == (-1, SectionKind.BSS, 1004)


def test_in_a_linked_file_there_is_no_common_section() -> None:
    sections = [Section(".bss", SHT_NOBITS, RW, size=1004, align=64)]
    found = contents(ElfFile(sections=sections, symbols=[*TENTATIVE, in_bss("large", 0, 1000)]))
    assert [one.section.name for one in found.sections] == [".bss"]


def test_common_variables_without_size_make_no_section() -> None:
    assert contents(ElfFile(type=ET_REL, symbols=[Sym("empty", 1, 0, section=SHN_COMMON)])).sections == ()


def test_a_common_variable_of_each_thread_is_thread_local() -> None:
    # As `.tls_common counter, 4, 4` makes it.
    found = contents(ElfFile(type=ET_REL, symbols=[Sym("counter", 4, 4, STT_TLS, section=SHN_COMMON)]))
    assert [(one.kind, one.size_bytes) for one in found.sections] == [(SectionKind.TLS, 4)]


# --- thread-local variables -------------------------------------------------------------------------------------------

THREADED = ElfFile(
    sections=[
        Section(".tdata", flags=TLS, data=bytes(16), align=16),
        Section(".tbss", SHT_NOBITS, TLS, size=4096, align=16),
        Section(".data.rel.ro", flags=RW, data=bytes(32), align=16),
        Section(".data", flags=RW, data=bytes(64), align=16),
    ],
    symbols=[
        Sym("tdata_first", At(".tdata"), 16, STT_TLS),
        Sym("tbss_large", At(".tbss"), 4096, STT_TLS),
        Sym("table", At(".data.rel.ro"), 32),
        Sym("after", At(".data"), 64),
    ],
)


@in_all_classes_and_orders
@in_an_object_and_linked
def test_thread_local_variables_are_found_by_their_offset_in_the_block_of_a_thread(
    elf_type: int, kind: dict[str, Any]
) -> None:
    file = replace(THREADED, **kind, type=elf_type)
    assert owners(section(file, ".tdata")) == [(0, 16, "tdata_first")]
    assert owners(section(file, ".tbss")) == [(0, 4096, "tbss_large")]
    assert {one.section.name for one in contents(file).sections if one.kind is SectionKind.TLS} == {".tdata", ".tbss"}
    assert contents(file).stray_count == 0


@in_all_classes_and_orders
def test_tbss_takes_no_bytes_of_the_sections_whose_addresses_it_overlaps(kind: dict[str, Any]) -> None:
    found = {one.section.name: one for one in contents(replace(THREADED, **kind)).sections}
    tbss, table, after = (found[name] for name in (".tbss", ".data.rel.ro", ".data"))
    assert tbss.section.vaddr == table.section.vaddr
    assert after.section.vaddr < tbss.section.vaddr + tbss.size_bytes
    assert (owners(table), owners(after)) == ([(0, 32, "table")], [(0, 64, "after")])
    assert (table.size_bytes, after.size_bytes, table.lost_bytes, after.lost_bytes) == (32, 64, 0, 0)


def test_an_offset_of_a_thread_local_variable_is_no_address_even_where_it_could_be_one() -> None:
    # The variable at offset 16 of the block, where the file has its .data at address 16.
    sections = [
        Section(".data", flags=RW, data=bytes(64), addr=16),
        Section(".tbss", SHT_NOBITS, TLS, size=64, addr=0x1000),
    ]
    segments = [Segment(7, PF_R, [".tbss"])]
    file = ElfFile(sections=sections, segments=segments, symbols=[Sym("per_thread", 16, 16, STT_TLS, section=".tbss")])
    assert owners(section(file, ".data")) == [(0, 64, "[no symbol]")]
    assert (16, 32, "per_thread") in owners(section(file, ".tbss"))


# --- what linkers make ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "section_type"),
    [
        (".dynamic", SHT_DYNAMIC),
        (".my_dynamic", SHT_DYNAMIC),
        (".init_array", SHT_INIT_ARRAY),
        (".init_array.00100", SHT_INIT_ARRAY),
        (".fini_array", SHT_FINI_ARRAY),
        (".preinit_array", SHT_PREINIT_ARRAY),
        (".got", SHT_PROGBITS),
        (".got.plt", SHT_PROGBITS),
        (".ctors", SHT_PROGBITS),
        (".dtors", SHT_PROGBITS),
        (".jcr", SHT_PROGBITS),
        (".tm_clone_table", SHT_PROGBITS),
        (".plt", SHT_NOBITS),
    ],
)
@pytest.mark.parametrize("symbols", [[], [Sym("elsewhere")]], ids=["stripped", "symtab"])
def test_a_table_of_the_linker_says_that_it_is_one(name: str, section_type: int, symbols: list[Sym]) -> None:
    size = 32 if section_type == SHT_NOBITS else 0
    table = Section(name, section_type, RW, b"\1" * (32 - size), size, align=8)
    assert owners(section(ElfFile(sections=[table], symbols=symbols), name)) == [(0, 32, "[linker table]")]


def test_a_variable_in_a_table_of_the_linker_owns_its_bytes() -> None:
    got = Section(".got", flags=RW, data=bytes(32), align=8)
    symbols = [Sym("handler", At(".got", 8), 8), Sym("label", At(".got", 24), 0)]
    one = section(ElfFile(sections=[got], symbols=symbols), ".got")
    assert owners(one) == [(0, 8, "[linker table]"), (8, 16, "handler"), (16, 32, "[linker table]")]


def test_the_function_descriptors_of_powerpc_are_no_variables() -> None:
    # The symbol of a function lies in .opd (ELFv1) and has the size of its code.
    sections = [Section(".text", flags=RX, data=bytes(400)), Section(".opd", flags=RW, data=bytes(48), align=8)]
    symbols = [Sym("run", At(".opd"), 400, STT_FUNC), Sym("a_table", At(".opd", 24), 24)]
    one = section(ElfFile(machine=EM_PPC64, order="big", sections=sections, symbols=symbols), ".opd")
    assert owners(one) == [(0, 24, "[linker table]"), (24, 48, "a_table")]
    assert [variable.name for variable in one.variables] == ["a_table"]


# --- padding ----------------------------------------------------------------------------------------------------------


def test_zeros_that_align_what_follows_are_padding() -> None:
    one = data(64, in_data("a", 0, 20), in_data("b", 32, 32), fill=b"\0", align=32)
    assert owners(one) == [(0, 20, "a"), (20, 32, "[padding]"), (32, 64, "b")]
    assert one.residue_bytes == {ResidueCause.PADDING: 12}


def test_bytes_that_are_not_zero_are_no_padding() -> None:
    one = data(64, in_data("a", 0, 20), in_data("b", 32, 32), fill=b"\1", align=32)
    assert owners(one) == [(0, 20, "a"), (20, 32, "[no symbol]"), (32, 64, "b")]


def test_a_gap_in_bss_that_aligns_what_follows_is_padding() -> None:
    one = bss(1760, in_bss("ConfigTab", 0, 452), in_bss("priv_history", 480, 1280), align=32)
    assert owners(one) == [(0, 452, "ConfigTab"), (452, 480, "[padding]"), (480, 1760, "priv_history")]


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (20, 28, "28 is a multiple of 4, and 20 was one already"),
        (16, 32, "16 was aligned as well as anything in the section can be"),
        (8, 32, "more than any alignment in the section asks for"),
    ],
)
def test_zeros_that_align_nothing_are_no_padding(start: int, end: int, why: str) -> None:
    one = bss(64, in_bss("a", 0, start), in_bss("b", end, 64 - end))
    assert (start, end, "[no symbol]") in owners(one), why


@pytest.mark.parametrize("align", [0, 1])
def test_a_section_that_needs_no_alignment_has_no_padding(align: int) -> None:
    sections = [Section(".bss", SHT_NOBITS, RW, size=32)]
    file = write(ElfFile(sections=sections, symbols=[in_bss("a", 0, 12), in_bss("b", 16, 16)]))
    assert (12, 16, "[no symbol]") in owners(section(patch(file, "sh_addralign", align, ".bss"), ".bss"))


def test_padding_in_a_section_that_is_cut_off_is_refused_as_its_bytes_cannot_be_looked_at() -> None:
    sections = [Section(".data", flags=RW, data=bytes(64), align=32)]
    file = write(ElfFile(sections=sections, symbols=[in_data("a", 0, 20), in_data("b", 32, 32)]))
    with pytest.raises(
        InputError, match=r"libdemo\.so: offset 0x[0-9a-f]+: section 1 of .* beyond the end of the file"
    ):
        contents(patch(file, "sh_offset", len(file), ".data"))


# --- files that name little or nothing --------------------------------------------------------------------------------

PLAIN = ElfFile(sections=[Section(".data", flags=RW, data=b"\1" * 16), Section(".bss", SHT_NOBITS, RW, size=32)])


@pytest.mark.parametrize(
    ("file", "source", "count", "cause"),
    [
        (replace(PLAIN, symbols=[Sym("elsewhere")]), ".symtab", 2, ResidueCause.NO_SYMBOL),
        (replace(PLAIN, dynamic_symbols=[Sym("elsewhere")]), ".dynsym", 2, ResidueCause.STRIPPED),
        (PLAIN, None, 0, ResidueCause.STRIPPED),
    ],
    ids=["symtab", "dynsym", "none"],
)
def test_the_cause_tells_whether_better_symbols_could_name_it(
    file: ElfFile, source: str | None, count: int, cause: ResidueCause
) -> None:
    found = contents(file)
    assert (found.symbols_from, found.symbol_count) == (source, count)
    assert section(file, ".data").residue_bytes == {cause: 16}
    assert section(file, ".bss").residue_bytes == {cause: 32}


def without_section_headers(file: ElfFile) -> bytes:
    out = write(file)
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        out = patch(out, field, 0)
    return out


@in_all_classes_and_orders
def test_without_section_headers_the_segments_tell_how_much_there_is(kind: dict[str, Any]) -> None:
    found = contents(without_section_headers(replace(PLAIN, **kind)))
    assert [(one.section.name, one.kind, one.size_bytes, owners(one)) for one in found.sections] == [
        ("[segment 0]", SectionKind.DATA, 16, [(0, 16, "[no section headers]")]),
        ("[segment 0 beyond the file]", SectionKind.BSS, 32, [(0, 32, "[no section headers]")]),
    ]
    assert (found.symbols_from, found.symbol_count) == (None, 0)


def test_without_section_headers_what_is_beyond_the_file_stands_behind_what_is_in_it() -> None:
    in_file, beyond = contents(without_section_headers(PLAIN)).sections
    assert beyond.section.vaddr == in_file.section.vaddr + 16
    assert (in_file.section.index, beyond.section.index) == (-1, -1)


@pytest.mark.parametrize(
    ("flags", "filesz", "memsz", "sizes"),
    [
        (PF_R, 16, 32, []),
        (PF_R | PF_W, 0, 32, [32]),
        (PF_R | PF_W, 16, 16, [16]),
        (PF_R | PF_W, 0, 0, []),
        (PF_R | PF_W, 16, 1 << 63, [16, (1 << 63) - 16]),
    ],
)
def test_a_segment_has_a_part_in_the_file_and_a_part_beyond_it(
    flags: int, filesz: int, memsz: int, sizes: list[int]
) -> None:
    segments = [Segment(PT_LOAD, flags, offset=0, vaddr=0, filesz=filesz, memsz=memsz)]
    found = contents(without_section_headers(ElfFile(segments=segments)))
    assert [one.size_bytes for one in found.sections] == sizes


def test_the_null_section_alone_says_no_more_of_memory_than_no_section_headers() -> None:
    # A core file with 65,535 segments or more has one section header: the one in which their number stands.
    file = write(replace(PLAIN, extended=True))
    only_null = patch(patch(patch(file, "sh_size", 1, 0), "sh_link", 0, 0), "e_shstrndx", 0)
    assert [one.size_bytes for one in contents(only_null).sections] == [16, 32]


# --- what is writable memory, and of which kind -----------------------------------------------------------------------


def test_sections_that_are_read_only_not_in_memory_or_empty_hold_nothing() -> None:
    sections = [
        Section(".text", flags=RX, data=bytes(8)),
        Section(".rodata", flags=RO, data=bytes(8)),
        Section(".comment", data=bytes(8)),
        Section(".data", flags=RW),
        Section(".bss", SHT_NOBITS, RW),
        Section(".tm", flags=RW, data=bytes(8)),
    ]
    assert [one.section.name for one in contents(ElfFile(sections=sections)).sections] == [".tm"]


@in_an_object_and_linked
@pytest.mark.parametrize(
    ("name", "section_type", "flags", "kind"),
    [
        (".data", SHT_PROGBITS, RW, SectionKind.DATA),
        (".data.many", SHT_PROGBITS, RW, SectionKind.DATA),
        (".bss", SHT_NOBITS, RW, SectionKind.BSS),
        (".noinit", SHT_NOBITS, RW, SectionKind.BSS),
        (".tdata", SHT_PROGBITS, TLS, SectionKind.TLS),
        (".tbss", SHT_NOBITS, TLS, SectionKind.TLS),
    ],
)
def test_type_and_flags_tell_the_kind_not_the_name(
    name: str, section_type: int, flags: int, kind: SectionKind, elf_type: int
) -> None:
    size = 8 if section_type == SHT_NOBITS else 0
    one = Section(name, section_type, flags, bytes(8 - size), size)
    assert section(ElfFile(type=elf_type, sections=[one]), name).kind is kind


@in_all_classes_and_orders
def test_what_the_loader_makes_read_only_is_relro_whatever_its_name(kind: dict[str, Any]) -> None:
    sections = [
        Section(".tdata", flags=TLS, data=bytes(8)),
        Section(".data.rel.ro", flags=RW, data=bytes(8)),
        Section(".got", flags=RW, data=bytes(8)),
        Section(".data", flags=RW, data=bytes(8)),
    ]
    found = contents(ElfFile(**kind, sections=sections, relro=[".tdata", ".data.rel.ro", ".got"])).sections
    assert [(one.section.name, one.kind.value) for one in found] == [
        (".tdata", "tls"),
        (".data.rel.ro", "relro"),
        (".got", "relro"),
        (".data", "data"),
    ]


@pytest.mark.parametrize(
    ("vaddr", "kind"), [(0x1FF8, SectionKind.RELRO), (0x2000, SectionKind.DATA), (0xFF8, SectionKind.DATA)]
)
def test_relro_ends_where_its_segment_ends(vaddr: int, kind: SectionKind) -> None:
    sections = [Section(".somewhere", flags=RW, data=bytes(8), addr=vaddr)]
    segments = [Segment(PT_LOAD, PF_R | PF_W, [1]), Segment(PT_GNU_RELRO, PF_R, vaddr=0x1000, memsz=0x1000)]
    assert section(ElfFile(sections=sections, segments=segments), ".somewhere").kind is kind


def test_a_section_that_only_begins_where_relro_ends_stays_writable() -> None:
    # As the .got.plt of most libraries: its first 3 words are made read-only, the rest is for lazy binding.
    sections = [Section(".got.plt", flags=RW, data=bytes(0x78), addr=0x1FE8)]
    segments = [Segment(PT_LOAD, PF_R | PF_W, [1]), Segment(PT_GNU_RELRO, PF_R, vaddr=0x1000, memsz=0x1000)]
    assert section(ElfFile(sections=sections, segments=segments), ".got.plt").kind is SectionKind.DATA


def test_without_a_relro_segment_nothing_is_relro() -> None:
    sections = [Section(".data.rel.ro", flags=RW, data=bytes(8))]
    assert section(ElfFile(sections=sections), ".data.rel.ro").kind is SectionKind.DATA


@pytest.mark.parametrize("name", [".data.rel.ro", ".data.rel.ro.local", ".data.rel.ro._ZTV3Foo"])
def test_in_an_object_the_name_tells_what_will_be_relro(name: str) -> None:
    assert (
        section(ElfFile(type=ET_REL, sections=[Section(name, flags=RW, data=bytes(8))]), name).kind is SectionKind.RELRO
    )


# --- hostile figures --------------------------------------------------------------------------------------------------


def test_sizes_of_2_to_the_63_are_figures_like_any_other() -> None:
    file = write(ElfFile(sections=[Section(".bss", SHT_NOBITS, RW, size=64)], symbols=[Sym("a", At(".bss"), 1 << 62)]))
    one = section(patch(file, "sh_size", 1 << 63, ".bss"), ".bss")
    assert owners(one) == [(0, 1 << 62, "a"), (1 << 62, 1 << 63, "[no symbol]")]


def test_the_largest_values_and_sizes_that_fit_are_stray_or_cut() -> None:
    most = (1 << 64) - 1
    sections = [Section(".bss", SHT_NOBITS, RW, size=64, addr=0x1000)]
    symbols = [Sym("far", most, most, section=".bss"), Sym("long", At(".bss", 8), most)]
    found = contents(ElfFile(sections=sections, symbols=symbols))
    assert found.stray_count == 1
    assert owners(found.sections[0]) == [(0, 8, "[no symbol]"), (8, 64, "long")]


def test_common_variables_may_add_up_to_more_than_fits_an_address() -> None:
    symbols = [Sym(name, 1, (1 << 64) - 1, section=SHN_COMMON) for name in ("a", "b")]
    assert section(ElfFile(type=ET_REL, symbols=symbols), "COMMON").size_bytes == 2 * ((1 << 64) - 1)


def test_what_no_variable_owns_is_listed_by_its_causes_the_largest_first() -> None:
    one = bss(96, in_bss("a", 0, 12), in_bss("b", 16, 4), in_bss("label", 32, 0), align=16)
    assert owners(one)[1:3] == [(12, 16, "[padding]"), (16, 20, "b")]
    assert list(one.residue_bytes.items()) == [(ResidueCause.UNSIZED, 64), (ResidueCause.PADDING, 16)]


def test_a_cause_stands_in_brackets_so_that_nobody_takes_it_for_a_name() -> None:
    assert Residue(ResidueCause.STRIPPED).label == "[no symbol: stripped]"
    assert Residue(ResidueCause.UNSIZED, "label").label == "[symbol without size: label]"


def test_mapping_symbols_of_aarch64_leave_its_variables_as_they_are() -> None:
    sections = [Section(".data", flags=RW, data=bytes(16), align=8)]
    symbols = [Sym("$d", At(".data"), 0, STT_NOTYPE, STB_LOCAL), in_data("table", 0, 16)]
    one = section(ElfFile(machine=EM_AARCH64, sections=sections, symbols=symbols), ".data")
    assert [variable.name for variable in one.variables] == ["table"]
