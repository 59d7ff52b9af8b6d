"""The headers of an ELF file: what is read in each class and byte order, and what is refused, where and why."""

from dataclasses import replace
from typing import Any

import pytest

from footprint.elf.image import Image, read_image, starts_like_elf
from footprint.elf.image import Section as ReadSection
from footprint.errors import InputError, UnsupportedError
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    ET_DYN,
    ET_REL,
    PF_R,
    PF_W,
    PF_X,
    PN_XNUM,
    PT_GNU_RELRO,
    PT_INTERP,
    PT_LOAD,
    PT_NOTE,
    RO,
    RW,
    RX,
    SHN_XINDEX,
    SHT_NOBITS,
    SHT_STRTAB,
    TLS,
    ElfFile,
    Section,
    Segment,
    patch,
    peek,
    write,
)

LIBRARY = ElfFile(
    sections=[
        Section(".text", flags=RX, data=bytes(24), align=16),
        Section(".tdata", flags=TLS, data=bytes(8), align=8),
        Section(".data.rel.ro", flags=RW, data=bytes(40), align=8),
        Section(".data", flags=RW, data=bytes(100), align=32),
        Section(".bss", SHT_NOBITS, RW, size=5000, align=64),
        Section(".comment", data=b"made by hand"),
    ],
    relro=[".tdata", ".data.rel.ro"],
)
SOUND = write(LIBRARY)
HEADER_BYTES = {32: 52, 64: 64}


def read(file: ElfFile | bytes) -> Image:
    return read_image(file if isinstance(file, bytes) else write(file), "libdemo.so")


def refused(file: bytes) -> InputError:
    """Return the error that a file is refused with; its text names the file, and the offset where there is one."""
    with pytest.raises(InputError) as caught:
        read(file)
    error = caught.value
    place = "libdemo.so" if error.offset is None else f"libdemo.so: offset {error.offset:#x}"
    assert str(error) == f"{place}: {error.cause}"
    return error


def section(image: Image, name: str) -> ReadSection:
    return next(each for each in image.sections if each.name == name)


def without_section_headers(file: bytes) -> bytes:
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        file = patch(file, field, 0)
    return file


def with_longer_entries(file: bytes, table: str, more_bytes: int) -> bytes:
    """Move the table of program headers ("ph") or section headers ("sh") to the end, each entry with bytes more."""
    start, size_bytes, count = (peek(file, f"e_{table}{field}") for field in ("off", "entsize", "num"))
    entries = [file[start + number * size_bytes :][:size_bytes] + b"\xff" * more_bytes for number in range(count)]
    moved = patch(file + b"".join(entries), f"e_{table}off", len(file))
    return patch(moved, f"e_{table}entsize", size_bytes + more_bytes)


# --- what is read -----------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
def test_the_header_tells_class_byte_order_machine_and_type(kind: dict[str, Any]) -> None:
    image = read(replace(LIBRARY, **kind))
    assert (image.is_64, image.is_little) == (kind["bits"] == 64, kind["order"] == "little")
    assert (image.machine, image.type, image.file) == (kind["machine"], ET_DYN, "libdemo.so")


@in_all_classes_and_orders
def test_sections_are_read_in_the_order_of_the_file_the_null_section_first(kind: dict[str, Any]) -> None:
    image = read(replace(LIBRARY, **kind))
    assert [(each.name, each.size_bytes, each.align) for each in image.sections[:7]] == [
        ("", 0, 0),
        (".text", 24, 16),
        (".tdata", 8, 8),
        (".data.rel.ro", 40, 8),
        (".data", 100, 32),
        (".bss", 5000, 64),
        (".comment", 12, 1),
    ]
    assert [each.index for each in image.sections] == list(range(len(image.sections)))


@in_all_classes_and_orders
def test_every_field_of_a_section_header_is_the_one_that_stands_in_the_file(kind: dict[str, Any]) -> None:
    file = write(replace(LIBRARY, **kind))
    for at, value in enumerate((0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88)):
        names = ("sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign")
        file = patch(file, names[at], value, ".comment")
    one = read(patch(file, "sh_entsize", 0x99, ".comment")).sections[6]
    assert (one.type, one.flags, one.vaddr, one.offset, one.size_bytes) == (0x11, 0x22, 0x33, 0x44, 0x55)
    assert (one.link, one.info, one.align, one.entry_bytes) == (0x66, 0x77, 0x88, 0x99)


