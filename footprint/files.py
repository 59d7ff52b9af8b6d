"""Opening files that may be anything: the only place where inputs are read."""

import mmap
import os
import stat
import sys

from footprint.errors import AccessError, InputError

__all__ = ("map_descriptor", "open_input", "read_all")

# Texts beyond this are no memory map of one process; ELF files are mapped, not read, and have no such limit.
MOST_TEXT_BYTES = 2 << 30


def open_input(path: str) -> bytes | memoryview:
    """Open a file as bytes: a view of a memory map, or, for a pipe and `-` (standard input), what it holds.

    A device is never read: it may block, or do something when it is.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is no file, or longer than any text that footprint reads.
    """
    if path == "-":
        if sys.stdin is None:
            raise AccessError("standard input", "it is closed")
        return read_all(sys.stdin.fileno(), "standard input")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise AccessError(path, cause) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return map_descriptor(descriptor, path)
        if stat.S_ISFIFO(mode):
            return read_all(descriptor, path)
        raise InputError(path, "it is a directory" if stat.S_ISDIR(mode) else "it is neither a file nor a pipe")
    finally:
        os.close(descriptor)


def map_descriptor(descriptor: int, name: str) -> bytes | memoryview:
    """Map a regular file; an empty one, and one of /proc that claims to be, is read."""
    if os.fstat(descriptor).st_size == 0:
        return read_all(descriptor, name)
    return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))


def read_all(descriptor: int, name: str) -> bytes:
    """Read to the end, up to the cap on texts.

    Raises:
        AccessError: Where reading fails.
        InputError: Where there is more than the cap.
    """
    chunks, total_bytes = [], 0
    try:
        while chunk := os.read(descriptor, 1 << 20):
            chunks.append(chunk)
            total_bytes += len(chunk)
            if total_bytes > MOST_TEXT_BYTES:
                raise InputError(name, "longer than any text that footprint reads", MOST_TEXT_BYTES)
    except OSError as error:
        raise AccessError(name, error.strerror or str(error)) from error
    return b"".join(chunks)
