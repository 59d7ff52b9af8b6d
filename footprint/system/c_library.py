"""Calls of the C library without the package ctypes, whose import takes longer than a short answer has.

`_ctypes` is what that package is made of: its C part.
"""

import _ctypes
import ctypes
import os
from functools import cache
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = LIBC.syscall.restype = ctypes.c_long


def os_error() -> OSError:
    """Return the error of the last call of `LIBC`."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def ptrace(request: int, task: int, data: int = 0) -> None:
    """Send a ptrace request for a thread.

    Raises:
        OSError: Where the kernel refuses the request.
    """
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), None, ctypes.c_void_p(data)) == -1:
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