@in_all_classes_and_orders
def test_every_field_of_a_program_header_is_the_one_that_stands_in_the_file(kind: dict[str, Any]) -> None:
    given = Segment(PT_NOTE, PF_R | PF_X, offset=0x11, vaddr=0x22, filesz=0x33, memsz=0x44, align=0x55)
    (one,) = read(replace(LIBRARY, **kind, segments=[given])).segments
    assert (one.type, one.flags, one.offset, one.vaddr) == (PT_NOTE, PF_R | PF_X, 0x11, 0x22)
    assert (one.file_bytes, one.memory_bytes, one.align) == (0x33, 0x44, 0x55)


def test_segments_are_found_by_their_type_the_first_of_several() -> None:
    image = read(LIBRARY)
    assert [load.is_writable for load in image.loads] == [False, True]
    assert image.segment(PT_LOAD) == image.loads[0]
    relro = image.segment(PT_GNU_RELRO)
    assert relro is not None
    assert (relro.vaddr, relro.flags) == (image.loads[1].vaddr, PF_R)
    assert image.segment(PT_INTERP) is None


@pytest.mark.parametrize(
    ("name", "is_in_memory", "is_writable", "is_tls", "has_file_bytes"),
    [
        ("", False, False, False, False),
        (".comment", False, False, False, True),
        (".text", True, False, False, True),
        (".tdata", True, True, True, True),
        (".data", True, True, False, True),
        (".bss", True, True, False, False),
    ],
)
def test_flags_and_type_tell_what_a_section_is(
    name: str, *, is_in_memory: bool, is_writable: bool, is_tls: bool, has_file_bytes: bool
) -> None:
    one = section(read(LIBRARY), name)
    assert (one.is_in_memory, one.is_writable) == (is_in_memory, is_writable)
    assert (one.is_tls, one.has_file_bytes) == (is_tls, has_file_bytes)


def test_a_writable_section_that_is_not_in_memory_is_no_writable_memory() -> None:
    assert not section(read(patch(SOUND, "sh_flags", 1, ".comment")), ".comment").is_writable


def test_the_bytes_of_a_section_are_those_at_its_offset() -> None:
    image = read(LIBRARY)
    assert image.section_bytes(section(image, ".comment")) == b"made by hand"


def test_a_view_of_a_file_gives_the_same_facts_and_is_not_copied() -> None:
    image = read_image(memoryview(SOUND), "libdemo.so")
    assert (image.sections, image.segments) == (read(SOUND).sections, read(SOUND).segments)
    part = image.section_bytes(section(image, ".data"))
    assert isinstance(part, memoryview)
    assert part.obj is SOUND


@pytest.mark.parametrize(
    ("head", "is_elf"), [(b"\x7fELF", True), (b"\x7fEL", False), (b"", False), (b"!<arch>\n", False)]
)
def test_a_file_claims_to_be_elf_by_its_first_four_bytes(head: bytes, *, is_elf: bool) -> None:
    assert starts_like_elf(head) == starts_like_elf(memoryview(head)) == is_elf


# --- numbers too large for their fields -------------------------------------------------------------------------------


@in_all_classes_and_orders
def test_extension_numbering_gives_the_same_facts(kind: dict[str, Any]) -> None:
    usual, file = read(replace(LIBRARY, **kind)), write(replace(LIBRARY, **kind, extended=True))
    assert [peek(file, field) for field in ("e_shnum", "e_shstrndx", "e_phnum")] == [0, SHN_XINDEX, PN_XNUM]
    assert read(file).sections[1:] == usual.sections[1:]
    assert read(file).segments == usual.segments


def test_more_sections_than_16_bits_can_count_are_all_read() -> None:
    image = read(ElfFile(type=ET_REL, sections=[Section(".bss.one", SHT_NOBITS, RW, size=4)] * 0x10001))
    assert len(image.sections) == 1 + 0x10001 + 1
    assert image.sections[-1].name == ".shstrtab"


def test_a_section_count_of_0_with_no_other_in_the_null_section_means_no_sections() -> None:
    image = read(patch(SOUND, "e_shnum", 0))
    assert image.sections == ()
    assert len(image.loads) == 2


def test_without_a_null_section_the_largest_segment_count_is_meant_as_it_stands() -> None:
    error = refused(patch(without_section_headers(SOUND), "e_phnum", PN_XNUM))
    assert (error.offset, error.cause) == (64, "65535 program headers reach beyond the end of the file")


# --- tables that are missing, or of another shape ---------------------------------------------------------------------


