"""Which dynamic symbols a file offers, and which its relocations ask for: every way to count, find and name them."""

import contextlib
import struct
import tracemalloc
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.dynamic import zeros_of
from footprint.elf.dynsym import DynamicSymbols, SymbolReference, read_dynamic_symbols
from footprint.elf.image import read_image
from footprint.elf.versions import Version as Wanted
from footprint.errors import InputError
from tests.elfwriter import (
    DT_GNU_HASH,
    DT_HASH,
    DT_JMPREL,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_RELA,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    EM_386,
    EM_ALPHA,
    EM_MIPS,
    EM_PPC,
    EM_S390,
    EM_X86_64,
    ET_EXEC,
    RO,
    RW,
    SHN_ABS,
    SHT_GNU_HASH,
    SHT_HASH,
    SHT_REL,
    SHT_RELA,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_SECTION,
    STT_TLS,
    STV_HIDDEN,
    STV_INTERNAL,
    STV_PROTECTED,
    VERSYM_HIDDEN,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Size,
    Sym,
    Version,
    patch,
    write,
)
from tests.workcount import assert_linear

DT_MIPS_GOTSYM = 0x70000013
STO_MIPS_PLT = 8
R_X86_64_NONE, R_X86_64_64, R_X86_64_COPY, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE = 0, 1, 5, 6, 7, 8
R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC, R_X86_64_IRELATIVE = 16, 17, 18, 36, 37

DATA = Section(".data", flags=RW, data=bytes(64))
KINDS: list[dict[str, Any]] = [
    {"bits": 32, "order": "little", "machine": EM_386},
    {"bits": 32, "order": "big", "machine": EM_PPC},
    {"bits": 64, "order": "little", "machine": EM_X86_64},
    {"bits": 64, "order": "big", "machine": EM_S390},
]
in_all_classes_and_orders = pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: f"{kind['bits']}-bit-{kind['order']}-endian"
)
by_both_hash_tables = pytest.mark.parametrize("gnu_hash", [False, True], ids=["DT_HASH", "DT_GNU_HASH"])


def read(image: bytes) -> DynamicSymbols:
    return read_dynamic_symbols(read_image(image, "libdemo.so"))


def without_sections(image: bytes) -> bytes:
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        image = patch(image, field, 0)
    return image


def file(*symbols: Sym, relocations: Sequence[Rel] = (), **fields: Any) -> bytes:  # noqa: ANN401 # any field of a file
    """Write a library of dynamic symbols and of relocations with addends."""
    tables = [Section(".rela.dyn", SHT_RELA, RO, list(relocations))] if relocations else []
    sections = [*tables, DATA, *fields.pop("sections", ())]
    dynamic = fields.pop("dynamic", [Dyn(DT_SONAME, "libdemo.so")])
    return write(ElfFile(sections=sections, dynamic=dynamic, dynamic_symbols=symbols, **fields))


def asks(name: str, kind: int = R_X86_64_GLOB_DAT) -> Rel:
    return Rel(At(".data"), kind, name, 0)


def asked(image: bytes) -> list[tuple[str, bool, bool]]:
    """Return name, class of calls, and class of copies of each reference."""
    return [(reference.name, reference.is_call, reference.is_copy) for reference in read(image).references]


def gnu_hash_table(first: int, buckets: Sequence[int], chain: Sequence[int] = (), *, bloom_count: int = 1) -> Section:
    """Return a GNU hash table of a 64-bit little-endian file, made of any numbers."""
    head = struct.pack("<4I", len(buckets), first, bloom_count, 0) + bytes(8 * bloom_count)
    numbers = [*buckets, *chain]
    return Section(".gnu.hash", SHT_GNU_HASH, RO, head + struct.pack(f"<{len(numbers)}I", *numbers), align=8)


# --- how many there are, and which can be found -----------------------------------------------------------------------


