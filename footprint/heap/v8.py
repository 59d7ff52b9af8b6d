"""Sampled heap profiles of V8: `.heapprofile` of `node --heap-prof` and of Chrome's developer tools.

Source: SamplingHeapProfile in protocol.json of the Chrome DevTools; sampling-heap-profiler.cc of V8.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from footprint.errors import InputError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder
from footprint.heap.profile import V8_HEAP, Counted, Frame, HeapSnapshot, Profile, sampled_notes
from footprint.members import lazy_pattern
from footprint.system.decompression import whole_of

_MOST_BYTES: Final = 128 << 20
_MOST_CALLS: Final = 1 << 23
# A node has two brackets and more text than this; a text of brackets alone would fill the memory.
_LEAST_BYTES_PER_BRACKET: Final = 12
_START: Final = lazy_pattern(rb'\s*\{\s*"head"\s*:\s*\{\s*"callFrame"')


def looks_like_v8(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return _START.match(start) is not None


def read_v8(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its text.

    Raises:
        InputError: Where it is not the JSON of V8.
        UnsupportedError: Where it is too long to hold in memory as JSON.
    """
    data = whole_of(pieces, _MOST_BYTES, source)
    if (data.count(b"{") + data.count(b"[")) * _LEAST_BYTES_PER_BRACKET > len(data) + 4096:
        raise InputError(source, "not the JSON of V8: it is mostly brackets")
    text = data.decode("utf-8", "surrogateescape")
    try:
        head = json.loads(text)["head"]
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        raise InputError(source, f"not the JSON of V8: {error.msg}", offset) from error
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(source, f"not the JSON of V8: {error}") from error
    frames = {Frame(label="heap of V8"): 0}
    stacks = CallTreeBuilder()
    ends: list[int] = []
    sizes: list[int] = []
    left = _MOST_CALLS
    for calls, size_bytes in _stacks(head, source):
        left -= len(calls)
        if left < 0:
            raise InputError(source, "more calls than any profile has")
        ends.append(stacks.add([frames.setdefault(call, len(frames)) for call in calls]))
        sizes.append(size_bytes)
    tree = stacks.tree(tuple(frames), ends, sizes, None, source)
    return Profile(
        "v8",
        Counted.HEAP,
        frames=tuple(frames),
        snapshots=(HeapSnapshot(0, None, tree.total_bytes, tree=tree),),
        has_own_allocator=True,
        heap_owner=V8_HEAP,
        # V8 scales its samples, and does not write their period.
        sample_period_bytes=0,
        notes=tuple(sampled_notes(source, 0)),
    )


def _stacks(head: object, source: str) -> Iterator[tuple[list[Frame], int]]:
    """Yield the calls of each node that has memory of its own, the innermost first, and its bytes."""
    left: list[tuple[object, tuple[Frame, ...]]] = [(head, ())]
    while left:
        node, outer = left.pop()
        match node:
            case {
                "callFrame": {"functionName": str(name), "url": str(url), "lineNumber": int(line)},
                "selfSize": int(size_bytes) | float(size_bytes),
                "children": list(children),
            } if 0 <= size_bytes <= MOST_AMOUNT:
                calls = outer if not outer and name == "(root)" else (_frame(name, url, line), *outer)
                if size_bytes:
                    yield list(calls), round(size_bytes)
                left += [(child, calls) for child in reversed(children)]
            case _:
                raise InputError(source, "not the JSON of V8: a node without its call, size or children")


def _frame(name: str, url: str, line: int) -> Frame:
    path = url.removeprefix("file://") or None
    # Lines are counted from 0; -1 is none.
    return Frame(function=name or "(anonymous)", file=path, line=line + 1 if line >= 0 else None, object=path)