@in_all_classes_and_orders
def test_program_headers_are_enough(kind: dict[str, Any]) -> None:
    image = read(without_section_headers(write(replace(LIBRARY, **kind))))
    assert image.sections == ()
    assert [load.is_writable for load in image.loads] == [False, True]


@in_all_classes_and_orders
def test_section_headers_are_enough(kind: dict[str, Any]) -> None:
    image = read(replace(LIBRARY, **kind, type=ET_REL))
    assert (image.is_relocatable, image.segments, image.loads) == (True, (), ())
    assert section(image, ".bss").size_bytes == 5000


@in_all_classes_and_orders
@pytest.mark.parametrize("table", ["ph", "sh"])
def test_headers_longer_than_we_know_are_read_as_far_as_we_know(table: str, kind: dict[str, Any]) -> None:
    file = write(replace(LIBRARY, **kind))
    longer = with_longer_entries(file, table, more_bytes=12)
    assert (read(longer).sections, read(longer).segments) == (read(file).sections, read(file).segments)


@pytest.mark.parametrize(("field", "what", "least"), [("e_phentsize", "program", 56), ("e_shentsize", "section", 64)])
def test_headers_shorter_than_the_class_has_them_are_refused(field: str, what: str, least: int) -> None:
    error = refused(patch(SOUND, field, least - 1))
    assert error.cause == f"a {what} header of {least - 1} bytes is shorter than {least}"
    assert error.offset == peek(SOUND, field.replace("entsize", "off"))


def test_a_section_that_has_no_bytes_in_the_file_may_reach_beyond_its_end() -> None:
    file = patch(patch(SOUND, "sh_size", 1 << 63, ".bss"), "sh_offset", 1 << 62, ".bss")
    image = read(file)
    assert section(image, ".bss").size_bytes == 1 << 63
    assert image.section_bytes(section(image, ".bss")) == b""


def test_a_section_that_reaches_beyond_the_end_of_the_file_is_refused_once_its_bytes_are_wanted() -> None:
    image = read(patch(SOUND, "sh_size", 1 << 40, ".data"))
    with pytest.raises(InputError) as caught:
        image.section_bytes(section(image, ".data"))
    assert caught.value.offset == peek(SOUND, "sh_offset", ".data")
    assert caught.value.cause == f"section 4 of {1 << 40} bytes reaches beyond the end of the file"


# --- names of sections ------------------------------------------------------------------------------------------------


def test_a_section_name_need_not_be_text() -> None:
    assert read(ElfFile(sections=[Section("caf\udce9")])).sections[1].name == "caf\udce9"


def test_a_section_name_beyond_its_table_is_empty() -> None:
    assert read(patch(SOUND, "sh_name", 0xFFFFFFFF, ".comment")).sections[6].name == ""


@pytest.mark.parametrize(("field", "value"), [("sh_type", SHT_NOBITS), ("sh_size", 0)])
def test_sections_have_no_names_where_the_section_of_names_is_empty(field: str, value: int) -> None:
    assert {each.name for each in read(patch(SOUND, field, value, ".shstrtab")).sections} == {""}


def test_sections_have_no_names_where_no_section_holds_them() -> None:
    image = read(patch(SOUND, "e_shstrndx", 0))
    assert {each.name for each in image.sections} == {""}
    assert image.sections[5].size_bytes == 5000


def test_a_section_name_without_end_is_refused_where_it_begins() -> None:
    endless = ElfFile(sections=[Section(".names", SHT_STRTAB, data=b"n" * 100_000)])
    file = patch(patch(write(endless), "e_shstrndx", 1), "sh_name", 5, 1)
    error = refused(file)
    assert error.cause.endswith("has no end")
    # The null section's name, the first that is read, begins at 0.
    assert error.offset == peek(file, "sh_offset", 1)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "cause"),
    [
        (b"", "the file is empty"),
        (b"\x7fEL", "not an ELF file: it does not start with 7f 45 4c 46"),
        (b"#!/bin/sh\nexit 0\n", "not an ELF file: it does not start with 7f 45 4c 46"),
        (bytes(64), "not an ELF file: it does not start with 7f 45 4c 46"),
    ],
)
def test_a_file_that_is_no_elf_file_is_refused_as_a_whole(file: bytes, cause: str) -> None:
    error = refused(file)
    assert (error.cause, error.offset) == (cause, None)


def test_a_file_that_ends_in_the_identification_is_cut() -> None:
    for size in (4, 15):
        error = refused((b"\x7fELF\x02\x01\x01" + bytes(8))[:size])
        assert (error.cause, error.offset) == ("the file is cut: its header needs at least 52 bytes", size)