@in_all_classes_and_orders
@by_both_hash_tables
def test_symbols_are_counted_and_found_without_section_headers(kind: dict[str, Any], *, gnu_hash: bool) -> None:
    symbols = [Sym("imported"), Sym("table", At(".data"), 8), Sym("entry", At(".data", 8), 4, STT_FUNC)]
    found = read(without_sections(file(*symbols, gnu_hash=gnu_hash, **kind)))
    assert found.count == 4
    assert found.defined == {"table": 2, "entry": 3}
    assert (found.several, found.canonical_plt_entries, found.unique) == ({}, frozenset(), frozenset())


@in_all_classes_and_orders
@by_both_hash_tables
def test_the_addresses_of_the_definitions_are_those_of_the_table(kind: dict[str, Any], *, gnu_hash: bool) -> None:
    image = read_image(file(Sym("f", 0x1234, 40, STT_FUNC, STB_WEAK, section=1), gnu_hash=gnu_hash, **kind), "lib.so")
    assert read_dynamic_symbols(image).vaddrs(image) == {0x1234}


@pytest.mark.parametrize("machine", [EM_S390, EM_ALPHA])
def test_two_architectures_have_hash_tables_of_eight_byte_words(machine: int) -> None:
    image = file(Sym("a", 8, section=1), Sym("b", 16, section=1), machine=machine, order="big")
    assert image.count(struct.pack(">4Q", 1, 3, 1, 0)) == 1
    assert read(without_sections(image)).defined == {"a": 1, "b": 2}


def test_the_s390_of_32_bits_has_words_of_four_bytes() -> None:
    image = file(Sym("a", 8, section=1), machine=EM_S390, order="big", bits=32)
    assert read(without_sections(image)).defined == {"a": 1}


def test_the_symbols_that_gnu_ld_counts_as_one_are_those_that_relocations_name() -> None:
    symbols = [Sym("a"), Sym("b"), Sym("c")]
    assert read(without_sections(file(*symbols, gnu_hash=True))).count == 1
    related = without_sections(file(*symbols, relocations=[asks("b")], gnu_hash=True))
    found = read(related)
    assert found.count == 3
    assert [reference.name for reference in found.references] == ["b"]
    assert found.defined == {}


def test_the_section_header_of_the_symbols_tells_their_number_where_it_is_there() -> None:
    image = file(Sym("a"), Sym("b"), Sym("c"), gnu_hash=True)
    assert read(image).count == 4
    assert read(patch(image, "sh_size", 1 << 40, ".dynsym")).count == 1
    assert read(patch(image, "sh_addr", 8, ".dynsym")).count == 1


def test_other_linkers_begin_a_table_without_symbols_at_their_number() -> None:
    image = file(Sym("a"), Sym("b"), sections=[gnu_hash_table(3, [0])])
    found = read(without_sections(image))
    assert (found.count, found.defined) == (3, {})


def test_a_hash_table_without_buckets_finds_nothing() -> None:
    image = file(Sym("a", At(".data")), sections=[gnu_hash_table(1, [])])
    assert read(without_sections(image)).defined == {}


def test_a_definition_before_those_that_are_hashed_cannot_be_found() -> None:
    symbols = [Sym("kept", At(".data")), Sym("shown", At(".data", 8))]
    found = read(file(*symbols, sections=[gnu_hash_table(2, [2], [1])]))
    assert (found.count, found.defined) == (3, {"shown": 2})


def test_the_last_chain_of_several_tells_the_number() -> None:
    # The chains of the buckets are {1, 2}, {3} and {4, 5}; the third bucket is empty.
    table = gnu_hash_table(1, [1, 3, 0, 4], [2, 3, 3, 4, 5])
    found = read(without_sections(file(*(Sym(name, At(".data"), 8) for name in "abcde"), sections=[table])))
    assert found.count == 6
    assert found.defined == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}


def test_the_gnu_hash_table_counts_where_both_are_there() -> None:
    # As DT_HASH would have it, both are found.
    old = Section(".hash.given", SHT_HASH, RO, struct.pack("<6I", 1, 3, 1, 0, 2, 0))
    new = gnu_hash_table(2, [2], [1])
    found = read(file(Sym("a", At(".data")), Sym("b", At(".data")), sections=[old, new]))
    assert found.defined == {"b": 2}


