"""Native memory of a JVM by category: `jcmd PID VM.native_memory`, without who asked for it.

Source: memReporter.cpp of OpenJDK 17 and 25.
"""

import re
from collections.abc import Iterable
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import Counted, Frame, HeapSnapshot, Profile
from footprint.members import lazy_pattern
from footprint.system.decompression import lines_of
from footprint.text.units import format_bytes

_MOST_CATEGORIES: Final = 1 << 16
_START: Final = lazy_pattern(rb"(?:[0-9]{1,9}:)?\s*Native Memory Tracking:")
_SCALES: Final = {b"": 1, b"KB": 1 << 10, b"MB": 1 << 20, b"GB": 1 << 30}
_AMOUNT: Final = rb"([0-9]{1,15})(KB|MB|GB|)"
_CATEGORY: Final = lazy_pattern(rb"- +(\S.*?) \(reserved=" + _AMOUNT + rb", committed=" + _AMOUNT + rb"[^)]*\)")
_TOTAL: Final = lazy_pattern(rb"Total: +reserved=" + _AMOUNT + rb", committed=" + _AMOUNT)
_MALLOC: Final = lazy_pattern(rb" +\((malloc|arena|tracking overhead)=" + _AMOUNT + rb"(?:[^#)]*#([0-9]{1,15}))?")
_MAPPED: Final = lazy_pattern(rb" +\((?:mmap|stack): reserved=" + _AMOUNT + rb", committed=" + _AMOUNT)


def looks_like_nmt(start: bytes) -> bool:
    """Return whether the first bytes are those of such a text."""
    return _START.match(start) is not None


def read_nmt(pieces: Iterable[bytes], source: str) -> Profile:
    """Read what the JVM has from malloc from the pieces of a text.

    Raises:
        InputError: Where it has no categories, or more than any.
    """
    pid = None
    sizes: dict[str, int] = {}
    category = ""
    mapped_bytes, total_bytes = 0, None
    for line in (line for _, some in lines_of(pieces, source) for line in some):
        if total := _TOTAL.match(line):
            total_bytes = _bytes(*total.groups()[2:4])
        elif match := _CATEGORY.match(line):
            category = match[1].decode("utf-8", "surrogateescape")
            sizes[category] = 0
            if len(sizes) > _MOST_CATEGORIES:
                raise InputError(source, "more categories than any JVM has")
        elif category and (amount := _MALLOC.match(line)):
            sizes[category] += _bytes(amount[2], amount[3])
        elif category and (mapped := _MAPPED.match(line)):
            mapped_bytes += _bytes(mapped[3], mapped[4])
        elif line.startswith((b"Details:", b"Virtual memory map:")):
            break
        elif (process := re.match(rb"([0-9]{1,9}):\s*$", line)) and pid is None:
            pid = int(process[1])
    if total_bytes is None or not sizes:
        raise InputError(source, "native memory without a total and categories: it is cut, or a difference")
    frames = (Frame(label="native memory of a JVM"), *(Frame(function=name, object="[JVM]") for name in sizes))
    stacks = CallTreeBuilder()
    ends = [stacks.add([place]) for place in range(1, len(frames))]
    tree = stacks.tree(frames, ends, list(sizes.values()), None, source)
    detail = (
        f"it counts categories, and does not say who asked for the memory; {format_bytes(mapped_bytes)} that the JVM "
        f"maps itself (its heap, code and stacks) are not from malloc, and left out"
    )
    return Profile(
        "nmt",
        Counted.HEAP,
        pid=pid,
        frames=frames,
        snapshots=(HeapSnapshot(0, None, tree.total_bytes, tree=tree),),
        notes=(Note("heap-no-callers", source, detail),),
    )


def _bytes(amount: bytes, unit: bytes) -> int:
    return int(amount) * _SCALES[unit]
