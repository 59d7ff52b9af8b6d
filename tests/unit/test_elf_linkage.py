"""What an ELF file tells the dynamic loader, in each class and byte order, and where it is damaged."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.dynamic import Linkage, read_linkage
from footprint.elf.image import read_image
from footprint.errors import InputError
from tests.elfwriter import (
    DT_AUDIT,
    DT_BIND_NOW,
    DT_DEPAUDIT,
    DT_FLAGS,
    DT_FLAGS_1,
    DT_GNU_HASH,
    DT_HASH,
    DT_NEEDED,
    DT_RELR,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMBOLIC,
    EM_386,
    EM_PPC,
    EM_S390,
    EM_X86_64,
    RO,
    Dyn,
    ElfFile,
    Section,
    patch,
    write,
)

DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF


def read(*dynamic: Dyn, **kind: object) -> Linkage:
    return read_linkage(read_image(write(ElfFile(dynamic=dynamic, **kind)), "libdemo.so"))  # type: ignore[arg-type] # any of its fields


@pytest.mark.parametrize(
    "kind",
    [
        {"bits": 32, "machine": EM_386},
        {"bits": 32, "order": "big", "machine": EM_PPC},
        {"machine": EM_X86_64},
        {"order": "big", "machine": EM_S390},
    ],
)
def test_all_that_a_loader_is_told_is_read(kind: dict[str, object]) -> None:
    result = read(
        Dyn(DT_NEEDED, "libb.so"),
        Dyn(DT_NEEDED, "liba.so"),
        Dyn(DT_SONAME, "libdemo.so.1"),
        Dyn(DT_RPATH, "/old"),
        Dyn(DT_RUNPATH, "/new"),
        Dyn(DT_FILTER, "libf.so"),
        Dyn(DT_AUXILIARY, "libx.so"),
        Dyn(DT_FLAGS_1, 0x800),
        Dyn(DT_DEPAUDIT, "libd.so"),
        Dyn(DT_AUDIT, "liba.so:libc.so"),
        Dyn(DT_RELR, 0x1000),
        sections=[Section(".interp", flags=RO, data=b"/lib/ld.so\0")],
        **kind,
    )
    assert result == Linkage(
        soname="libdemo.so.1",
        needed=("libb.so", "liba.so"),
        rpath="/old",
        runpath="/new",
        interpreter="/lib/ld.so",
        filtees=(("libf.so", True), ("libx.so", False)),
        flags_1=0x800,
        binds_now=False,
        is_symbolic=False,
        is_dynamic=True,
        has_relr=True,
        auditors=("liba.so:libc.so", "libd.so"),
        hash_style="sysv",
    )


@pytest.mark.parametrize(
    ("tables", "style"), [((DT_HASH,), "none"), ((DT_HASH, DT_GNU_HASH), "gnu"), ((), "sysv"), ((DT_GNU_HASH,), "both")]
)
def test_the_style_of_the_hash_tables_has_the_words_of_the_linker(tables: tuple[int, ...], style: str) -> None:
    # The writer of the test makes DT_HASH; an address of 0 is none.
    assert read(Dyn(DT_SONAME, "a"), *[Dyn(tag, 0x1000 * (tag != DT_HASH)) for tag in tables]).hash_style == style


@pytest.mark.parametrize("entry", [Dyn(DT_SYMBOLIC), Dyn(DT_FLAGS, 2)])
def test_that_a_library_looks_in_itself_first_is_said_in_two_ways(entry: Dyn) -> None:
    assert read(entry).is_symbolic


@pytest.mark.parametrize("entry", [Dyn(DT_BIND_NOW), Dyn(DT_FLAGS, 8), Dyn(DT_FLAGS_1, 1)])
def test_that_calls_are_bound_at_start_is_said_in_three_ways(entry: Dyn) -> None:
    assert read(entry).binds_now


def test_of_two_entries_that_should_be_one_the_last_counts() -> None:
    assert read(Dyn(DT_RPATH, "/first"), Dyn(DT_RPATH, "/last")).rpath == "/last"


def test_a_file_without_a_dynamic_section_needs_nothing() -> None:
    found = read_linkage(read_image(write(ElfFile()), "program"))
    assert not found.is_dynamic
    assert found.needed == ()


def test_a_name_that_is_no_utf_8_is_kept() -> None:
    assert read(Dyn(DT_NEEDED, "lib\udcff.so")).needed == ("lib\udcff.so",)


@pytest.mark.parametrize(
    "dynamic",
    [
        [Dyn(DT_NEEDED, 1 << 20)],
        [Dyn(DT_NEEDED, 1), Dyn(DT_STRTAB, 1 << 30)],
        [Dyn(DT_NEEDED, 1), Dyn(DT_STRSZ, 1 << 40)],
        [Dyn(DT_NEEDED, 1)] * 70_000,
    ],
    ids=["name outside", "table outside", "table too long", "section too long"],
)
def test_damage_is_told_by_the_name_of_the_file(dynamic: list[Dyn]) -> None:
    with pytest.raises(InputError, match=r"^libdemo\.so: "):
        read(*dynamic)


def test_ten_thousand_needed_libraries_are_read() -> None:
    names = tuple(f"lib{number}.so" for number in range(10_000))
    assert read(*(Dyn(DT_NEEDED, name) for name in names)).needed == names


def test_what_a_loader_reads_does_not_hang_on_section_headers() -> None:
    whole = patch(write(ElfFile(dynamic=[Dyn(DT_SONAME, "liba.so")])), "e_shoff", 1 << 40)
    image = read_image(whole, "liba.so", with_sections=False)
    assert image.sections == ()
    assert read_linkage(image).soname == "liba.so"


WHOLE = write(ElfFile(dynamic=[Dyn(DT_NEEDED, "liba.so"), Dyn(DT_RPATH, "/d"), Dyn(DT_SONAME, "libb.so")]))


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_file_gives_an_answer_or_one_of_our_errors(damage: list[tuple[int, int]]) -> None:
    file = bytearray(WHOLE)
    for place, byte in damage:
        file[place] = byte
    with contextlib.suppress(InputError):
        read_linkage(read_image(bytes(file), "libdemo.so", with_sections=False))
