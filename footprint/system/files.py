"""Opens inputs, which may be any file.

Files that are truncated while they are mapped: one error, where the kernel would end the command with SIGBUS.

To read a file instead of mapping it costs 0.5 ms a megabyte and as much memory; the guard costs 2 ms.
"""

import errno
import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, PROT_READ, mmap
from typing import Any, Final
from weakref import ref

from footprint.errors import AccessError, InputError, Note, cause_of
from footprint.system.limits import begin_activity, draw_bytes
from footprint.system.roots import open_path, stat_path

COMPRESSED_STARTS: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
"""How files of gzip, bzip2, xz and zstd begin."""
_START_BYTES: Final = 6
# Of struct siginfo on 64-bit Linux.
_FAULT_ADDR_OFFSET: Final = 16
_MAP_FIXED: Final = 0x10
_SA_SIGINFO: Final = 4
# Python must raise the error, but must not do so within the handler: this signal waits until the handler is left.
_RAISES: Final = signal.SIGURG


class _Guard:
    """The handler of SIGBUS, which is set once there is a map."""

    def __init__(self) -> None:
        self._maps: list[tuple[ref[mmap], int, int, str]] = []
        self._most_maps = 64
        self._truncated = ""
        self._restore: Any = None
        self._before: Any = None
        self._kept: tuple[object, ...] = ()

    def watch(self, mapped: mmap, name: str) -> None:
        """Take a fault in a map for the truncation of its file."""
        if self._restore is None:
            self._set_handler()
        if len(self._maps) > self._most_maps:
            self._maps = [guarded for guarded in self._maps if guarded[0]() is not None]
            self._most_maps = 2 * len(self._maps) + 64
        start_addr = self._addr_of(mapped)
        self._maps.append((ref(mapped), start_addr, start_addr + len(mapped), name))

    def leave(self) -> None:
        """Set the handlers that were there before."""
        if self._restore is not None:
            self._restore()
            signal.signal(_RAISES, self._before)

    def _set_handler(self) -> None:
        import ctypes  # noqa: PLC0415 # small files are read, not mapped

        class Action(ctypes.Structure):
            """The struct sigaction of glibc and musl."""

            _fields_ = (
                ("handler", ctypes.c_void_p),
                ("mask", ctypes.c_uint64 * 16),
                ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p),
            )

        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
        before = Action()

        def restore() -> None:
            libc.sigaction(signal.SIGBUS, ctypes.byref(before), None)

        def on_fault(_signal: int, info: int, _context: int) -> None:
            addr = ctypes.c_size_t.from_address(info + _FAULT_ADDR_OFFSET).value
            for mapped, start_addr, end_addr, name in reversed(self._maps):
                if start_addr <= addr < end_addr and mapped() is not None:
                    # Zeros in place of what is gone let the instruction end.
                    page_addr = addr // PAGESIZE * PAGESIZE
                    flags = MAP_PRIVATE | MAP_ANONYMOUS | _MAP_FIXED
                    libc.mmap(page_addr, end_addr - page_addr, PROT_READ, flags, -1, 0)
                    self._truncated = name
                    libc["raise"](_RAISES)
                    return
            restore()

        handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(on_fault)
        wanted = Action(ctypes.cast(handler, ctypes.c_void_p).value, flags=_SA_SIGINFO)
        # Until the handler is left no signal is taken.
        wanted.mask[:] = [(1 << 64) - 1] * 16
        self._before = signal.signal(_RAISES, self._raise)
        libc.sigaction(signal.SIGBUS, ctypes.byref(wanted), ctypes.byref(before))
        self._restore, self._kept = restore, (handler, libc)

    def _raise(self, *_: object) -> None:
        name, self._truncated = self._truncated, ""
        if name:
            raise InputError(name, "it was truncated while footprint read it")

    @staticmethod
    def _addr_of(mapped: mmap) -> int:
        import ctypes  # noqa: PLC0415 # as above

        # Py_buffer begins with the address, and is 80 bytes long.
        view = (ctypes.c_size_t * 16)()
        exporter = ctypes.py_object(mapped)
        ctypes.pythonapi.PyObject_GetBuffer(exporter, view, 0)
        addr = int(view[0])
        ctypes.pythonapi.PyBuffer_Release(view)
        return addr