@pytest.mark.parametrize(
    ("table", "cause"),
    [
        (gnu_hash_table(1, [1], [2, 4, 6]), "a chain that does not end"),
        (
            replace(gnu_hash_table(1, [1], [1]), data=struct.pack("<4I", 1 << 30, 1, 1, 0)),
            "it claims 1073741824 buckets",
        ),
        (replace(gnu_hash_table(1, [1], [1]), data=struct.pack("<4I", 1, 1, 1 << 31, 0)), "behind 2147483648 words"),
        (gnu_hash_table(1, [0xFFFFFFFF], [1]), "a chain that does not end"),
        (gnu_hash_table(0xFFFFFFF0, [0xFFFFFFFF], [1]), "a chain that does not end"),
    ],
)
def test_a_damaged_gnu_hash_table_is_an_error_that_says_how(table: Section, cause: str) -> None:
    # Nothing stands behind the table: it is the last that its segment maps.
    image = write(
        ElfFile(
            sections=[DATA, Section(".dynsym"), Section(".dynstr"), table],
            dynamic_symbols=[Sym("a", At(".data"))],
            dynamic=[Dyn(DT_SONAME, "libdemo.so")],
        )
    )
    with pytest.raises(InputError, match=cause) as error:
        read(image)
    assert error.value.file == "libdemo.so"


def test_a_table_that_claims_more_symbols_than_the_file_holds_is_an_error() -> None:
    table = Section(".hash.given", SHT_HASH, RO, struct.pack("<4I", 1, 0x7FFFFFFF, 0, 0))
    with pytest.raises(InputError, match="the table of dynamic symbols of 51539607528 bytes"):
        read(file(Sym("a"), sections=[table]))


def test_a_chain_of_a_million_words_is_walked_once() -> None:
    def chain(count: int) -> bytes:
        table = gnu_hash_table(1, [1], [2] * (count - 1) + [1])
        return without_sections(file(Sym("a", At(".data")), sections=[table]))

    def walk(image: bytes) -> None:
        with pytest.raises(InputError, match="the table of dynamic symbols"):
            read(image)

    assert_linear(chain, walk, 1 << 18)


# --- what can be found of them ----------------------------------------------------------------------------------------


@by_both_hash_tables
@pytest.mark.parametrize(
    ("symbol", "is_found"),
    [
        (Sym("x", At(".data"), 8, STT_OBJECT), True),
        (Sym("x", At(".data"), 8, STT_NOTYPE), True),
        (Sym("x", At(".data"), 8, STT_GNU_IFUNC), True),
        (Sym("x", At(".data"), 0, STT_FUNC, STB_WEAK), True),
        (Sym("x", At(".data"), 8, binding=STB_GNU_UNIQUE), True),
        (Sym("x", At(".data"), 8, visibility=STV_PROTECTED), True),
        (Sym("x", At(".data"), 8, STT_SECTION), False),
        (Sym("x", At(".data"), 8, STT_FILE), False),
        (Sym("x", At(".data"), 8, binding=STB_LOCAL), False),
        (Sym("x", At(".data"), 8, visibility=STV_HIDDEN), False),
        (Sym("x", At(".data"), 8, visibility=STV_INTERNAL), False),
        (Sym("x", 0, section=".data"), False),
        (Sym("x", 0, section=SHN_ABS), True),
        (Sym("x", 0, 8, STT_TLS, section=".data"), True),
        (Sym("x"), False),
    ],
)
def test_what_the_loader_would_bind_to_is_found(symbol: Sym, *, is_found: bool, gnu_hash: bool) -> None:
    found = read(file(symbol, gnu_hash=gnu_hash)).defined
    assert found == ({"x": 1} if is_found else {})


