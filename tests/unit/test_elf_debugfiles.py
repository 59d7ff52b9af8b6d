"""What a stripped file says of where its symbols are, and how they are used with the addresses of the file."""

import lzma
import struct
import tracemalloc
import zlib
from typing import Any

import pytest

from footprint.elf.contents import Contents, ResidueCause, read_contents
from footprint.elf.image import Image, read_image
from footprint.elf.notes import (
    AlternateLink,
    DebugImage,
    DebugLink,
    alternate_link,
    build_id,
    candidates,
    debug_build_id,
    debug_link,
    is_stripped,
    matched_sections,
    mini_debug_image,
)
from footprint.errors import InputError
from tests.debugpairs import (
    ALL,
    BUILD_ID_PATH,
    EXPORTED,
    IDENTITY,
    NAMED_IN_ALL,
    NAMED_WHEN_STRIPPED,
    debug,
    link_to,
    mini,
    moved,
    stripped,
    whole,
)
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import ET_REL, RW, SHN_COMMON, SHT_NOBITS, ElfFile, Section, Sym, patch, peek, write


def image(data: bytes, name: str = "libdemo.so") -> Image:
    return read_image(data, name)


def named(contents: Contents) -> dict[str, int]:
    """Return the size of each variable."""
    return {variable.name: variable.size_bytes for section in contents.sections for variable in section.variables}


def causes(contents: Contents) -> set[ResidueCause]:
    return {cause for section in contents.sections for cause in section.residue_bytes} - {ResidueCause.LINKER_TABLE}


# --- which files are stripped -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (stripped(), True),
        (whole(), False),
        (write(ElfFile(type=ET_REL, sections=[Section(".data", flags=RW, data=bytes(8))])), False),
        (patch(patch(stripped(), "e_shnum", 0), "e_shoff", 0), False),
    ],
    ids=["stripped", "whole", "object", "without section headers"],
)
def test_a_linked_file_with_sections_and_without_symbols_is_stripped(data: bytes, expected: object) -> None:
    assert is_stripped(image(data)) is expected


# --- what it says -----------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd", "libdemo.so.debug"])
def test_the_link_has_a_name_and_a_checksum_in_the_order_of_the_file(kind: dict[str, Any], name: str) -> None:
    data = stripped(link_to(name, 0x12345678, kind["order"]), **kind)
    assert debug_link(image(data)) == DebugLink(name, 0x12345678)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"name",
        b"name\0\0\0\0\1\2\3",
        b"\0\0\0\0\1\2\3\4",
        b"..\0\0\1\2\3\4",
        b"../../etc/passwd\0\0\0\0\1\2\3\4",
    ],
)
def test_a_link_that_is_cut_or_leads_elsewhere_is_none(content: bytes) -> None:
    assert debug_link(image(stripped(Section(".gnu_debuglink", data=content)))) is None


def test_a_link_beyond_the_end_of_the_file_is_an_error() -> None:
    data = patch(stripped(link_to("x", 1)), "sh_offset", 1 << 40, ".gnu_debuglink")
    with pytest.raises(InputError, match="beyond the end"):
        debug_link(image(data))


def test_the_link_of_dwz_has_a_path_and_a_build_id() -> None:
    section = Section(".gnu_debugaltlink", data=b"../../.dwz/demo.debug\0\xab\xcd")
    assert alternate_link(image(stripped(section))) == AlternateLink("../../.dwz/demo.debug", "abcd")
    assert alternate_link(image(stripped())) is None
    assert alternate_link(image(stripped(Section(".gnu_debugaltlink", data=b"no identity")))) is None


def test_a_debug_file_has_its_build_id_in_a_section_wherever_its_program_headers_point() -> None:
    data = debug()
    assert debug_build_id(image(data)) == IDENTITY
    for number in range(peek(data, "e_phnum")):
        data = patch(data, "p_offset", 1 << 40, number)
    assert (build_id(image(data)), debug_build_id(image(data))) == (None, IDENTITY)