_guard: _Guard | None = None


@contextmanager
def guard_maps() -> Iterator[None]:
    """Raise an error where a file is truncated that is mapped in a block: for the command, in its main thread.

    Whoever calls the library decides on the signals of the process, and is not guarded.
    """
    global _guard  # noqa: PLW0603 # signals belong to the process
    _guard = _Guard()
    try:
        yield
    finally:
        _guard.leave()
        _guard = None


def watch_map(mapped: mmap, name: str) -> None:
    """Guard a map, if there is a guard.

    The error is an InputError with this name; it is raised behind the call that read the map.
    """
    if _guard is not None:
        _guard.watch(mapped, name)


StrPath = str | os.PathLike[str]

_inputs: ContextVar[set[tuple[int, int]] | None] = ContextVar("files that were read", default=None)

# Reading such files takes no longer than mapping them, and they may change meanwhile.
_MOST_READ_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_KEPT_DESCRIPTORS = 64
# Files that are read because few descriptors are left stay in memory. Most files of programs are far smaller.
_MOST_COPIED_BYTES = 256 << 20
# The writer of a named pipe may start a little later than footprint.
_LONGEST_WAIT_SECONDS = 2
_WAIT_SECONDS = 0.05


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Keep `footprint.system.whole_file` from replacing a file that a block has read: for the command."""
    before = _inputs.set(set())
    try:
        yield
    finally:
        _inputs.reset(before)


def keep_input(file: int | str) -> None:
    """Count a file, by its descriptor or path, among those that were read."""
    inputs = _inputs.get()
    if inputs is not None:
        facts = os.stat(file)
        inputs.add((facts.st_dev, facts.st_ino))


def inputs_read() -> set[tuple[int, int]]:
    """Return the device and inode of each file that was read; a copy of this process hands over its own."""
    inputs = _inputs.get()
    return set() if inputs is None else inputs


def is_input(facts: os.stat_result) -> bool:
    """Return whether a file was read, by whatever name."""
    return (facts.st_dev, facts.st_ino) in inputs_read()


def open_input(path: str, check: Callable[[bytes], None] | None = None) -> bytes | memoryview:
    """Open a file as bytes: what it holds, or a view of a memory map of a large one; `-` is standard input.

    A device is never read: reading may block or have an effect. A named pipe is given two seconds to get a writer.

    Args:
        path: The file.
        check: Is given the beginning of a pipe, and raises an error where it is not worth to read on.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is not a file, or is a pipe without writer.
        LimitError: Where it is a pipe with more bytes than the limits allow.
    """
    begin_activity("reads standard input" if path == "-" else f"reads {path}")
    if path == "-":
        if sys.stdin is None:
            raise AccessError("standard input", "it is closed")
        return read_all(sys.stdin.fileno(), "standard input", check=check)
    try:
        descriptor = open_path(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise AccessError(path, cause_of(error)) from error
    try:
        facts = os.fstat(descriptor)
        mode = facts.st_mode
        if stat.S_ISREG(mode):
            if facts.st_size <= _MOST_READ_BYTES:
                return memoryview(read_all(descriptor, path, facts.st_size))
            return map_descriptor(descriptor, path)
        if stat.S_ISFIFO(mode):
            return _begin_pipe(descriptor, path) + read_all(descriptor, path, check=check)
        raise InputError(path, "it is a directory" if stat.S_ISDIR(mode) else "it is neither a file nor a pipe")
    finally:
        os.close(descriptor)


def _begin_pipe(descriptor: int, path: str) -> bytes:
    """Wait for the writer of a named pipe, and return the first byte; a pipe without name needs no waiting.

    Raises:
        InputError: Where no writer comes.
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
                # A writer has it open, and has not written yet.
                break
            if not begun and time.monotonic() > until:
                raise InputError(path, "it is a named pipe that nobody writes to")
    os.set_blocking(descriptor, True)
    return begun


