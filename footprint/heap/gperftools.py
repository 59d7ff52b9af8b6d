"""Heap profiles and heap samples of tcmalloc (gperftools), and heap profiles of jemalloc before version 4.

Source: the documentation of pprof in gperftools 2.10; heap-profile-table.cc.
"""

import re
from collections.abc import Iterable
from typing import Final

from footprint.errors import UnsupportedError
from footprint.heap.address_rows import AddressRows
from footprint.heap.profile import Profile

_AMOUNT: Final = rb" *([0-9]{1,18})"
_AMOUNTS: Final = _AMOUNT + rb":" + _AMOUNT + rb" *\[" + _AMOUNT + rb":" + _AMOUNT + rb"\] *@"
_HEADER: Final = re.compile(rb"heap profile:" + _AMOUNTS + rb" ?([^/\s]*)(?:/([0-9]{1,18}))?")
_ROW: Final = re.compile(_AMOUNTS + rb"((?: +(?:0x)?[0-9A-Fa-f]{1,16})*)\s*")


def looks_like_gperftools(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return start.startswith(b"heap profile:")


def read_gperftools(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
        UnsupportedError: Where it was sampled in the way from before `heap_v2`.
    """
    rows = AddressRows(pieces, source, _HEADER)
    *totals, kind_text, period = rows.header.groups()
    kind = kind_text.decode("ascii", "replace")
    if period and kind == "heap":
        raise UnsupportedError(source, "samples from before `heap_v2`, whose scale is uncertain", 0)
    for line in rows.lines():
        if row := _ROW.fullmatch(line):
            *figures, addrs = row.groups()
            rows.add([int(addr, 16) for addr in addrs.split()], map(int, figures))
        else:
            rows.skip(line)
    return rows.finish(
        "gperftools", kind, [int(total) for total in totals], int(period) if period and kind == "heap_v2" else None
    )
