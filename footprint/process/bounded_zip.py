"""A zip file from an untrusted source: all sizes are checked before a member is read.

Members are read into memory and never written, so their names can do no harm.

Source: APPNOTE.TXT 6.3.10 (.ZIP File Format Specification).
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from footprint.errors import InputError
from footprint.system.decompression import readable_view
from footprint.system.limits import draw_entries

MOST_TOTAL_BYTES: Final = 2 << 30
_RATIO_FROM_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 20
_COPIED_BYTES: Final = 64 << 20

_END: Final = struct.Struct("<4s4H2IH")
_ENTRY_START: Final = b"PK\x01\x02"
_LOCATOR_64_BYTES: Final = 20
# The exceptions that zipfile raises for a damaged file.
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class ZipLimits(NamedTuple):
    """What a zip file may claim; what stands here is for captures.

    Attributes:
        file_bytes: The size of the file.
        member_bytes: The size of a member.
        total_bytes: The sizes of all members.
        directory_bytes: The size of its directory, with about 60 bytes a member: room for a hundred thousand.
        ratio: How far a large member may shrink. A hundred thousand equal mappings shrink to 1/88, zeros to 1/1032.
        entries_a_member: How many entries of the budget a member takes.
    """

    file_bytes: int = 1 << 30
    member_bytes: int = 1 << 30
    total_bytes: int = MOST_TOTAL_BYTES
    directory_bytes: int = 4 << 20
    ratio: int = 150
    entries_a_member: int = 1


_OF_CAPTURES: Final = ZipLimits()


class BoundedZip:
    """The members of a zip file.

    Attributes:
        members: What its directory tells of each, by name.

    Raises:
        InputError: Where the file is cut or damaged, has two members of one name, or claims sizes beyond the limits.
        LimitError: Where its directory has more members than the budget allows.
    """

    def __init__(self, data: bytes | memoryview, source: str, limits: ZipLimits = _OF_CAPTURES) -> None:
        self._source = source
        self._limits = limits
        self._check_end(data)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data) if len(data) <= _COPIED_BYTES else readable_view(data))
            members = self._archive.infolist()
        except _DAMAGE as error:
            raise InputError(source, f"a damaged zip file: {_words(error)}") from error
        self.members = {member.filename: member for member in members}
        if len(self.members) < len(members):
            raise InputError(source, "a zip file with two members of the same name")
        total_bytes = sum(member.file_size for member in members)
        if total_bytes > limits.total_bytes:
            raise InputError(source, f"its members claim {total_bytes} bytes, more than {limits.total_bytes}")
        packed_bytes = sum(member.compress_size for member in members)
        if packed_bytes > len(data):
            # Otherwise members could overlap, and the ratios checked below would mean nothing.
            raise InputError(source, f"its members claim {packed_bytes} packed bytes, it has {len(data)}")
        for member in members:
            self._check(member)

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def read(self, name: str, most_bytes: int) -> bytes:
        """Read a whole member.

        Raises:
            InputError: Where no member has that name, it is larger than `most_bytes`, or it is damaged.
        """
        size_bytes = self._member(name).file_size
        if size_bytes > most_bytes:
            raise InputError(self._source, f"{name} claims {size_bytes} bytes, more than {most_bytes}")
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Read a member in pieces of about 1 MiB; it raises the errors of `read`."""
        member = self._member(name)
        left_bytes = member.file_size
        try:
            with self._archive.open(member) as stream:
                # zipfile never unpacks more bytes than the call asks for.
                while left_bytes and (piece := stream.read(min(left_bytes, _CHUNK_BYTES))):
                    left_bytes -= len(piece)
                    yield piece
        except _DAMAGE as error:
            raise InputError(self._source, f"{name} is damaged: {_words(error)}") from error
        if left_bytes:
            raise InputError(self._source, f"{name} is cut: {left_bytes} bytes of it are missing")

    def _member(self, name: str) -> zipfile.ZipInfo:
        member = self.members.get(name)
        if member is None:
            raise InputError(self._source, f"it has no member {name}")
        return member

    def _check_end(self, data: bytes | memoryview) -> None:
        """Check the end record first: zipfile would trust it and read a directory of any size."""
        most_bytes = self._limits.file_bytes
        if len(data) > most_bytes:
            raise InputError(self._source, f"a zip file of {len(data)} bytes: footprint reads at most {most_bytes}")
        end_at = max(0, len(data) - _END.size)
        end = bytes(data[end_at:])
        # Captures and packages have no comment. With one, zipfile would search the file for the record.
        if len(end) < _END.size or not end.startswith(b"PK\x05\x06") or not end.endswith(b"\0\0"):
            raise InputError(self._source, "the file is cut: it does not end with the end record of a zip", len(data))
        if bytes(data[max(0, end_at - _LOCATOR_64_BYTES) : end_at]).startswith(b"PK\x06\x07"):
            raise InputError(self._source, "a zip file of more than 4 GiB (zip64)", end_at - _LOCATOR_64_BYTES)
        directory_bytes = _END.unpack(end)[5]
        if directory_bytes > self._limits.directory_bytes:
            raise InputError(self._source, f"its directory claims {directory_bytes} bytes", end_at)
        # zipfile keeps some hundred bytes of each, whatever number of them the end record claims.
        member_count = bytes(data[max(0, end_at - directory_bytes) : end_at]).count(_ENTRY_START)
        draw_entries(member_count * self._limits.entries_a_member, self._source)

    def _check(self, member: zipfile.ZipInfo) -> None:
        if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise InputError(self._source, f"{member.filename} is packed by method {member.compress_type}, not deflate")
        is_large = member.file_size > _RATIO_FROM_BYTES
        is_bomb = is_large and member.file_size > member.compress_size * self._limits.ratio
        if is_bomb or member.file_size > self._limits.member_bytes:
            cause = f"{member.filename} claims {member.file_size} bytes, packed into {member.compress_size}"
            raise InputError(self._source, cause)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