# --- where to look ----------------------------------------------------------------------------------------------------


def test_the_surest_place_comes_first() -> None:
    found = candidates(image(stripped(link_to("libdemo.debug", 1))), "/opt/lib/libdemo.so", ["/usr/lib/debug", "/more"])
    assert found == [
        f"/usr/lib/debug/{BUILD_ID_PATH}",
        f"/more/{BUILD_ID_PATH}",
        "/opt/lib/libdemo.debug",
        "/opt/lib/.debug/libdemo.debug",
        "/usr/lib/debug/opt/lib/libdemo.debug",
        "/more/opt/lib/libdemo.debug",
        "/usr/lib/debug/libdemo.debug",
        "/more/libdemo.debug",
    ]


def test_a_file_at_the_top_has_no_folder_of_its_own() -> None:
    found = candidates(image(stripped(link_to("init.debug", 1), build_id=b"")), "/init", [])
    assert found == ["/init.debug", "/.debug/init.debug"]


def test_a_file_whose_link_leads_to_itself_is_no_place_to_look() -> None:
    found = candidates(image(stripped(link_to("libdemo.so", 1), build_id=b"")), "/lib/libdemo.so", [])
    assert found == ["/lib/.debug/libdemo.so"]


def test_a_file_that_says_nothing_has_no_candidates() -> None:
    assert candidates(image(stripped(build_id=b"")), "/lib/libdemo.so", ["/usr/lib/debug"]) == []


def test_a_build_id_of_one_byte_names_no_file() -> None:
    assert candidates(image(stripped(build_id=b"\xab")), "/lib/libdemo.so", ["/usr/lib/debug"]) == []


# --- MiniDebugInfo ----------------------------------------------------------------------------------------------------


def test_mini_debug_info_is_an_elf_file_of_its_own() -> None:
    found = mini_debug_image(image(stripped(mini(debug()))))
    assert found is not None
    assert found.file == "libdemo.so(.gnu_debugdata)"
    assert debug_build_id(found) == IDENTITY


def test_a_file_without_mini_debug_info_has_none() -> None:
    assert mini_debug_image(image(stripped())) is None


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "it is cut"),
        (b"\xfd7zXZ\0", "it is cut"),
        (lzma.compress(debug())[:-20], "it is cut"),
        (b"no xz at all", "it cannot be inflated"),
        (lzma.compress(debug(), format=lzma.FORMAT_ALONE), "it cannot be inflated"),
        (lzma.compress(b"not ELF"), "not an ELF file"),
    ],
)
def test_mini_debug_info_that_is_none_is_an_error(content: bytes, cause: str) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        mini_debug_image(image(stripped(Section(".gnu_debugdata", data=content))))
    assert caught.value.file == "libdemo.so(.gnu_debugdata)"


def test_what_inflates_beyond_reason_is_refused_before_it_fills_the_memory() -> None:
    squeezer = lzma.LZMACompressor(preset=0)
    bomb = b"".join(squeezer.compress(bytes(1 << 20)) for _ in range(200)) + squeezer.flush()
    data = stripped(Section(".gnu_debugdata", data=bomb))
    assert len(data) < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="inflates to more than 67108864 bytes"):
            mini_debug_image(image(data))
        assert tracemalloc.get_traced_memory()[1] < 160 << 20
    finally:
        tracemalloc.stop()


def test_a_stream_that_asks_for_much_memory_is_refused() -> None:
    # The header of a block, made to ask for a dictionary of 1 GiB; a whole stream would need that memory here.
    flags = bytearray(lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])[:24])
    flags[flags.index(b"\x21\x01") + 2] = 36
    flags[20:24] = struct.pack("<I", zlib.crc32(bytes(flags[12:20])))
    with pytest.raises(InputError, match="cannot be inflated: Memory usage limit"):
        mini_debug_image(image(stripped(Section(".gnu_debugdata", data=bytes(flags) + bytes(64)))))


