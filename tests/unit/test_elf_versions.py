"""The versions that a file defines and needs: their tables in each class and byte order, and where they are damaged."""

import struct
from typing import Any

import pytest

from footprint.elf.dynsym import read_dynamic_symbols
from footprint.elf.image import read_image
from footprint.elf.versions import NeededVersion, Versions
from footprint.elf.versions import Version as Found
from footprint.errors import InputError
from tests.elfwriter import (
    DT_SONAME,
    DT_VERDEF,
    DT_VERDEFNUM,
    DT_VERNEED,
    DT_VERNEEDNUM,
    DT_VERSYM,
    EM_386,
    EM_PPC,
    EM_S390,
    EM_X86_64,
    RO,
    RW,
    VER_FLG_BASE,
    VER_FLG_WEAK,
    VERSYM_HIDDEN,
    At,
    Dyn,
    ElfFile,
    Section,
    Sym,
    Version,
    peek,
    write,
)
from tests.workcount import assert_linear

KINDS: list[dict[str, Any]] = [
    {"bits": 32, "order": "little", "machine": EM_386},
    {"bits": 32, "order": "big", "machine": EM_PPC},
    {"bits": 64, "order": "little", "machine": EM_X86_64},
    {"bits": 64, "order": "big", "machine": EM_S390},
]
in_all_classes_and_orders = pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: f"{kind['bits']}-bit-{kind['order']}-endian"
)


def read(image: bytes) -> Versions:
    return read_dynamic_symbols(read_image(image, "libdemo.so")).versions


def file(*symbols: Sym, dynamic: tuple[Dyn, ...] = (), **fields: Any) -> bytes:  # noqa: ANN401 # any field of a file
    sections = [Section(".data", flags=RW, data=bytes(64)), *fields.pop("sections", ())]
    entries = [Dyn(DT_SONAME, "libdemo.so"), *dynamic]
    return write(ElfFile(sections=sections, dynamic=entries, dynamic_symbols=symbols, **fields))


def table(name: str, *entries: bytes) -> Section:
    return Section(name, flags=RO, data=b"".join(entries), align=8)


def definition(index: int, distance: int, *, flags: int = 0, name_count: int = 1, name_distance: int = 20) -> bytes:
    """Return an entry of a definition and its name, the first of the table of names."""
    head = struct.pack("<HHHHIII", 1, flags, index, name_count, 0, name_distance, distance)
    return head + struct.pack("<II", 1, 0)


def need(distance: int, *, count: int = 1, name_distance: int = 16) -> bytes:
    return struct.pack("<HHIII", 1, count, 1, name_distance, distance)


def needed(index: int, distance: int) -> bytes:
    return struct.pack("<IHHII", 0, 0, index, 1, distance)


def with_definitions(count: int, *entries: bytes) -> bytes:
    tags = Dyn(DT_VERDEF, At(".defined")), Dyn(DT_VERDEFNUM, count)
    return file(Sym("f", At(".data")), sections=[table(".defined", *entries)], dynamic=tags)


def with_needs(count: int, *entries: bytes) -> bytes:
    tags = Dyn(DT_VERNEED, At(".needed")), Dyn(DT_VERNEEDNUM, count)
    return file(Sym("f", At(".data")), sections=[table(".needed", *entries)], dynamic=tags)


# --- what they say


@in_all_classes_and_orders
def test_versions_that_are_defined_and_needed_are_told_by_their_indexes(kind: dict[str, Any]) -> None:
    symbols = [Sym("f", At(".data"), version=2), Sym("g", At(".data"), version=3 | VERSYM_HIDDEN), Sym("h", version=4)]
    result = read(
        file(
            *symbols,
            versions=[Version("libdemo.so", 1, VER_FLG_BASE), Version("DEMO_1", 2), Version("DEMO_2", 3)],
            needs={
                "libc.so.6": [Version("GLIBC_2.2.5", 4), Version("GLIBC_2.34", 5 | VERSYM_HIDDEN)],
                "libm.so.6": [Version("GLIBC_2.29", 6, VER_FLG_WEAK)],
            },
            **kind,
        )
    )
    assert list(result.by_symbol or ()) == [0, 2, 0x8003, 4]
    assert result.by_index == {
        2: Found("DEMO_1", is_hidden=False),
        3: Found("DEMO_2", is_hidden=False),
        4: Found("GLIBC_2.2.5", is_hidden=False),
        5: Found("GLIBC_2.34", is_hidden=True),
        6: Found("GLIBC_2.29", is_hidden=False),
    }
    assert result.needed == (
        NeededVersion("libc.so.6", "GLIBC_2.2.5", is_weak=False),
        NeededVersion("libc.so.6", "GLIBC_2.34", is_weak=False),
        NeededVersion("libm.so.6", "GLIBC_2.29", is_weak=True),
    )


def test_a_file_without_versions_has_none() -> None:
    assert read(file(Sym("f", At(".data")))) == Versions(None, {}, ())


def test_a_file_may_say_which_symbols_have_a_version_and_define_none() -> None:
    image = file(Sym("f", At(".data")), sections=[table(".versym", bytes(4))], dynamic=(Dyn(DT_VERSYM, At(".versym")),))
    found = read(image)
    assert list(found.by_symbol or ()) == [0, 0]
    assert found.by_index == {}


