"""System calls that Python lacks: ptrace(2), and any other by its number."""

import ctypes
import os

__all__ = ("LIBC", "os_error", "ptrace", "system_call")

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
    answer = int(LIBC.syscall(ctypes.c_long(number), *(ctypes.c_ulong(one) for one in arguments)))
    if answer == -1:
        raise os_error()
    return answer
