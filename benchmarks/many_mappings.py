"""A process with a given number of mappings: `python many_mappings.py 30000`.

It maps one block of pages and makes every second page read-only, so that the kernel keeps one mapping per page. It
prints its number of mappings, and waits until its standard input is closed.

Source: mmap(2), mprotect(2); asm-generic/mman.h of Linux 6.18 for the constants.
"""

import ctypes
import os
import sys
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, PROT_READ, PROT_WRITE

_FAILED = ctypes.c_void_p(-1).value


def make(count: int) -> None:
    """Make `count` mappings, each of one written page.

    Raises:
        OSError: Where the kernel refuses: `vm.max_map_count` limits the mappings of a process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size_bytes = count * PAGESIZE
    block = libc.mmap(None, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if block == _FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mmap")
    ctypes.memset(block, 1, size_bytes)
    for addr in range(block, block + size_bytes, 2 * PAGESIZE):
        if libc.mprotect(addr, PAGESIZE, PROT_READ):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mprotect")


if __name__ == "__main__":
    try:
        make(int(sys.argv[1]))
    except OSError as error:
        sys.exit(f"{sys.argv[1]} mappings: {error}")
    with open("/proc/self/maps", "rb") as maps:
        print(sum(1 for _ in maps), flush=True)
    sys.stdin.read()