def map_descriptor(descriptor: int, name: str) -> bytes | memoryview:
    """Map a regular file. Empty files are read, and files of /proc and /sys, which cannot be mapped.

    Each map holds a descriptor. Where few descriptors are left, as in an audit of a process with a thousand files, all
    files but very large ones are read as well.

    Raises:
        AccessError: Where it can be neither mapped nor read.
        LimitError: Where it cannot be mapped, and is longer than the limits allow.
    """
    try:
        keep_input(descriptor)
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes == 0 or (size_bytes <= _MOST_COPIED_BYTES and not _has_descriptors_left(descriptor)):
            return read_all(descriptor, name, size_bytes)
        mapped = mmap(descriptor, 0, prot=PROT_READ)
        watch_map(mapped, name)
        return memoryview(mapped)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENODEV:
            return read_all(descriptor, name)
        raise AccessError(name, cause_of(error)) from error


def _has_descriptors_left(descriptor: int) -> bool:
    """Return whether enough descriptors are left: the kernel always uses the lowest free number."""
    try:
        number = os.dup(descriptor)
    except OSError:
        return False
    os.close(number)
    return number < os.sysconf("SC_OPEN_MAX") - _KEPT_DESCRIPTORS


def is_compressed(data: bytes | memoryview) -> bool:
    """Return whether a file begins as gzip, bzip2, xz or zstd do."""
    return bytes(data[:_START_BYTES]).startswith(COMPRESSED_STARTS)


def text_of(data: bytes | memoryview, name: str) -> bytes:
    """Return a whole input as a text.

    Raises:
        LimitError: Where it is longer than the limits allow.
    """
    if isinstance(data, bytes):
        return data
    draw_bytes(len(data), name)
    return bytes(data)


def read_all(descriptor: int, name: str, size_bytes: int = 0, check: Callable[[bytes], None] | None = None) -> bytes:
    """Read to the end.

    Args:
        descriptor: The open file.
        name: Its name for errors.
        size_bytes: The size of a file that the disk bounds; more than that is drawn from the budget.
        check: Is given the beginning, and raises an error where it is not worth to read on.

    Raises:
        AccessError: Where reading fails.
        LimitError: Where there is more than the limits allow.
    """
    read = io.BytesIO()
    try:
        keep_input(descriptor)
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            before_bytes = read.tell()
            after_bytes = before_bytes + read.write(chunk)
            draw_bytes(max(0, after_bytes - max(before_bytes, size_bytes)), name)
            if check is not None and after_bytes >= _HEAD_BYTES:
                check(read.getvalue())
                check = None
    except OSError as error:
        raise AccessError(name, cause_of(error)) from error
    return read.getvalue()


def each_once(paths: Iterable[str], notes: list[Note], reached: Callable[[str], str] = str) -> Iterator[str]:
    """Return the paths of different files; a path that leads to a file that was there before becomes a note.

    Args:
        paths: The names of the files.
        notes: Where notes on repeated files are added.
        reached: Returns where a file is, if it is not at its path.
    """
    seen: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        place = _place(reached(path))
        if place not in seen:
            seen[place] = path
            yield path
        elif path == seen[place]:
            notes.append(Note("file-repeated", path, "it is named several times, and counted once"))
        else:
            notes.append(Note("file-repeated", path, f"it is {seen[place]} by another name, and counted once"))


def _place(path: str) -> tuple[int, int] | str:
    """Return what tells files apart; the path, if there is none."""
    try:
        facts = stat_path(path)
    except (OSError, ValueError):
        return path
    return facts.st_dev, facts.st_ino