# --- symbols with the addresses of the file ---------------------------------------------------------------------------


@in_all_classes_and_orders
def test_a_stripped_file_with_its_debug_file_has_all_names_that_it_had(kind: dict[str, Any]) -> None:
    unstripped = read_contents(image(whole(**kind)))
    alone = read_contents(image(stripped(**kind)))
    contents = read_contents(image(stripped(**kind)), DebugImage(image(debug(**kind), "/debug/libdemo.debug")))
    assert named(alone) == NAMED_WHEN_STRIPPED
    assert named(contents) == NAMED_IN_ALL
    assert contents.sections == tuple(
        one._replace(section=other.section) for one, other in zip(unstripped.sections, contents.sections, strict=True)
    )
    assert (alone.symbols_from, alone.debug_file) == (".dynsym", None)
    assert (contents.symbols_from, contents.debug_file) == (".symtab", "/debug/libdemo.debug")
    assert contents.symbol_count == unstripped.symbol_count
    assert causes(alone) == {ResidueCause.STRIPPED}
    assert causes(contents) <= {ResidueCause.NO_SYMBOL, ResidueCause.PADDING}


def test_sections_are_known_again_by_name_address_and_size_whatever_their_numbers() -> None:
    ours, theirs = image(stripped()), image(debug(fillers=3))
    numbers = matched_sections(ours, theirs)
    assert all(theirs.sections[number].name == section.name for number, section in numbers.items())
    assert named(read_contents(ours, DebugImage(theirs))) == NAMED_IN_ALL


def test_a_section_that_stands_elsewhere_keeps_its_own_names() -> None:
    found = read_contents(image(stripped()), DebugImage(image(moved(debug(), ".data"))))
    assert named(found) == {name: size for name, size in NAMED_IN_ALL.items() if name != "hidden"}
    (data,) = [section for section in found.sections if section.section.name == ".data"]
    assert data.residue_bytes == {ResidueCause.STRIPPED: 48}


def test_a_section_of_another_size_keeps_its_own_names() -> None:
    found = read_contents(image(stripped()), DebugImage(image(patch(debug(), "sh_size", 4095, ".bss"))))
    assert "zeros" not in named(found)
    assert "hidden" in named(found)


def test_mini_debug_info_adds_to_the_names_that_are_exported() -> None:
    names = [one for one in ALL if one not in EXPORTED and one.name != "zeros"]
    small = DebugImage(image(debug(symbols=names)), is_whole=False)
    found = read_contents(image(stripped()), small)
    assert named(found) == {"shown": 16, "hidden": 48, "of_thread": 8}
    assert (found.symbols_from, found.debug_file) == (".gnu_debugdata", None)
    assert ResidueCause.STRIPPED in causes(found)


def test_mini_debug_info_of_functions_only_changes_nothing() -> None:
    small = DebugImage(image(debug(symbols=[Sym("elsewhere")])), is_whole=False)
    assert read_contents(image(stripped()), small) == read_contents(image(stripped()))


def test_a_debug_file_that_is_an_object_gives_no_tentative_definitions() -> None:
    other = write(
        ElfFile(
            type=ET_REL,
            sections=[Section(".bss", SHT_NOBITS, RW, size=8)],
            symbols=[Sym("tentative", 4, 4, section=SHN_COMMON)],
        )
    )
    assert named(read_contents(image(stripped()), DebugImage(image(other)))) == NAMED_WHEN_STRIPPED


def test_a_damaged_debug_file_is_told_by_its_own_name() -> None:
    damaged = patch(debug(), "sh_entsize", 1, ".symtab")
    with pytest.raises(InputError) as caught:
        read_contents(image(stripped()), DebugImage(image(damaged, "/debug/libdemo.debug")))
    assert caught.value.file == "/debug/libdemo.debug"