@in_all_classes_and_orders
def test_a_program_without_pic_stands_in_for_functions_whose_address_it_takes(kind: dict[str, Any]) -> None:
    symbols = [Sym("called", type=STT_FUNC), Sym("taken", 0x401000, type=STT_FUNC), Sym("own", At(".data"))]
    found = read(file(*symbols, type=ET_EXEC, **kind))
    assert found.defined == {"taken": 2, "own": 3}
    assert found.canonical_plt_entries == {2}


def test_on_mips_what_is_not_defined_is_a_stub_for_its_first_call_unless_it_says_otherwise() -> None:
    symbols = [Sym("lazy", 0x1000, type=STT_FUNC), Sym("taken", 0x2000, type=STT_FUNC, visibility=STO_MIPS_PLT)]
    found = read(file(*symbols, machine=EM_MIPS, bits=32, order="big"))
    assert found.defined == {"taken": 2}
    assert found.canonical_plt_entries == {2}


def test_unique_definitions_are_told_apart() -> None:
    found = read(file(Sym("u", At(".data"), binding=STB_GNU_UNIQUE), Sym("g", At(".data"))))
    assert found.unique == {"u"}


def test_all_versions_of_a_name_are_there_and_the_last_of_them_is_what_is_told() -> None:
    symbols = [
        Sym("f", 8, 1, section=1, version=2 | VERSYM_HIDDEN),
        Sym("g", 8, 1, section=1, version=2),
        Sym("f", 16, 2, section=1, version=3),
    ]
    image = read_image(file(*symbols, gnu_hash=True, versions=[Version("V1", 2), Version("V2", 3)]), "libdemo.so")
    found = read_dynamic_symbols(image)
    assert found.several == {"f": (1, 3)}
    assert found.defined == {"f": 3, "g": 2}
    assert found.vaddrs(image) == {16, 8}


# --- what relocations ask for -----------------------------------------------------------------------------------------


def test_a_symbol_that_no_relocation_names_is_not_asked_for() -> None:
    assert asked(file(Sym("a"), Sym("b"), relocations=[asks("b")])) == [("b", False, False)]


def test_a_symbol_is_asked_for_once_in_each_class() -> None:
    relocations = [asks("a", R_X86_64_JUMP_SLOT), asks("a"), asks("a", R_X86_64_64), asks("a", R_X86_64_JUMP_SLOT)]
    assert asked(file(Sym("a"), relocations=relocations)) == [("a", False, False), ("a", True, False)]


@pytest.mark.parametrize(
    ("kind", "is_call", "is_copy"),
    [
        (R_X86_64_64, False, False),
        (R_X86_64_GLOB_DAT, False, False),
        (R_X86_64_COPY, False, True),
        (R_X86_64_JUMP_SLOT, True, False),
        (R_X86_64_DTPMOD64, True, False),
        (R_X86_64_DTPOFF64, True, False),
        (R_X86_64_TPOFF64, True, False),
        (R_X86_64_TLSDESC, True, False),
    ],
)
def test_the_type_of_a_relocation_tells_its_class(kind: int, *, is_call: bool, is_copy: bool) -> None:
    assert asked(file(Sym("a"), relocations=[asks("a", kind)])) == [("a", is_call, is_copy)]


@pytest.mark.parametrize("kind", [R_X86_64_NONE, R_X86_64_RELATIVE])
def test_relocations_that_look_nothing_up_ask_for_nothing_whatever_symbol_they_name(kind: int) -> None:
    assert asked(file(Sym("a"), relocations=[asks("a", kind)])) == []


@in_all_classes_and_orders
def test_tables_without_addends_and_that_of_the_plt_are_read_too(kind: dict[str, Any]) -> None:
    tables = [
        Section(".rel.dyn", SHT_REL, RO, [Rel(At(".data"), 1, "a")]),
        Section(".rela.plt", SHT_RELA, RO, [Rel(At(".data"), 1, "b", 0)]),
    ]
    dynamic = [
        Dyn(DT_JMPREL, At(".rela.plt")),
        Dyn(DT_PLTRELSZ, Size(".rela.plt")),
        Dyn(DT_PLTREL, DT_RELA),
        Dyn(DT_RELA, 0),
    ]
    image = file(Sym("a"), Sym("b"), Sym("c"), sections=tables, dynamic=dynamic, **kind)
    assert [reference.name for reference in read(image).references] == ["a", "b"]


