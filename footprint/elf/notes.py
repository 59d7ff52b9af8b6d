"""What the notes of an ELF file say, found as the loader finds them: through PT_NOTE, never by section.

Source: System V ABI, chapter 5 (Note Section); gABI draft of 2018 for notes aligned to 8 bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from footprint.elf.image import PT_NOTE, Image, Segment

__all__ = ("build_id",)

_NT_GNU_BUILD_ID: Final = 3
_HEADERS: Final = {True: Struct("<III"), False: Struct(">III")}
# Notes are a few hundred bytes; a larger claim is looked into only so far.
_MOST_NOTE_BYTES: Final = 1 << 16
# SHA-1 has 20 bytes, a UUID 16, and --build-id=0x... as many as one likes.
_MOST_ID_BYTES: Final = 64


class _Note(NamedTuple):
    owner: bytes
    type: int
    text: bytes


def build_id(image: Image) -> str | None:
    """Give the build-id as hexadecimal digits; None where there is none, or where the notes are damaged before it."""
    for segment in image.segments:
        if segment.type == PT_NOTE:
            for note in _notes(image, segment):
                if note.type == _NT_GNU_BUILD_ID and note.owner == b"GNU\0" and 0 < len(note.text) <= _MOST_ID_BYTES:
                    return note.text.hex()
    return None


def _notes(image: Image, segment: Segment) -> Iterator[_Note]:
    """Give the notes of a segment, up to the first that reaches beyond it or beyond the file."""
    raw = bytes(image.data[segment.offset : segment.offset + min(segment.file_bytes, _MOST_NOTE_BYTES)])
    header = _HEADERS[image.is_little]
    align = 8 if segment.align == 8 else 4
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