@pytest.mark.parametrize(
    ("field", "value", "offset", "cause"),
    [
        ("ei_class", 0, 4, "ELF class 0 with byte order 1 is not defined"),
        ("ei_class", 3, 4, "ELF class 3 with byte order 1 is not defined"),
        ("ei_data", 0, 4, "ELF class 2 with byte order 0 is not defined"),
        ("ei_data", 3, 4, "ELF class 2 with byte order 3 is not defined"),
        ("ei_version", 2, 6, "ELF version 2 is not defined"),
    ],
)
def test_what_the_abi_does_not_define_is_unsupported(field: str, value: int, offset: int, cause: str) -> None:
    error = refused(patch(SOUND, field, value))
    assert isinstance(error, UnsupportedError)
    assert (error.offset, error.cause) == (offset, cause)


@in_all_classes_and_orders
def test_a_file_cut_within_its_header_is_refused_at_the_cut(kind: dict[str, Any]) -> None:
    needed_bytes = HEADER_BYTES[kind["bits"]]
    error = refused(write(replace(LIBRARY, **kind))[: needed_bytes - 1])
    assert (error.offset, error.cause) == (needed_bytes - 1, f"the file is cut: its header needs {needed_bytes} bytes")


def test_a_file_cut_within_its_section_headers_is_refused_where_they_begin() -> None:
    error = refused(SOUND[:-1])
    assert (error.offset, error.cause) == (peek(SOUND, "e_shoff"), "8 section headers reach beyond the end of the file")


@pytest.mark.parametrize(
    ("field", "value", "offset", "cause"),
    [
        ("e_phoff", 1 << 63, 1 << 63, "5 program headers reach beyond the end of the file"),
        ("e_phnum", 0xFFFE, 64, "65534 program headers reach beyond the end of the file"),
        ("e_shnum", 0xFFFF, peek(SOUND, "e_shoff"), "65535 section headers reach beyond the end of the file"),
        ("e_shoff", 0, 60, "e_shnum is 8, but e_shoff is 0"),
        ("e_shstrndx", 8, 62, "the section of names is number 8 of 8"),
    ],
)
def test_a_header_that_contradicts_the_file_is_refused(field: str, value: int, offset: int, cause: str) -> None:
    error = refused(patch(SOUND, field, value))
    assert (error.cause, error.offset) == (cause, offset)


@pytest.mark.parametrize("beyond", [len(SOUND), len(SOUND) + 1, 1 << 63])
def test_section_headers_that_begin_behind_the_end_of_the_file_are_refused_where_they_should_be(beyond: int) -> None:
    error = refused(patch(SOUND, "e_shoff", beyond))
    assert error.cause.endswith("beyond the end of the file")
    assert error.offset == beyond


@pytest.mark.parametrize(("bits", "offset"), [(32, 48), (64, 60)])
def test_a_count_without_a_table_is_refused_where_the_count_stands(bits: Any, offset: int) -> None:  # noqa: ANN401
    assert refused(patch(write(replace(LIBRARY, bits=bits)), "e_shoff", 0)).offset == offset


@pytest.mark.parametrize(("field", "value"), [("sh_offset", 1 << 63), ("sh_size", 1 << 63)])
def test_names_of_sections_beyond_the_end_of_the_file_are_refused(field: str, value: int) -> None:
    file = patch(SOUND, field, value, ".shstrtab")
    error = refused(file)
    assert error.cause == "the section of names reaches beyond the end of the file"
    assert error.offset == peek(file, "sh_offset", 7)


@pytest.mark.parametrize(
    ("field", "what"), [("sh_size", "section"), ("sh_info", "program")], ids=["sections", "segments"]
)
def test_a_count_in_the_null_section_that_the_file_cannot_hold_is_refused(field: str, what: str) -> None:
    extended = write(replace(LIBRARY, extended=True))
    error = refused(patch(extended, field, 0xFFFFFFFF, 0))
    assert error.cause == f"{0xFFFFFFFF} {what} headers reach beyond the end of the file"
    assert error.offset == peek(extended, f"e_{what[0]}hoff")


def test_writable_segments_are_told_by_their_flag_alone() -> None:
    flags = (PF_R, PF_R | PF_W, PF_W, PF_R | PF_X)
    image = read(ElfFile(segments=[Segment(PT_LOAD, flag) for flag in flags], sections=[Section(".rodata", flags=RO)]))
    assert [segment.is_writable for segment in image.segments] == [False, True, True, False]
