"""Heap profiles of jemalloc since version 4: `heap_v2/PERIOD`.

Source: jemalloc(3), `prof.dump`; src/prof_data.c of jemalloc 5.3.
"""

import re
from collections.abc import Iterable
from typing import Final

from footprint.heap.address_rows import AddressRows
from footprint.heap.profile import Profile

_HEADER: Final = re.compile(rb"heap_v2/([0-9]{1,18})")
_STACK: Final = re.compile(rb"@((?: 0x[0-9A-Fa-f]{1,16})*) *")
# One line for all threads, and one line per thread, which may have a name.
_AMOUNTS: Final = re.compile(
    rb" *t(\*|[0-9]{1,20}): ([0-9]{1,18}): ([0-9]{1,18}) \[([0-9]{1,18}): ([0-9]{1,18})\](?: .*)?"
)


def looks_like_jemalloc(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return start.startswith(b"heap_v2/")


def read_jemalloc(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
    """
    rows = AddressRows(pieces, source, _HEADER)
    totals: list[int] | None = None
    addrs: list[int] | None = None
    is_counted = False
    for line in rows.lines():
        if stack := _STACK.fullmatch(line):
            addrs, is_counted = [int(addr, 16) for addr in stack[1].split()], False
        elif amounts := _AMOUNTS.fullmatch(line):
            figures = [int(figure) for figure in amounts.groups()[1:]]
            if amounts[1] != b"*":
                continue
            if addrs is None:
                totals = figures
            elif not is_counted:
                rows.add(addrs, figures)
                is_counted = True
        else:
            rows.skip(line)
    return rows.finish("jemalloc", "heap_v2", totals, int(rows.header[1]))
