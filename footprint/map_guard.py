"""Files that are truncated while they are mapped: one error, where the kernel would end the command with SIGBUS.

To read a file instead of mapping it costs 0.5 ms a megabyte and as much memory; the guard costs 2 ms.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, PROT_READ, mmap
from typing import Any, Final
from weakref import ref

from footprint.errors import InputError

__all__ = ("guard_maps", "watch_map")

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
            self._maps = [one for one in self._maps if one[0]() is not None]
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
        held = ctypes.py_object(mapped)
        ctypes.pythonapi.PyObject_GetBuffer(held, view, 0)
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
