"""Heap profiles and heap samples of tcmalloc (gperftools), and heap profiles of jemalloc before version 4.

Source: the documentation of pprof in gperftools 2.10; heap-profile-table.cc.
"""

import re
from collections.abc import Iterable
from typing import Final

from footprint.decompression import lines_of
from footprint.errors import InputError, UnsupportedError
from footprint.heap.address_rows import AddressRows
from footprint.heap.modules import MAPPED_LIBRARIES
from footprint.heap.profile import Profile

__all__ = ("looks_like_gperftools", "read_gperftools")

_AMOUNT: Final = rb" *([0-9]{1,18})"
_AMOUNTS: Final = _AMOUNT + rb":" + _AMOUNT + rb" *\[" + _AMOUNT + rb":" + _AMOUNT + rb"\] *@"
_HEADER: Final = re.compile(rb"heap profile:" + _AMOUNTS + rb" ?([^/\s]*)(?:/([0-9]{1,18}))?\s*")
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
    lines = (line for _, some in lines_of(pieces, source) for line in some)
    header = _HEADER.fullmatch(next(lines, b""))
    if header is None:
        raise InputError(source, "the first line is not that of a heap profile", 0)
    kind = header[5].decode("ascii", "replace")
    if header[6] and kind == "heap":
        raise UnsupportedError(source, "samples from before `heap_v2`, whose scale is uncertain", 0)
    period_bytes = int(header[6]) if header[6] and kind == "heap_v2" else None
    rows = AddressRows(source)
    for line in lines:
        if line.rstrip() == MAPPED_LIBRARIES:
            break
        if row := _ROW.fullmatch(line):
            addrs = [int(addr, 16) for addr in row[5].split()]
            rows.add(addrs, [int(row[place]) for place in range(1, 5)])
        elif line.strip():
            rows.stray_count += 1
    return rows.finish("gperftools", kind, [int(header[place]) for place in range(1, 5)], period_bytes, lines)
