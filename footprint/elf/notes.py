"""What the notes of an ELF file say, found as the loader finds them: through PT_NOTE, never by section.

Only in a debug file, which no loader reads, they are found by section: its program headers are those of its file.

Source: System V ABI, chapter 5 (Note Section); gABI draft of 2018 for notes aligned to 8 bytes; UAPI specification
"ELF dlopen metadata".
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from struct import Struct
from typing import Any, Final, NamedTuple

from footprint.elf.image import PT_NOTE, SHT_NOTE, Image
from footprint.errors import InputError

__all__ = ("OptionalLibrary", "Priority", "build_id", "debug_build_id", "optional_libraries")

_NT_GNU_BUILD_ID: Final = 3
_NT_DLOPEN: Final = 0x407C0C0A
_GNU: Final = b"GNU\0"
_HEADERS: Final = {True: Struct("<III"), False: Struct(">III")}
# Notes are a few hundred bytes; a larger claim is looked into only so far.
_MOST_NOTE_BYTES: Final = 1 << 16
_MOST_SECTIONS: Final = 64
# SHA-1 has 20 bytes, a UUID 16, and --build-id=0x... as many as one likes.
_MOST_ID_BYTES: Final = 64


class Priority(StrEnum):
    """How much an object wants a library that it opens while it runs, from the most to the least."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"
    SUGGESTED = "suggested"


class OptionalLibrary(NamedTuple):
    """A library that an object says it may open while it runs (`.note.dlopen`).

    Attributes:
        sonames: Its names; the first that is there is opened.
        priority: How much it is wanted.
        feature: What needs it, in a word; empty where that is not said.
        description: What for.
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
    """Give the build-id as hexadecimal digits; None where there is none, or where the notes are damaged before it."""
    return _build_id(_all_notes(image))


def debug_build_id(image: Image) -> str | None:
    """Give the build-id of a debug file, which is that of the file that it was made of."""
    sections = islice((one for one in image.sections if one.type == SHT_NOTE), _MOST_SECTIONS)
    return _build_id(note for one in sections for note in _notes(image, one.offset, one.size_bytes, one.align))


def optional_libraries(image: Image) -> tuple[OptionalLibrary, ...]:
    """Give the libraries that an object says it may open while it runs.

    Raises:
        InputError: Where a note that says so is not what the specification has.
    """
    found: list[OptionalLibrary] = []
    for note in _all_notes(image):
        if note.type == _NT_DLOPEN and note.owner == b"FDO\0":
            try:
                found += [_optional_library(entry) for entry in _entries_of(note.text)]
            except (ValueError, RecursionError) as error:
                raise InputError(image.file, f"its note of libraries to open is damaged: {error}") from error
    return tuple(found)


def _build_id(notes: Iterable[_Note]) -> str | None:
    for note in notes:
        if note.type == _NT_GNU_BUILD_ID and note.owner == _GNU and 0 < len(note.text) <= _MOST_ID_BYTES:
            return note.text.hex()
    return None


def _entries_of(text: bytes) -> list[Any]:
    import json  # noqa: PLC0415 # few files have such a note

    entries = json.loads(text.rstrip(b"\0"))
    if not isinstance(entries, list):
        raise ValueError("it is no list")  # noqa: TRY004 # the file's fault, not a caller's
    return entries


def _optional_library(entry: object) -> OptionalLibrary:
    if not isinstance(entry, dict):
        raise ValueError("an entry is no object")  # noqa: TRY004 # the file's fault, not a caller's
    sonames = entry.get("soname")
    texts = [entry.get(key, "") for key in ("feature", "description")]
    if not isinstance(sonames, list) or not sonames or not all(isinstance(text, str) for text in [*sonames, *texts]):
        raise ValueError("an entry has no names, or others than texts")
    return OptionalLibrary(tuple(sonames), Priority(entry.get("priority", Priority.RECOMMENDED)), texts[0], texts[1])


def _all_notes(image: Image) -> Iterator[_Note]:
    for segment in image.segments:
        if segment.type == PT_NOTE:
            yield from _notes(image, segment.offset, segment.file_bytes, segment.align)


def _notes(image: Image, offset: int, size_bytes: int, align: int) -> Iterator[_Note]:
    """Give the notes of a part of the file, up to the first that reaches beyond it or beyond the file."""
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
