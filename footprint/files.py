"""Opening files that may be anything, the only place where inputs are read; and writing files whole."""

import errno
import io
import mmap
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from footprint.errors import AccessError, InputError

__all__ = ("StrPath", "map_descriptor", "open_input", "read_all", "text_of", "whole_file")

StrPath = str | os.PathLike[str]

# Texts beyond this are no memory map of one process; large ELF files are mapped, not read, and have no such limit.
MOST_TEXT_BYTES = 2 << 30
# A file that is truncated while it is mapped (a linker or `cp` at work) kills who reads the map: what is not large is
# read instead, which takes no longer. The files of live processes stay mapped: their truncation kills these as well.
_MOST_READ_BYTES = 8 << 20
_KEPT_DESCRIPTORS = 64
# What is read for want of descriptors stays in memory: most files of programs are far smaller than this.
_MOST_COPIED_BYTES = 256 << 20
# Who writes to a named pipe may begin a little later than we do.
_LONGEST_WAIT_SECONDS = 2
_WAIT_SECONDS = 0.05


def open_input(path: str) -> bytes | memoryview:
    """Open a file as bytes: what it holds, or a view of a memory map of a large one; `-` is standard input.

    A device is never read: it may block, or do something when it is. Of a named pipe a writer is waited for, not long.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is no file, or a pipe that nobody writes to, or longer than any text that footprint reads.
    """
    if path == "-":
        if sys.stdin is None:
            raise AccessError("standard input", "it is closed")
        return read_all(sys.stdin.fileno(), "standard input")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise AccessError(path, cause) from error
    try:
        facts = os.fstat(descriptor)
        mode = facts.st_mode
        if stat.S_ISREG(mode):
            if facts.st_size <= _MOST_READ_BYTES:
                return memoryview(read_all(descriptor, path))
            return map_descriptor(descriptor, path)
        if stat.S_ISFIFO(mode):
            return _begin_pipe(descriptor, path) + read_all(descriptor, path)
        raise InputError(path, "it is a directory" if stat.S_ISDIR(mode) else "it is neither a file nor a pipe")
    finally:
        os.close(descriptor)


def _begin_pipe(descriptor: int, path: str) -> bytes:
    """Wait a moment for who writes to a named pipe, and give what is there; a pipe without a name has a writer, or had.

    Raises:
        InputError: Where nobody comes.
    """
    import select  # noqa: PLC0415 # few inputs are pipes
    import time  # noqa: PLC0415 # the same

    begun = b""
    if not os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:"):
        until = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not begun and not select.select([descriptor], [], [], _WAIT_SECONDS)[0]:
            try:
                begun = os.read(descriptor, 1)
            except BlockingIOError:
                # Somebody has it open, and has not written yet.
                break
            if not begun and time.monotonic() > until:
                raise InputError(path, "it is a named pipe that nobody writes to")
    os.set_blocking(descriptor, True)
    return begun


def map_descriptor(descriptor: int, name: str) -> bytes | memoryview:
    """Map a regular file; an empty one, one of /proc that claims to be, and one of /sys is read.

    Each map holds a descriptor as long as it is there. Where few are left, as in an audit of a process with a thousand
    files, all but a very large one is read, too.

    Raises:
        AccessError: Where it can be neither mapped nor read.
        InputError: Where it cannot be mapped, and is longer than any text that footprint reads.
    """
    try:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes == 0 or (size_bytes <= _MOST_COPIED_BYTES and not _has_descriptors_left(descriptor)):
            return read_all(descriptor, name)
        return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENODEV:
            return read_all(descriptor, name)
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise AccessError(name, cause) from error


def _has_descriptors_left(descriptor: int) -> bool:
    """Tell whether a map leaves some to others: numbers are given from the lowest on, so that a high one tells."""
    try:
        number = os.dup(descriptor)
    except OSError:
        return False
    os.close(number)
    return number < os.sysconf("SC_OPEN_MAX") - _KEPT_DESCRIPTORS


def text_of(data: bytes | memoryview, name: str) -> bytes:
    """Give a whole input as the text that it is.

    Raises:
        InputError: Where it is longer than the cap.
    """
    if len(data) > MOST_TEXT_BYTES:
        raise InputError(name, "longer than any text that footprint reads", MOST_TEXT_BYTES)
    return bytes(data)


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


@contextmanager
def whole_file(path: str, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Give a file to write to, which becomes `path` when all went well; else what stood there stays.

    A pipe or a device is not replaced: it is written in the end, and gets all or nothing too.

    Args:
        path: Where to write.
        mode: The permissions of the file, less those that the umask takes.

    Raises:
        OSError: Where it cannot be written.
    """
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        held = io.BytesIO()
        yield held
        with open(path, "wb") as device:
            device.write(held.getvalue())
        return
    # In the same folder, since a file is renamed at once only within its file system.
    temporary = os.path.join(os.path.dirname(os.path.abspath(path)), f".footprint-{os.urandom(8).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
