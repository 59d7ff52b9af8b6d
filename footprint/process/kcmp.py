"""Compare what the kernel has for two processes: open file descriptions, and address spaces.

clone(CLONE_VM) gives two processes one address space, and vfork(2) does until the child executes a program.

Source: kcmp(2), clone(2).
"""

import errno
import os
from collections.abc import Mapping
from typing import Final

from footprint.system.c_library import call

_NUMBERS: Final = {
    "x86_64": 312,
    "i686": 349,
    "aarch64": 272,
    "riscv64": 272,
    "armv7l": 378,
    "ppc64le": 354,
    "s390x": 343,
}
_FILE, _VM = 0, 1
_ORDER: Final = {0: 0, 1: -1, 2: 1}


def description_order(first: tuple[int, int], other: tuple[int, int]) -> int:
    """Compare two descriptors, each a process and a number: 0 where both are one description, else an order.

    Raises:
        OSError: Where the kernel refuses, or one of them is gone.
    """
    return _compare(first[0], other[0], _FILE, first[1], other[1])


def address_space_order(pid: int, other: int) -> int:
    """Compare the address spaces of two processes: 0 where they have the same, else an order.

    Raises:
        OSError: As `description_order` does.
    """
    return _compare(pid, other, _VM, 0, 0)


def _compare(pid: int, other: int, kind: int, first: int, second: int) -> int:
    number = _NUMBERS.get(os.uname().machine)
    answer = -1 if number is None else call("syscall", number, pid, other, kind, first, second)
    if answer not in _ORDER:
        raise OSError(errno.EPERM, "the kernel does not compare them")
    return _ORDER[answer]


def first_of_address_spaces(places: Mapping[int, object]) -> dict[int, int | None]:
    """Return for each of some processes the first one with the same address space; None where the kernel refuses.

    Only processes of one place are compared. The kernel's order finds one among n others by log n comparisons.

    Args:
        places: By process, where its program lies.
    """
    by_place: dict[object, list[int]] = {}
    first_by_pid: dict[int, int | None] = {}
    for pid, place in places.items():
        ordered = by_place.setdefault(place, [])
        try:
            low, high = 0, len(ordered)
            first: int | None = pid
            while low < high and first == pid:
                middle = (low + high) // 2
                order = address_space_order(pid, ordered[middle])
                if order == 0:
                    first = ordered[middle]
                low, high = (low, middle) if order < 0 else (middle + 1, high)
        except OSError:
            first = None
        if first == pid:
            ordered.insert(low, pid)
        first_by_pid[pid] = first
    return first_by_pid
