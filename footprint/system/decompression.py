"""Texts in pieces, compressed or not: profiles of allocators, and what the kernel says of a process."""

import io
import mmap
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import IO, Any, Final, cast

from footprint.errors import InputError, UnsupportedError
from footprint.system.files import COMPRESSED_STARTS, is_compressed
from footprint.system.limits import unpacked

PIECE_BYTES: Final = 1 << 18
# Of what need not be unpacked: the C library maps larger pieces anew, page by page, each time.
_PLAIN_PIECE_BYTES: Final = 1 << 16
_MOST_LINE_BYTES: Final = 16 << 20
_KEPT_BYTES: Final = 4 << 20
_GZIP, _BZIP2, _XZ, _ZSTD = COMPRESSED_STARTS
_ZSTD_FRAME, _ZSTD_SKIPPABLE = 0xFD2FB528, 0x184D2A50
_START_BYTES: Final = 6
_MOST_XZ_MEMORY_BYTES: Final = 256 << 20


class _View(io.RawIOBase):
    """A file object over bytes in memory, without copying them."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 # collections.abc.Buffer came with 3.12
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def readable_view(data: bytes | memoryview) -> IO[bytes]:
    """Return a file object over bytes in memory, or a memory map, without copying them."""
    return io.BufferedReader(_View(memoryview(data)))


def pieces_of(data: bytes | memoryview, source: str) -> Iterator[bytes]:
    """Read a text in pieces of limited size; gzip, bzip2, xz and zstd are decompressed on the way.

    Raises:
        InputError: Where compressed data is damaged.
        LimitError: Where it is larger than the limits allow once decompressed.
        UnsupportedError: Where this Python cannot decompress zstd or xz.
    """
    if not is_compressed(data):
        return plain_pieces(memoryview(data), 0, len(data))
    return unpacked(unpacked_pieces(memoryview(data), source), len(data), source)


def unpacked_pieces(view: memoryview, source: str) -> Iterator[bytes]:
    """Decompress in pieces of limited size, however many there are: the caller limits them.

    Raises:
        InputError: Where compressed data is damaged.
        UnsupportedError: Where this Python cannot decompress zstd or xz.
    """
    start = bytes(view[:_START_BYTES])
    if start.startswith(_GZIP):
        import gzip  # noqa: PLC0415 # most texts are not compressed

        return _inflated(cast("IO[bytes]", gzip.GzipFile(fileobj=_View(view))), source)
    if start.startswith(_BZIP2):
        import bz2  # noqa: PLC0415 # the same

        return _inflated(cast("IO[bytes]", bz2.BZ2File(cast("IO[bytes]", _View(view)))), source)
    if start.startswith(_XZ):
        return _unpacked_xz(view, source)
    return _inflated(_zstd_file(view, source), source)


def plain_pieces(view: memoryview, start: int, end: int) -> Iterator[bytes]:
    """Cut a part of a text into pieces, and release read pages of a mapped file: it may be larger than the memory."""
    mapped = view.obj if isinstance(view.obj, mmap.mmap) and len(view.obj) == len(view) else None
    for at in range(start, end, _PLAIN_PIECE_BYTES):
        yield bytes(view[at : min(at + _PLAIN_PIECE_BYTES, end)])
        if mapped is not None and (at - start) % _KEPT_BYTES == 0:
            mapped.madvise(mmap.MADV_DONTNEED)


def _unpacked_xz(view: memoryview, source: str) -> Iterator[bytes]:
    try:
        import lzma  # noqa: PLC0415 # few files are compressed so, and some builds of Python have no lzma
    except ImportError:
        raise UnsupportedError(source, "compressed with xz, and this Python has no lzma", 0) from None
    rest = view
    while rest:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_MEMORY_BYTES)
        while not unpacker.eof:
            given, rest = (rest[:PIECE_BYTES], rest[PIECE_BYTES:]) if unpacker.needs_input else (view[:0], rest)
            if unpacker.needs_input and not given:
                raise InputError(source, "the compressed data is damaged: it is cut")
            try:
                piece = unpacker.decompress(bytes(given), PIECE_BYTES)
            except lzma.LZMAError as error:
                raise InputError(source, f"the compressed data is damaged: {error}") from error
            yield piece
        # Another stream may follow, after zeros.
        rest = view[len(view) - len(rest) - len(unpacker.unused_data) :]
        begin = bytes(rest[:PIECE_BYTES])
        rest = rest[len(begin) - len(begin.lstrip(b"\0")) :]


def _zstd_file(view: memoryview, source: str) -> IO[bytes]:
    if not _is_whole_zstd(view):
        # The module reads to the cut, and reports nothing where a frame begins there.
        raise InputError(source, "the compressed data is damaged: it is cut")
    try:
        return cast("IO[bytes]", zstd_module().ZstdFile(_View(view)))
    except ImportError:
        cause = "compressed with zstd, which needs Python 3.14 or the package `backports.zstd`; or decompress it first"
        raise UnsupportedError(source, cause, 0) from None


def zstd_module() -> Any:  # noqa: ANN401 # a module
    """Import the module for zstd of Python 3.14, or its backport.

    Raises:
        ImportError: Where there is none.
    """
    try:
        return import_module("compression.zstd")
    except ImportError:
        return import_module("backports.zstd")


def _is_whole_zstd(view: memoryview) -> bool:
    """Return whether data ends at the end of a frame, by the sizes of its blocks; other damage is found later.

    Source: RFC 8878, section 3.1.
    """

    def number(size_bytes: int) -> int:
        return int.from_bytes(view[at : at + size_bytes], "little")

    at = 0
    while at < len(view):
        magic, at = number(4), at + 4
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
            at += 4 + number(4)
            continue
        if magic != _ZSTD_FRAME:
            return True
        flags = number(1)
        is_one_segment = flags >> 5 & 1
        at += 1 + (1 - is_one_segment) + (0, 1, 2, 4)[flags & 3] + (is_one_segment, 2, 4, 8)[flags >> 6]
        is_last = 0
        while not is_last:
            if at + 3 > len(view):
                return False
            block, at = number(3), at + 3
            is_last, is_repeated_byte = block & 1, block >> 1 & 3 == 1
            at += 1 if is_repeated_byte else block >> 3
        at += 4 if flags & 4 else 0
    return at == len(view)


def _inflated(file: IO[bytes], source: str) -> Iterator[bytes]:
    import zlib  # noqa: PLC0415 # most texts are not compressed

    while True:
        try:
            piece = file.read(PIECE_BYTES)
        # The errors of the zstd modules have no common base class, and the modules may be missing.
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise InputError(source, f"the compressed data is damaged: {error}") from error
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise InputError(source, f"the compressed data is damaged: {error}") from error
        if not piece:
            return
        yield piece


def texts_of(pieces: Iterable[bytes], source: str) -> Iterator[tuple[int, bytes]]:
    """Cut pieces at line ends; yield whole lines as one text without the last line end, with the offset of the text.

    Raises:
        InputError: Where a line is longer than any line of a profile.
    """
    carry, offset = b"", 0
    for piece in pieces:
        text = carry + piece
        end = text.rfind(b"\n")
        carry = text[end + 1 :]
        if len(carry) > _MOST_LINE_BYTES:
            raise InputError(source, "a line that is longer than any line of a profile", offset)
        if end >= 0:
            yield offset, text[:end]
            offset += end + 1
    if carry:
        yield offset, carry


def lines_of(pieces: Iterable[bytes], source: str) -> Iterator[tuple[int, list[bytes]]]:
    """Split pieces into lists of lines without line ends, each list with the offset of its first line.

    Raises:
        InputError: Where a line is longer than any line of a profile.
    """
    return ((offset, text.split(b"\n")) for offset, text in texts_of(pieces, source))


def whole_of(pieces: Iterable[bytes], most_bytes: int, source: str) -> bytes:
    """Return the pieces of a text as one.

    Raises:
        UnsupportedError: Where it is longer than the limit.
    """
    parts, total_bytes = [], 0
    for piece in pieces:
        total_bytes += len(piece)
        if total_bytes > most_bytes:
            raise UnsupportedError(source, f"longer than {most_bytes:,} bytes: too long to hold in memory")
        parts.append(piece)
    return b"".join(parts)
