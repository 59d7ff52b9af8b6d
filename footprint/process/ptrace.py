"""The system call ptrace(2)."""

import ctypes
import os

__all__ = ("ptrace",)

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.restype = ctypes.c_long


def ptrace(request: int, task: int, data: int = 0) -> None:
    """Send a ptrace request for a thread.

    Raises:
        OSError: Where the kernel refuses the request.
    """
    if _LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), None, ctypes.c_void_p(data)) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
