"""Heap profiles of Go as text: `/debug/pprof/heap?debug=1`, with a line for each call.

Source: runtime/pprof/pprof.go of Go 1.26; parseHeap in profile/legacy_profile.go of github.com/google/pprof.
"""

import re
from collections.abc import Iterable
from math import exp, expm1
from typing import Final

from footprint.heap.address_rows import AddressRows
from footprint.heap.profile import GO_HEAP, Frame, Profile

_AMOUNTS: Final = rb"([0-9]{1,18}): ([0-9]{1,18}) \[([0-9]{1,18}): ([0-9]{1,18})\] @"
_HEADER: Final = re.compile(rb"heap profile: " + _AMOUNTS + rb" heap/([0-9]{1,18})")
_ROW: Final = re.compile(_AMOUNTS + rb"((?: 0x[0-9a-f]{1,16})*)\s*")
_CALL: Final = re.compile(rb"#\t+0x([0-9a-f]{1,16})(?:\t+([^\t]+)\+0x[0-9a-f]{1,16}\t+([^\t]+):([0-9]{1,9}))?\s*")
_MARK: Final = re.compile(rb"\n#\t+0x|\n# runtime\.MemStats")


def looks_like_go(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile: tcmalloc's has the same first line, and no calls."""
    return start.startswith(b"heap profile:") and _HEADER.match(start) is not None and _MARK.search(start) is not None


def read_go(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where the first line is damaged.
    """
    rows = AddressRows(pieces, source, _HEADER, _estimate)
    *totals, period = map(int, rows.header.groups())
    figures: list[int] | None = None
    addrs: list[int] = []
    calls: list[Frame] = []

    def add() -> None:
        if figures is not None:
            rows.add(calls or addrs, figures)
            calls.clear()

    for line in rows.lines():
        if call := _CALL.fullmatch(line):
            calls.append(_frame(*call.groups()))
        elif row := _ROW.fullmatch(line):
            add()
            *amounts, stack = row.groups()
            figures, addrs = [int(amount) for amount in amounts], [int(addr, 16) for addr in stack.split()]
        elif not line.startswith(b"#"):
            rows.skip(line)
    add()
    # Go writes twice the mean distance of its samples.
    return rows.finish("go", "heap", totals, max(1, period // 2), GO_HEAP)


def _estimate(block_count: int, size_bytes: int, period_bytes: int) -> tuple[int, int]:
    """Estimate blocks and bytes from samples, to the last digit as pprof does."""
    if not block_count or not size_bytes or period_bytes <= 1:
        return block_count, size_bytes
    mean_share = size_bytes / block_count / period_bytes
    # Where the difference is 0, pprof has no figure.
    scale = 1 / (1 - exp(-mean_share) or -expm1(-mean_share))
    return int(block_count * scale), int(size_bytes * scale)


def _frame(addr: bytes, function: bytes | None, file: bytes | None, line: bytes | None) -> Frame:
    if function is None or file is None or line is None:
        return Frame(int(addr, 16))
    name, path = (text.decode("utf-8", "surrogateescape") for text in (function, file))
    return Frame(int(addr, 16), name, path, int(line))
