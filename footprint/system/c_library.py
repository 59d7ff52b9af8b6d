"""Calls of the C library: through `_ctypes`, the C part of ctypes, where a short answer needs them."""

import _ctypes
import ctypes
import errno
import os
from functools import cache
from typing import Any, Final

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = LIBC.syscall.restype = ctypes.c_long

_KCMP_NUMBERS: Final = {
    "x86_64": 312,
    "i686": 349,
    "aarch64": 272,
    "riscv64": 272,
    "armv7l": 378,
    "ppc64le": 354,
    "s390x": 343,
}
_ORDER: Final = {0: 0, 1: -1, 2: 1}


def os_error() -> OSError:
    """Return the error of the last call of `LIBC`."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def ptrace(request: int, task: int, data: int = 0, addr: int = 0) -> None:
    """Send a ptrace request for a thread.

    Raises:
        OSError: Where the kernel refuses the request.
    """
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), ctypes.c_void_p(addr), ctypes.c_void_p(data)) == -1:
        raise os_error()


def system_call(number: int, *arguments: int) -> int:
    """Call the kernel by the number of the call on this machine (syscall(2)).

    Raises:
        OSError: Where the kernel refuses.
    """
    answer = int(LIBC.syscall(ctypes.c_long(number), *(ctypes.c_ulong(argument) for argument in arguments)))
    if answer == -1:
        raise os_error()
    return answer


class _Char(_ctypes._SimpleCData):  # type: ignore[type-arg] # it takes none  # noqa: SLF001 # it has no other name
    _type_ = "c"


def call(name: str, *arguments: object) -> int:
    """Call a function that returns an int.

    Args:
        name: The function.
        arguments: Integers of 32 bits, bytes, a buffer, None, or values of ctypes.
    """
    return int(_ctypes.call_function(_function_addr(name), arguments))


def prctl(option: int, *arguments: object) -> int:
    """Call the function of this name; the arguments that are not given are 0."""
    return call("prctl", option, *arguments, *(0,) * (4 - len(arguments)))


def buffer(contents: bytes) -> Any:  # noqa: ANN401 # a type of this size
    """Return memory with these contents, which calls can write to; `memoryview` reads it."""
    memory = type("_Buffer", (_ctypes.Array,), {"_type_": _Char, "_length_": len(contents)})()
    memoryview(memory).cast("B")[:] = contents
    return memory


def addr_of(memory: Any) -> int:  # noqa: ANN401 # as above
    """Return the address of a buffer, for a structure that points to it."""
    return int(_ctypes.addressof(memory))


@cache
def _function_addr(name: str) -> int:
    # Without a name: what the interpreter has loaded.
    return _ctypes.dlsym(_ctypes.dlopen(None, os.RTLD_NOW), name)  # type: ignore[arg-type] # the stub lacks None


def kcmp(kind: int, pid: int, other: int, first: int = 0, second: int = 0) -> int:
    """Compare what the kernel has for two processes: 0 where it is the same, else an order.

    Args:
        kind: What is compared, as in kcmp(2).
        pid: A process.
        other: Another one.
        first: The descriptor of the first, where descriptions are compared.
        second: That of the other.

    Raises:
        OSError: Where the kernel refuses, or one of them is gone.
    """
    number = _KCMP_NUMBERS.get(os.uname().machine)
    answer = -1 if number is None else call("syscall", number, pid, other, kind, first, second)
    if answer not in _ORDER:
        raise OSError(errno.EPERM, "the kernel does not compare them")
    return _ORDER[answer]