@pytest.mark.parametrize(
    "symbol",
    [
        Sym("a", At(".data"), binding=STB_LOCAL),
        Sym("a", At(".data"), visibility=STV_HIDDEN),
        Sym("a", At(".data"), visibility=STV_INTERNAL),
    ],
)
def test_what_is_the_files_own_is_not_looked_for(symbol: Sym) -> None:
    assert asked(file(symbol, relocations=[asks("a")])) == []


def test_a_reference_says_all_that_decides_who_answers_it() -> None:
    symbols = [
        Sym("strong", type=STT_FUNC, version=2),
        Sym("weak", binding=STB_WEAK, version=3 | VERSYM_HIDDEN),
        Sym("own", At(".data"), visibility=STV_PROTECTED, version=0),
    ]
    needs = {"libc.so.6": [Version("GLIBC_2.2.5", 2), Version("GLIBC_2.34", 3 | VERSYM_HIDDEN)]}
    relocations = [asks("strong", R_X86_64_JUMP_SLOT), asks("weak"), asks("own", R_X86_64_64)]
    result = read(file(*symbols, relocations=relocations, needs=needs))
    assert result.references == (
        SymbolReference("strong", Wanted("GLIBC_2.2.5", is_hidden=False), True, False, False, False, False),  # noqa: FBT003 # its columns
        SymbolReference("weak", Wanted("GLIBC_2.34", is_hidden=True), False, False, True, False, False),  # noqa: FBT003 # its columns
        SymbolReference("own", None, False, False, False, True, True),  # noqa: FBT003 # its columns
    )
    assert result.requested == {"strong": (0,), "weak": (1,), "own": (2,)}


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("bits", [32, 64])
def test_on_mips_symbols_with_a_place_in_the_got_are_asked_for_without_relocations(bits: int, order: str) -> None:
    symbols = [Sym("a"), Sym("b"), Sym("c")]
    image = file(*symbols, machine=EM_MIPS, bits=bits, order=order, dynamic=[Dyn(DT_MIPS_GOTSYM, 2)])
    assert asked(image) == [("b", False, False), ("c", False, False)]


def test_a_first_symbol_of_the_got_beyond_all_others_asks_for_nothing() -> None:
    image = file(Sym("a"), machine=EM_MIPS, bits=32, dynamic=[Dyn(DT_MIPS_GOTSYM, 0xFFFFFFFF)])
    assert asked(image) == []


def test_on_other_machines_that_tag_means_nothing() -> None:
    assert asked(file(Sym("a"), dynamic=[Dyn(DT_MIPS_GOTSYM, 1)])) == []


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_file_without_symbols_or_without_their_names_has_none() -> None:
    bare = write(ElfFile(sections=[DATA]))
    assert read(bare).count == 0
    unnamed = file(Sym("a", At(".data")), dynamic=[Dyn(DT_STRTAB, 0)])
    assert (read(unnamed).count, read(unnamed).defined) == (0, {})


def test_a_file_without_any_hash_table_offers_nothing_and_asks_all_the_same() -> None:
    symbols = [Sym("a"), Sym("b", At(".data"))]
    found = read(file(*symbols, relocations=[asks("a")], dynamic=[Dyn(DT_HASH, 0), Dyn(DT_GNU_HASH, 0)]))
    assert ([reference.name for reference in found.references], found.defined) == (["a"], {})


def test_a_relocation_that_names_a_symbol_beyond_the_table_is_an_error() -> None:
    relocation = Rel(At(".data"), R_X86_64_64, 0xFFFFFFFF, 0)
    with pytest.raises(InputError, match="the table of dynamic symbols of 103079215104 bytes at vaddr 0x"):
        read(file(Sym("a"), relocations=[relocation]))


