"""What notes say: the build-id, libraries that may be opened, the CPU; in each class and byte order, or not there."""

import json
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.elf.image import read_image
from footprint.elf.notes import OptionalLibrary, Priority, build_id, optional_libraries
from footprint.errors import InputError
from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    NT_GNU_BUILD_ID,
    PF_R,
    PT_LOAD,
    PT_NOTE,
    RO,
    RW,
    SHT_NOTE,
    ElfFile,
    Note,
    Section,
    Segment,
    patch,
    write,
)

ID = bytes(range(1, 21))
NT_GNU_ABI_TAG, NT_GNU_PROPERTY_TYPE_0 = 1, 5
LIBRARY = ElfFile(sections=[Section(".data", flags=RW, data=bytes(64))], build_id=ID)


def found_in(file: bytes | ElfFile) -> str | None:
    return build_id(read_image(file if isinstance(file, bytes) else write(file), "libdemo.so"))


def with_notes(*notes: Note | bytes, align: int = 4, kind: dict[str, Any] | None = None) -> ElfFile:
    """Return a file with one segment of notes; bytes are notes already."""
    sections = [Section(".note", SHT_NOTE, RO, data=notes, align=align), Section(".data", flags=RW, data=bytes(8))]
    segments = [
        Segment(PT_LOAD, PF_R, [".note"], offset=0),
        Segment(PT_LOAD, PF_R, [".data"]),
        Segment(PT_NOTE, PF_R, [".note"], align=align),
    ]
    return ElfFile(sections=sections, segments=segments, **(kind or {}))


def raw_note(order: str, owner: bytes, note_type: int, text: bytes, align: int) -> bytes:
    """Write a note whose text, and whose end, stand at multiples of its alignment, as in notes of 8 bytes."""
    head = struct.pack(f"{order}III", len(owner), len(text), note_type) + owner
    head += bytes(-len(head) % align)
    return head + text + bytes(-len(text) % align)


# --- found ------------------------------------------------------------------------------------------------------------


@in_all_classes_and_orders
def test_the_build_id_is_told_in_hexadecimal_digits(kind: dict[str, Any]) -> None:
    assert found_in(replace(LIBRARY, **kind)) == "0102030405060708090a0b0c0d0e0f1011121314"


@in_all_classes_and_orders
def test_it_is_found_behind_other_notes_of_its_segment(kind: dict[str, Any]) -> None:
    notes = (
        Note(NT_GNU_ABI_TAG, "GNU", bytes(16)),
        Note(7, "odd", b"three"),
        Note(1, "", b""),
        Note(NT_GNU_BUILD_ID, "GNU", ID),
    )
    assert found_in(with_notes(*notes, kind=kind)) == ID.hex()


@in_all_classes_and_orders
def test_notes_aligned_to_8_bytes_are_read_as_such(kind: dict[str, Any]) -> None:
    order = "<" if kind["order"] == "little" else ">"
    notes = (
        # 12 + 5 bytes: the text begins at 24, at 20 were they aligned to 4.
        raw_note(order, b"demo\0", 9, b"odd", 8),
        raw_note(order, b"GNU\0", NT_GNU_PROPERTY_TYPE_0, bytes(12), 8),
        raw_note(order, b"GNU\0", NT_GNU_BUILD_ID, ID, 8),
    )
    assert found_in(with_notes(*notes, align=8, kind=kind)) == ID.hex()


@pytest.mark.parametrize("align", [0, 1, 2, 4, 16])
def test_notes_of_any_other_alignment_are_aligned_to_4_bytes(align: int) -> None:
    notes = (raw_note("<", b"demo\0", 9, b"odd", 4), raw_note("<", b"GNU\0", NT_GNU_BUILD_ID, ID, 4))
    assert found_in(with_notes(*notes, align=align)) == ID.hex()


def test_it_is_found_in_the_second_segment_of_notes() -> None:
    notes = Section(".note.other", SHT_NOTE, RO, data=[Note(NT_GNU_ABI_TAG, "GNU", bytes(16))])
    assert found_in(replace(LIBRARY, sections=[notes, *LIBRARY.sections])) == ID.hex()


def test_section_headers_are_not_needed() -> None:
    file = write(LIBRARY)
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        file = patch(file, field, 0)
    assert found_in(file) == ID.hex()


@pytest.mark.parametrize("size_bytes", [1, 8, 16, 20, 32, 64])
def test_it_is_as_long_as_the_linker_made_it(size_bytes: int) -> None:
    identity = bytes(range(256 - size_bytes, 256))
    assert found_in(replace(LIBRARY, build_id=identity)) == identity.hex()


def test_a_view_of_a_file_gives_the_same() -> None:
    assert build_id(read_image(memoryview(write(LIBRARY)), "libdemo.so")) == ID.hex()


# --- not there --------------------------------------------------------------------------------------------------------


def test_a_file_without_notes_has_none() -> None:
    assert found_in(replace(LIBRARY, build_id=b"")) is None


