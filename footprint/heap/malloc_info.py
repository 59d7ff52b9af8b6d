"""The output of glibc's `malloc_info`: how much is in use in each arena, without who asked for it.

Source: malloc/malloc.c of glibc 2.36, `__malloc_info`.
"""

from collections.abc import Iterable
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import Counted, Frame, HeapSnapshot, Profile
from footprint.members import lazy_pattern
from footprint.system.decompression import whole_of
from footprint.text.units import counted, format_bytes

_MOST_BYTES: Final = 64 << 20
_START: Final = lazy_pattern(rb"\s*<malloc version=")
_FIGURE: Final = lazy_pattern(
    rb'<heap nr="([0-9]{1,9})">|</heap>|'
    rb'<(total|system) type="(fast|rest|mmap|current)"(?: count="([0-9]{1,18})")? size="([0-9]{1,18})"/>'
)


def looks_like_malloc_info(start: bytes) -> bool:
    """Return whether the first bytes are those of such a text."""
    return _START.match(start) is not None


def read_malloc_info(pieces: Iterable[bytes], source: str) -> Profile:
    """Read what is in use from the pieces of a text.

    Raises:
        InputError: Where it is cut, or its figures contradict each other.
    """
    text = whole_of(pieces, _MOST_BYTES, source)
    if not text.rstrip().endswith(b"</malloc>"):
        raise InputError(source, "it does not end with `</malloc>`: it is cut", len(text))
    arena: str | None = None
    system: dict[str | None, int] = {}
    free: dict[str | None, int] = {}
    mapped_bytes = mapped_count = 0
    for figure in _FIGURE.finditer(text):
        number, element, kind, count, size = figure.groups()
        if element is None:
            arena = f"arena {int(number)}" if number else None
        elif kind == b"mmap":
            mapped_bytes, mapped_count = int(size), int(count or b"0")
        elif kind == b"current":
            system[arena] = int(size)
        elif element == b"total":
            free[arena] = free.get(arena, 0) + int(size)
    arenas = [number for number in system if number is not None]
    used = {number: system[number] - free.get(number, 0) for number in arenas}
    if min(used.values(), default=0) < 0:
        raise InputError(source, "an arena has more free bytes than it has from the system")
    used["blocks from mmap"] = mapped_bytes
    frames = (Frame(label="malloc_info"), *(Frame(function=name, object="[malloc]") for name in used))
    stacks = CallTreeBuilder()
    ends = [stacks.add([place]) for place in range(1, len(frames))]
    tree = stacks.tree(frames, ends, list(used.values()), None, source)
    free_bytes, system_bytes = sum(free.get(number, 0) for number in arenas), sum(system[number] for number in arenas)
    detail = (
        f"it counts arenas, and does not say who asked for the memory; {format_bytes(free_bytes)} are free of the "
        f"{format_bytes(system_bytes)} that the arenas have, and {counted(mapped_count, 'block')} came from mmap"
    )
    return Profile(
        "malloc_info",
        Counted.HEAP,
        frames=frames,
        snapshots=(HeapSnapshot(0, None, tree.total_bytes, tree=tree),),
        notes=(Note("heap-no-callers", source, detail),),
    )
