"""The one call by which others are traced: ptrace(2)."""

import ctypes
import os

__all__ = ("ptrace",)

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.restype = ctypes.c_long


def ptrace(request: int, task: int, data: int = 0) -> None:
    """Ask the kernel for something about a traced thread.

    Raises:
        OSError: Where the kernel refuses.
    """
    if _LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), None, ctypes.c_void_p(data)) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
