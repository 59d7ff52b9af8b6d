"""The text of a profile in pieces, compressed or not."""

import bz2
import gzip
import io
import mmap
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Final, cast

from footprint.errors import InputError, UnsupportedError
from footprint.heap.profile import Buffer

__all__ = ("PIECE_BYTES", "lines_of", "pieces_of")

PIECE_BYTES: Final = 1 << 18
_MOST_INFLATED_BYTES: Final = 2 << 30
_MOST_LINE_BYTES: Final = 16 << 20
_KEPT_BYTES: Final = 4 << 20
_GZIP, _BZIP2, _ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"


class _View(io.RawIOBase):
    """A file object over bytes in memory, without copying them."""

    def __init__(self, data: memoryview) -> None:
        self._rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 # collections.abc.Buffer came with 3.12
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def pieces_of(data: Buffer, source: str) -> Iterator[bytes]:
    """Read a text in pieces of limited size; gzip, bzip2 and zstd are decompressed on the way.

    Raises:
        InputError: Where compressed data is damaged, or larger than any profile once decompressed.
        UnsupportedError: Where this Python cannot decompress zstd.
    """
    view = memoryview(data)
    start = bytes(view[:4])
    if start.startswith(_GZIP):
        return _inflated(cast("IO[bytes]", gzip.GzipFile(fileobj=_View(view))), source)
    if start.startswith(_BZIP2):
        return _inflated(cast("IO[bytes]", bz2.BZ2File(cast("IO[bytes]", _View(view)))), source)
    if start.startswith(_ZSTD):
        return _inflated(_zstd_file(view, source), source)
    return _plain(view)


def _plain(view: memoryview) -> Iterator[bytes]:
    """Cut a text into pieces, and release read pages of a mapped file: it may be larger than the memory."""
    mapped = view.obj if isinstance(view.obj, mmap.mmap) and len(view.obj) == len(view) else None
    for at in range(0, len(view), PIECE_BYTES):
        yield bytes(view[at : at + PIECE_BYTES])
        if mapped is not None and at % _KEPT_BYTES == 0:
            mapped.madvise(mmap.MADV_DONTNEED)


def _zstd_file(view: memoryview, source: str) -> IO[bytes]:
    with suppress(ImportError):
        return cast("IO[bytes]", import_module("compression.zstd").ZstdFile(_View(view)))
    try:
        reader = import_module("zstandard").ZstdDecompressor(max_window_size=1 << 27)
    except ImportError:
        cause = "compressed with zstd, which needs Python 3.14 or the package `zstandard`; or decompress it first"
        raise UnsupportedError(source, cause, 0) from None
    return cast("IO[bytes]", reader.stream_reader(_View(view), read_across_frames=True))


def _inflated(file: IO[bytes], source: str) -> Iterator[bytes]:
    total_bytes = 0
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
        total_bytes += len(piece)
        if total_bytes > _MOST_INFLATED_BYTES:
            raise InputError(source, f"it decompresses to more than {_MOST_INFLATED_BYTES:,} bytes")
        yield piece


def lines_of(pieces: Iterable[bytes], source: str) -> Iterator[tuple[int, list[bytes]]]:
    """Split pieces into lists of lines without line ends, each list with the offset of its first line.

    Raises:
        InputError: Where a line is longer than any line of a profile.
    """
    carry, offset = b"", 0
    for piece in pieces:
        text = carry + piece
        *lines, carry = text.split(b"\n")
        if len(carry) > _MOST_LINE_BYTES:
            raise InputError(source, "a line that is longer than any line of a profile", offset)
        if lines:
            yield offset, lines
            offset += len(text) - len(carry)
    if carry:
        yield offset, [carry]
