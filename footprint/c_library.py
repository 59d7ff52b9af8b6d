"""Calls of the C library without the package ctypes, whose import takes longer than a short answer has.

`_ctypes` is what that package is made of: its C part.
"""

import _ctypes
import os
from functools import cache
from typing import Any

__all__ = ("addr_of", "buffer", "call", "prctl")


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
    held = type("_Buffer", (_ctypes.Array,), {"_type_": _Char, "_length_": len(contents)})()
    memoryview(held).cast("B")[:] = contents
    return held


def addr_of(held: Any) -> int:  # noqa: ANN401 # as above
    """Return the address of a buffer, for a structure that points to it."""
    return int(_ctypes.addressof(held))


@cache
def _function_addr(name: str) -> int:
    # Without a name: what the interpreter has loaded.
    return _ctypes.dlsym(_ctypes.dlopen(None, os.RTLD_NOW), name)  # type: ignore[arg-type] # the stub lacks None
