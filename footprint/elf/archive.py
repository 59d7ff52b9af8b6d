"""The members of a static library (`.a`): names and bytes, GNU, BSD and thin.

Source: ar(5) of 4.4BSD; binutils 2.40 documentation of ar (thin archives); System V ABI (archive symbol table).
"""

from collections.abc import Iterator
from typing import Final

from footprint.elf.image import ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC, Buffer
from footprint.errors import InputError
from footprint.members import NamedTuple, lazy_pattern
from footprint.system.limits import draw_entries
from footprint.text.units import decimal

_HEADER_BYTES: Final = 60
_LONGEST_NAME: Final = 1 << 14
_LONG_NAME: Final = lazy_pattern(rb"/([0-9]{1,15})(?::[0-9]{1,15})?")
_INDEXES: Final = frozenset({"/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64"})


class ArchiveMember(NamedTuple):
    """One member of an archive.

    Attributes:
        name: As the archive has it; bytes that are not UTF-8 as surrogates. In a thin archive a path relative to the
            archive's folder.
        data: Its bytes; None in a thin archive, which only names the file.
    """

    name: str
    data: Buffer | None


def read_members(data: Buffer, file: str) -> Iterator[ArchiveMember]:
    """Return the members of an archive in their order, without its own indexes.

    Raises:
        InputError: Where a header is damaged or a member reaches beyond the end, after the members before it.
        LimitError: Where there are more members than the limits allow.
    """
    is_thin = bytes(data[:8]) == THIN_ARCHIVE_MAGIC
    long_names = b""
    offset = len(ARCHIVE_MAGIC)
    while offset < len(data):
        header = bytes(data[offset : offset + _HEADER_BYTES])
        if len(header) < _HEADER_BYTES or header[58:60] != b"`\n":
            raise InputError(file, "the header of an archive member is damaged", offset)
        size_bytes = decimal(header[48:58].strip())
        if size_bytes is None:
            raise InputError(file, "the size of an archive member is not a number", offset + 48)
        header_offset, body = offset, offset + _HEADER_BYTES
        raw_name = header[:16].rstrip()
        is_inside = not is_thin or raw_name in {b"/", b"//", b"/SYM64/"}
        if is_inside and body + size_bytes > len(data):
            raise InputError(file, f"an archive member of {size_bytes} bytes reaches beyond the end", offset)
        contents = data[body : body + size_bytes] if is_inside else None
        offset = body + (size_bytes + size_bytes % 2 if is_inside else 0)
        if raw_name == b"//" and contents is not None:
            long_names = bytes(contents)
            continue
        name, skip_bytes = _name(raw_name, contents, long_names, file, header_offset)
        draw_entries(1, file)
        if name not in _INDEXES:
            yield ArchiveMember(name, contents[skip_bytes:] if contents is not None else None)


def _name(raw: bytes, contents: Buffer | None, long_names: bytes, file: str, offset: int) -> tuple[str, int]:
    """Return the name of a member, and how many bytes of its contents the name takes (BSD)."""
    if raw.startswith(b"#1/") and (length := decimal(raw[3:])) is not None and contents is not None:
        size_bytes = min(length, len(contents), _LONGEST_NAME)
        return _text(bytes(contents[:size_bytes]).rstrip(b"\0")), size_bytes
    if raw.startswith(b"/") and (place := _LONG_NAME.fullmatch(raw)):
        # In a thin archive of archives the name is that of the inner archive; the offset in it follows.
        start = int(place[1])
        end = long_names.find(b"\n", start, start + _LONGEST_NAME)
        if start >= len(long_names):
            return "", 0
        if end < 0:
            raise InputError(file, "the name of an archive member has no end", offset)
        return _text(long_names[start:end].removesuffix(b"/")), 0
    if raw in {b"/", b"/SYM64/"}:
        return _text(raw), 0
    return _text(raw.removesuffix(b"/")), 0


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