@by_both_hash_tables
def test_a_name_beyond_the_table_of_names_is_an_error(*, gnu_hash: bool) -> None:
    with pytest.raises(InputError, match="dynamic names"):
        read(file(Sym(1 << 20, At(".data")), gnu_hash=gnu_hash))


@pytest.mark.parametrize("text", [b"\0abcdef", "\0f\xfcnf".encode()])
def test_a_name_without_an_end_is_an_error(text: bytes) -> None:
    image = file(
        Sym(1, At(".data")),
        sections=[Section(".text", flags=RO, data=text)],
        dynamic=[Dyn(DT_STRTAB, At(".text")), Dyn(DT_STRSZ, len(text))],
    )
    with pytest.raises(InputError, match="dynamic names"):
        read(image)


def test_names_that_are_not_ascii_are_read_as_they_are() -> None:
    names = ["fünf", "\udcff", "plain"]
    assert list(read(file(*(Sym(name, At(".data")) for name in names))).defined) == names


def test_names_that_share_their_ends_are_names_of_their_own() -> None:
    image = file(
        Sym(1, At(".data")),
        Sym(4, At(".data")),
        sections=[Section(".text", flags=RO, data=b"\0re_do\0")],
        dynamic=[Dyn(DT_STRTAB, At(".text")), Dyn(DT_STRSZ, 7)],
    )
    assert read(image).defined == {"re_do": 1, "do": 2}


@pytest.mark.parametrize("letter", [b"a", b"\xff"])
@pytest.mark.parametrize("count", [1_000, 30_000])
def test_names_that_overlap_beyond_reason_are_an_error_and_no_memory(letter: bytes, count: int) -> None:
    # Together they would have 100 MB, or 2.5 GB.
    text = b"\0" + letter * 100_000 + b"\0"
    image = file(
        *(Sym(1 + number, At(".data")) for number in range(count)),
        sections=[Section(".text", flags=RO, data=text)],
        dynamic=[Dyn(DT_STRTAB, At(".text")), Dyn(DT_STRSZ, len(text))],
    )
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="overlap too much"):
            read(image)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Four times what the table of 30,000 symbols takes, a third of the smaller names.
    assert peak_bytes < 32 << 20


SOUND = file(
    Sym("imported", version=4),
    Sym("f", At(".data"), 8, version=2 | VERSYM_HIDDEN),
    Sym("f", At(".data"), 8, version=3),
    relocations=[asks("imported"), asks("f", R_X86_64_JUMP_SLOT)],
    gnu_hash=True,
    versions=[Version("V1", 2), Version("V2", 3)],
    needs={"libc.so.6": [Version("GLIBC_2.2.5", 4)]},
)


def test_a_file_that_is_cut_anywhere_gives_an_answer_or_one_of_our_errors() -> None:
    outcomes: set[int | None] = set()
    for size in range(len(SOUND)):
        try:
            outcomes.add(read(SOUND[:size]).count)
        except InputError:
            outcomes.add(None)
    assert None in outcomes
    assert outcomes <= {None, 0, 4}


@given(damage=st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_file_with_any_bytes_changed_gives_an_answer_or_one_of_our_errors(damage: list[tuple[int, int]]) -> None:
    image = bytearray(SOUND)
    for place, byte in damage:
        image[place] = byte
    with contextlib.suppress(InputError):
        found = read(bytes(image))
        assert all(0 < index < found.count for index in found.defined.values())


@pytest.mark.parametrize(
    "cells", [[], [0], [0, 0, 0], [1, 0, 2], [256, 0, 1], [1 << 56, 1], [1 << 24, 0, 0, 1 << 56, 0]]
)
def test_zeros_of_a_table_are_whole_numbers(cells: list[int]) -> None:
    assert list(zeros_of(array("Q", cells))) == [index for index, cell in enumerate(cells) if cell == 0]
