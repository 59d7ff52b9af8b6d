"""The trace of the C library's `mtrace`: each allocation and release, with the one call that asked.

Source: malloc/mtrace-impl.c of glibc 2.36.
"""

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Final

from footprint.errors import InputError, Note
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import WHOLE_FILE, CallTree, Counted, Frame, HeapSnapshot, Module, Profile, Tally
from footprint.members import lazy_pattern
from footprint.system.decompression import lines_of
from footprint.text.units import counted

_MOST_EVENTS: Final = 1 << 24
_MOST_CALLERS: Final = 1 << 18
_LONGEST_CALLER: Final = 4096
_ADDR: Final = rb"0x([0-9a-f]{1,16})"
_EVENT: Final = lazy_pattern(rb"@ (.*?) ?([-+<>]) " + _ADDR + rb"(?: 0x([0-9a-f]{1,15})| 0)?")
_CALLER: Final = lazy_pattern(r"(?:(.*):)?(?:\((.*?)(?:\+(?:0x)?[0-9a-f]{1,16})?\))?\[0x([0-9a-f]{1,16})\]", re.DOTALL)


def looks_like_mtrace(start: bytes) -> bool:
    """Return whether the first bytes are those of a trace."""
    return start.startswith(b"= Start\n")


def read_mtrace(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a trace from the pieces of its text.

    Raises:
        InputError: Where there are more events or callers than in any trace.
    """
    trace = _Trace(source)
    for _, lines in lines_of(pieces, source):
        for line in lines:
            trace.add(line)
    return trace.profile()


class _Trace:
    """The events of a trace."""

    def __init__(self, source: str) -> None:
        self._source = source
        # For each caller the node of its stack.
        self._callers: dict[bytes, int] = {}
        self._frames = [Frame(label="trace of mtrace")]
        self._stacks = CallTreeBuilder()
        self._blocks: dict[int, tuple[int, int]] = {}
        # The nodes and bytes of allocations, and of releases.
        self._allocated, self._freed = _Events(), _Events()
        self._live_bytes = self._peak_bytes = 0
        # How many of each there were at the peak.
        self._at_peak = (0, 0)
        self._unknown_count = self._stray_count = 0

    def add(self, line: bytes) -> None:
        event = _EVENT.fullmatch(line.rstrip())
        if event is None:
            self._stray_count += not line.startswith((b"= ", b"! ")) and bool(line.strip())
            return
        caller, kind, addr, size = event.groups()
        place = int(addr, 16)
        # A block that is there already was freed unseen.
        freed = self._blocks.pop(place, None)
        if freed is not None:
            self._count(self._freed, -1, *freed)
        elif kind in b"-<":
            self._unknown_count += 1
        if kind in b"+>":
            block = self._blocks[place] = (self._node_of(caller), int(size or b"0", 16))
            self._count(self._allocated, 1, *block)

    def _count(self, events: "_Events", sign: int, node: int, size_bytes: int) -> None:
        if len(events.nodes) >= _MOST_EVENTS:
            raise InputError(self._source, f"more than {_MOST_EVENTS:,} allocations")
        events.nodes.append(node)
        events.sizes.append(size_bytes)
        self._live_bytes += sign * size_bytes
        if self._live_bytes > self._peak_bytes:
            self._peak_bytes, self._at_peak = self._live_bytes, (len(self._allocated.nodes), len(self._freed.nodes))

    def _node_of(self, caller: bytes) -> int:
        node = self._callers.get(caller)
        if node is None:
            if len(self._callers) >= _MOST_CALLERS:
                raise InputError(self._source, f"more than {_MOST_CALLERS:,} places that allocate")
            text = caller.decode("utf-8", "surrogateescape")
            match = _CALLER.fullmatch(text) if len(text) <= _LONGEST_CALLER else None
            path, function, addr = match.groups() if match else (None, None, "0")
            self._frames.append(Frame(int(addr, 16) or None, function or None, object=path or None))
            node = self._callers[caller] = self._stacks.add([len(self._frames) - 1])
        return node

    def profile(self) -> Profile:
        """Return what the events add up to at the peak, at the end, and over the run."""
        whole = len(self._allocated.nodes), len(self._freed.nodes)
        at_peak, at_end = self._tree(*self._at_peak), self._tree(*whole)
        paths = dict.fromkeys(frame.object for frame in self._frames if frame.object)
        return Profile(
            "mtrace",
            Counted.HEAP,
            frames=tuple(self._frames),
            snapshots=(
                HeapSnapshot(0, None, at_peak.total_bytes, tree=at_peak, is_peak=True),
                HeapSnapshot(1, None, at_end.total_bytes, tree=at_end),
            ),
            peak_index=0,
            tallies=(Tally("allocated", self._tree(whole[0], 0)),),
            modules=tuple(Module(0, WHOLE_FILE, 0, path) for path in paths),
            notes=tuple(self._notes()),
        )

    def _tree(self, asked_count: int, freed_count: int) -> CallTree:
        """Build the tree of what is left of the first allocations after the first releases."""
        sizes, counts = [0] * len(self._frames), [0] * len(self._frames)
        for events, sign, count in ((self._allocated, 1, asked_count), (self._freed, -1, freed_count)):
            for node, size_bytes in zip(events.nodes[:count], events.sizes[:count], strict=True):
                sizes[node] += sign * size_bytes
                counts[node] += sign
        # Each caller is a node of its own, with the number of its frame.
        return self._stacks.tree(tuple(self._frames), list(range(len(sizes))), sizes, counts, self._source)

    def _notes(self) -> Iterator[Note]:
        if self._stray_count:
            detail = f"{counted(self._stray_count, 'line')} of unknown form, left out"
            yield Note("heap-lines-unread", self._source, detail)
        if self._unknown_count:
            detail = f"{counted(self._unknown_count, 'release')} of blocks that it had not seen: it began late"
            yield Note("heap-attached-late", self._source, detail)


class _Events:
    """Allocations or releases, in the order of time: the node and the bytes of each block."""

    def __init__(self) -> None:
        self.nodes, self.sizes = array("i"), array("q")
