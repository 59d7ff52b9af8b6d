"""The table of mappings at the end of a heap profile."""

import re
from collections.abc import Iterable
from typing import Final

from footprint.heap.profile import Module

__all__ = ("MAPPED_LIBRARIES", "read_modules")

MAPPED_LIBRARIES: Final = b"MAPPED_LIBRARIES:"
_LINE: Final = re.compile(
    rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) +([r-][w-][x-][ps]) +([0-9a-f]{1,16}) +"
    rb"[0-9a-f]{1,8}:[0-9a-f]{1,8} +[0-9]{1,20} *(.*)"
)


def read_modules(lines: Iterable[bytes]) -> tuple[tuple[Module, ...], int]:
    """Read the lines below the heading; return the mappings, and the number of other lines."""
    modules, strays = [], 0
    for line in lines:
        fields = _LINE.fullmatch(line)
        if fields is None or int(fields[1], 16) > int(fields[2], 16):
            strays += bool(line.strip())
            continue
        path = fields[5].decode("utf-8", "surrogateescape")
        modules.append(Module(int(fields[1], 16), int(fields[2], 16), fields[3].decode(), int(fields[4], 16), path))
    return tuple(modules), strays
