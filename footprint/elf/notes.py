"""The notes of an ELF file, found as the loader finds them: through PT_NOTE, never by section.

A debug file is the exception: its program headers are copies of those of its file, so its notes are found by section.

Source: System V ABI, chapter 5 (Note Section); gABI draft of 2018 for notes aligned to 8 bytes; UAPI specification
"ELF dlopen metadata".
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from struct import Struct
from typing import Any, Final

from footprint.elf import abi
from footprint.elf.image import Image, read_image
from footprint.errors import InputError
from footprint.members import NamedTuple

_NT_GNU_BUILD_ID: Final = 3
_NT_DLOPEN: Final = 0x407C0C0A
_GNU: Final = b"GNU\0"
_HEADERS: Final = {True: Struct("<III"), False: Struct(">III")}
# Notes take a few hundred bytes; of a larger claim only this much is read.
_MOST_NOTE_BYTES: Final = 1 << 16
_MOST_SECTIONS: Final = 64
# SHA-1 has 20 bytes, a UUID 16, and --build-id=0x... any number.
_MOST_ID_BYTES: Final = 64


class Priority(StrEnum):
    """How much an object needs a library that it opens at run time, from the most to the least."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"
    SUGGESTED = "suggested"


class OptionalLibrary(NamedTuple):
    """A library that an object may open at run time, as its note states (`.note.dlopen`).

    Attributes:
        sonames: Its names; the object opens the first that exists.
        priority: How much the object needs it.
        feature: The feature that needs it, in one word; empty where the note has none.
        description: The purpose; empty where the note has none.
    """

    sonames: tuple[str, ...]
    priority: Priority
    feature: str
    description: str


class _Note(NamedTuple):
    owner: bytes
    type: int
    text: bytes


def build_id(image: Image) -> str | None:
    """Return the build-id as hexadecimal digits; None where there is none, or where the notes before it are damaged."""
    return _build_id(_all_notes(image))


def build_id_of_start(start: bytes) -> str | None:
    """Return the build-id of a file of which only the first bytes are known; None where they do not hold it."""
    try:
        return build_id(read_image(start, "the first bytes of a file", with_sections=False))
    except InputError:
        return None


def debug_build_id(image: Image) -> str | None:
    """Return the build-id of a debug file, which is that of its file."""
    sections = islice((section for section in image.sections if section.type == abi.SHT_NOTE), _MOST_SECTIONS)
    return _build_id(note for s in sections for note in _notes(image, s.offset, s.size_bytes, s.align))


def optional_libraries(image: Image) -> tuple[OptionalLibrary, ...]:
    """Return the libraries that an object may open at run time, as its notes state."""
    libraries: list[OptionalLibrary] = []
    for note in _all_notes(image):
        if note.type == _NT_DLOPEN and note.owner == b"FDO\0":
            try:
                libraries += [_optional_library(entry) for entry in _entries_of(note.text)]
            except (ValueError, RecursionError) as error:
                raise InputError(image.file, f"its note of libraries to open is damaged: {error}") from error
    return tuple(libraries)


def _build_id(notes: Iterable[_Note]) -> str | None:
    for note in notes:
        if note.type == _NT_GNU_BUILD_ID and note.owner == _GNU and 0 < len(note.text) <= _MOST_ID_BYTES:
            return note.text.hex()
    return None


def _entries_of(text: bytes) -> list[Any]:
    import json  # noqa: PLC0415 # few files have such a note

    entries = json.loads(text.rstrip(b"\0"))
    if not isinstance(entries, list):
        raise ValueError("it is not a list")  # noqa: TRY004 # the file is wrong, not the caller
    return entries


def _optional_library(entry: object) -> OptionalLibrary:
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")  # noqa: TRY004 # the file is wrong, not the caller
    sonames = entry.get("soname")
    texts = [entry.get(key, "") for key in ("feature", "description")]
    if not isinstance(sonames, list) or not sonames or not all(isinstance(text, str) for text in [*sonames, *texts]):
        raise ValueError("an entry has no names, or values that are not text")
    return OptionalLibrary(tuple(sonames), Priority(entry.get("priority", Priority.RECOMMENDED)), texts[0], texts[1])


def _all_notes(image: Image) -> Iterator[_Note]:
    for segment in image.segments:
        if segment.type == abi.PT_NOTE:
            yield from _notes(image, segment.offset, segment.file_bytes, segment.align)


def _notes(image: Image, offset: int, size_bytes: int, align: int) -> Iterator[_Note]:
    """Return the notes of a part of the file, up to the first that reaches beyond the part or the file."""
    raw = bytes(image.data[offset : offset + min(size_bytes, _MOST_NOTE_BYTES)])
    header = _HEADERS[image.is_little]
    align = 8 if align == 8 else 4
    at = 0
    while at + header.size <= len(raw):
        owner_bytes, text_bytes, note_type = header.unpack_from(raw, at)
        owner_at = at + header.size
        text_at = _up(owner_at + owner_bytes, align)
        if text_at + text_bytes > len(raw):
            return
        yield _Note(raw[owner_at : owner_at + owner_bytes], note_type, raw[text_at : text_at + text_bytes])
        at = _up(text_at + text_bytes, align)


def _up(offset: int, align: int) -> int:
    return -(-offset // align) * align