def test_the_first_name_of_a_version_is_its_own_and_the_others_are_those_it_continues() -> None:
    # Two names: at 20 that of the version, 8 bytes on that of its parent.
    entry = struct.pack("<HHHHIII", 1, 0, 2, 2, 0, 20, 0) + struct.pack("<IIII", 1, 8, 2, 0)
    assert read(with_definitions(1, entry)).by_index == {2: Found("f", is_hidden=False)}


def test_a_version_without_a_name_is_passed_over() -> None:
    assert read(with_definitions(2, definition(2, 28, name_count=0), definition(3, 0))).by_index == {
        3: Found("f", is_hidden=False)
    }


def test_a_definition_that_is_marked_is_not_hidden_by_that() -> None:
    # glibc keeps the bit of needed versions alone.
    assert read(with_definitions(1, definition(2 | VERSYM_HIDDEN, 0))).by_index == {2: Found("f", is_hidden=False)}


def test_a_distance_of_zero_ends_a_table_whatever_its_count() -> None:
    assert read(with_definitions(9, definition(2, 28), definition(3, 0), definition(4, 0))).by_index.keys() == {2, 3}
    assert len(read(with_needs(9, need(0, count=9), needed(2, 16), needed(3, 0))).needed) == 2


def test_a_count_ends_a_table_whatever_its_distances() -> None:
    assert read(with_definitions(1, definition(2, 28), definition(3, 0))).by_index.keys() == {2}
    assert [len(read(with_needs(n, need(32), needed(2, 0), need(0), needed(3, 0))).needed) for n in (0, 1, 2)] == [
        0,
        1,
        2,
    ]


# --- damage


def test_a_distance_that_wraps_around_an_address_of_32_bits_leads_out_of_the_table() -> None:
    with pytest.raises(InputError, match="the table of defined versions is cut, or its entries lie outside of it"):
        read(with_definitions(0xFFFFFFFF, definition(2, 0xFFFFFFE4)))


def test_definitions_that_overlap_are_read_so_often_as_there_are_indexes() -> None:
    # Each word is 4: an entry without a name begins at each, and leads to the next; there are 50,000.
    def overlapping(count: int) -> bytes:
        return with_definitions(0xFFFFFFFF, struct.pack("<I", 4) * count)

    def read_nothing(image: bytes) -> None:
        assert read(image).by_index == {}

    assert_linear(overlapping, read_nothing, 12_500)


def test_many_needs_that_share_their_versions_are_an_error() -> None:
    # 300 needs, each of the 200 versions that stand behind them: 60,000 where there are 32,768 indexes.
    versions = [needed(2, 16)] * 199 + [needed(2, 0)]
    needs = [need(16 if place else 0, count=200, name_distance=16 * (place + 1)) for place in range(299, -1, -1)]
    with pytest.raises(InputError, match="the table of needed versions has more entries than there are versions"):
        read(with_needs(300, *needs, *versions))
    assert len(read(with_needs(100, *needs, *versions)).needed) == 20_000


@pytest.mark.parametrize(
    ("image", "cause"),
    [
        (with_definitions(1, definition(2, 0, name_distance=1 << 20)), "the table of defined versions is cut"),
        (with_definitions(2, definition(2, 1 << 20)), "the table of defined versions is cut"),
        (with_needs(1, need(0, name_distance=1 << 20)), "the table of needed versions is cut"),
        (with_needs(1, need(0, count=2), needed(2, 1 << 20)), "the table of needed versions is cut"),
        (file(Sym("f"), dynamic=(Dyn(DT_VERDEF, 1 << 40), Dyn(DT_VERDEFNUM, 1))), "is in no segment"),
        (file(Sym("f"), dynamic=(Dyn(DT_VERNEED, 1 << 40), Dyn(DT_VERNEEDNUM, 1))), "is in no segment"),
        (file(Sym("f"), dynamic=(Dyn(DT_VERSYM, 1 << 40),)), "symbol versions of 4 bytes .* is in no segment"),
    ],
)
def test_a_table_that_leads_out_of_the_file_is_an_error(image: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause) as error:
        read(image)
    assert error.value.file == "libdemo.so"


SOUND = file(
    Sym("f", At(".data"), version=2),
    versions=[Version("V1", 2), Version("V2", 3)],
    needs={"a": [Version("A1", 4), Version("A2", 5)], "b": [Version("B1", 6)]},
)


@pytest.mark.parametrize("name", [".gnu.version", ".gnu.version_d", ".gnu.version_r"])
def test_tables_with_any_byte_changed_give_versions_or_one_of_our_errors(name: str) -> None:
    start, size = peek(SOUND, "sh_offset", name), peek(SOUND, "sh_size", name)
    outcomes = set()
    for place in range(start, start + size):
        for byte in (0, 1, 4, 0x7F, 0x80, 0xFF):
            try:
                found = read(SOUND[:place] + bytes([byte]) + SOUND[place + 1 :])
            except InputError:
                outcomes.add("error")
            else:
                outcomes.add("same" if found.by_index == read(SOUND).by_index else "other")
    assert "same" in outcomes
    assert ("error" in outcomes) == (name != ".gnu.version")