def test_a_note_that_no_program_header_tells_of_is_not_looked_for() -> None:
    file = replace(LIBRARY, segments=[Segment(PT_LOAD, PF_R, [".data"], offset=0)])
    assert found_in(file) is None


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(Note(NT_GNU_BUILD_ID, "Go", ID), id="of another owner"),
        pytest.param(Note(NT_GNU_BUILD_ID, "GNUX", ID), id="of an owner that begins like it"),
        pytest.param(Note(NT_GNU_ABI_TAG, "GNU", ID), id="of another type"),
        pytest.param(Note(NT_GNU_BUILD_ID, "GNU", b""), id="empty"),
        pytest.param(Note(NT_GNU_BUILD_ID, "GNU", bytes(65)), id="longer than any hash"),
    ],
)
def test_other_notes_are_no_build_id(note: Note) -> None:
    assert found_in(with_notes(note)) is None
    assert found_in(with_notes(note, Note(NT_GNU_BUILD_ID, "GNU", ID))) == ID.hex()


# --- damaged ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(struct.pack("<III", 0xFFFFFFFF, 4, 1), id="an owner beyond the segment"),
        pytest.param(struct.pack("<III", 4, 0xFFFFFFFF, 1) + b"GNU\0", id="a text beyond the segment"),
        pytest.param(b"\1\0\0\0\0", id="half a header"),
    ],
)
def test_behind_damage_nothing_is_believed(damage: bytes) -> None:
    assert found_in(with_notes(damage, Note(NT_GNU_BUILD_ID, "GNU", ID))) is None
    assert found_in(with_notes(Note(NT_GNU_BUILD_ID, "GNU", ID), damage)) == ID.hex()


@pytest.mark.parametrize("field", ["p_offset", "p_filesz"])
@pytest.mark.parametrize("value", [0, 1 << 40, (1 << 64) - 1])
def test_a_segment_that_is_elsewhere_or_larger_than_the_file_is_no_error(field: str, value: int) -> None:
    file = patch(write(with_notes(Note(NT_GNU_BUILD_ID, "GNU", ID))), field, value, 2)
    is_still_there = field == "p_filesz" and value
    assert found_in(file) == (ID.hex() if is_still_there else None)


def test_a_million_notes_are_not_all_looked_at() -> None:
    many = with_notes(bytes(12_000_000), Note(NT_GNU_BUILD_ID, "GNU", ID))
    assert found_in(many) is None


@given(st.binary(max_size=120), st.sampled_from([4, 8]))
def test_any_notes_give_a_build_id_or_none(notes: bytes, align: int) -> None:
    found = found_in(with_notes(notes, align=align))
    assert found is None or 2 <= len(found) <= 128


# --- libraries that may be opened -------------------------------------------------------------------------------------

DLOPEN = 0x407C0C0A
FULL = {"soname": ["libz.so.1", "libz-ng.so.2"], "feature": "zip", "description": "Zip files", "priority": "suggested"}


def opened(text: bytes, owner: str = "FDO", kind: dict[str, Any] | None = None) -> tuple[OptionalLibrary, ...]:
    return optional_libraries(read_image(write(with_notes(Note(DLOPEN, owner, text), kind=kind)), "libdemo.so"))


@in_all_classes_and_orders
def test_what_may_be_opened_is_told_with_what_for(kind: dict[str, Any]) -> None:
    found = opened(json.dumps([FULL]).encode() + b"\0", kind=kind)
    assert found == (OptionalLibrary(("libz.so.1", "libz-ng.so.2"), Priority.SUGGESTED, "zip", "Zip files"),)


def test_all_but_the_name_may_be_missing() -> None:
    assert opened(b'[{"soname": ["a.so"]}]') == (OptionalLibrary(("a.so",), Priority.RECOMMENDED, "", ""),)


def test_the_libraries_of_all_notes_come_one_behind_the_other() -> None:
    notes = [Note(DLOPEN, "FDO", json.dumps([{"soname": [name]}, FULL]).encode()) for name in ("a.so", "b.so")]
    found = optional_libraries(read_image(write(with_notes(*notes)), "libdemo.so"))
    assert [one.sonames[0] for one in found] == ["a.so", "libz.so.1", "b.so", "libz.so.1"]


def test_an_object_without_such_a_note_says_nothing() -> None:
    assert opened(json.dumps([FULL]).encode(), owner="GNU") == ()
    assert optional_libraries(read_image(write(LIBRARY), "libdemo.so")) == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[", id="torn"),
        pytest.param(b"{}", id="no list"),
        pytest.param(b"[7]", id="no object"),
        pytest.param(b"[{}]", id="no names"),
        pytest.param(b'[{"soname": []}]', id="an empty list of names"),
        pytest.param(b'[{"soname": "a.so"}]', id="a name that is no list"),
        pytest.param(b'[{"soname": [7]}]', id="a name that is no text"),
        pytest.param(b'[{"soname": ["a.so"], "feature": 7}]', id="a feature that is no text"),
        pytest.param(b'[{"soname": ["a.so"], "priority": "maybe"}]', id="a priority of no meaning"),
        pytest.param(b'[{"soname": ["a.so"], "priority": []}]', id="a priority that is no text"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 60_000, id="as deep as it is long"),
    ],
)
def test_a_damaged_note_of_libraries_is_an_error(text: bytes) -> None:
    with pytest.raises(InputError, match=r"libdemo\.so: its note of libraries to open is damaged"):
        opened(text)


# --- any bytes --------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=120), st.sampled_from([4, 8]))
def test_any_notes_of_another_type_name_no_libraries(notes: bytes, align: int) -> None:
    head = struct.pack("<III", 4, len(notes), NT_GNU_PROPERTY_TYPE_0) + b"GNU\0"
    image = read_image(write(with_notes(head + notes, align=align)), "libdemo.so")
    assert optional_libraries(image) == ()
