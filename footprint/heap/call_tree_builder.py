"""Building one call tree from many call stacks; the labels of Valgrind for a place: `0x10A464: main (heap.cc:29)`."""

import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from footprint.errors import InputError
from footprint.heap.profile import CallTree, Frame, Runs

# The largest signed 64-bit number: larger than any address space.
MOST_AMOUNT: Final = (1 << 63) - 1
_CALL: Final = re.compile(r"0x([0-9A-Fa-f]{1,16}): (.*)", re.DOTALL)
# dhat-rs adds the column.
_SOURCE: Final = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)
# Nearly all labels: nothing behind the last ` (` is a parenthesis.
_USUAL: Final = re.compile(
    r"0x([0-9A-Fa-f]{1,16}): (.*) \((?:in ([^()]+)|([^():]+):([0-9]{1,9})(?::[0-9]{1,9})?)\)", re.DOTALL
)
_UNKNOWN: Final = "???"
# Names and paths may contain parentheses: the number of places tried, from the end, for the end of the name.
_MOST_TRIES: Final = 16


class CallTreeBuilder:
    """A tree to which stacks are added one by one; frame 0 is the root.

    Most nodes have one child, which was added right behind them: only the others need a place in a dictionary.
    """

    def __init__(self) -> None:
        self._frame_indexes = array("i", [0])
        # The nodes that are not right behind their parents: by parent and frame, and the parent of each.
        self._other_children: dict[int, int] = {}
        self._other_parents: dict[int, int] = {}
        self._runs: tuple[list[int], Runs] | None = None

    def add(self, frames: Iterable[int]) -> int:
        """Add a stack, the innermost frame first; return the node where it ends."""
        stack = array("i", frames)
        return self.add_all(stack, (len(stack),))[0]

    def add_all(self, frames: "array[int]", lengths: Iterable[int]) -> list[int]:
        """Add stacks of some lengths, whose frames follow each other; return the nodes where they end."""
        indexes, others, other_parents = self._frame_indexes, self._other_children, self._other_parents
        ends = []
        stop, count = 0, len(indexes)
        for length in lengths:
            start, stop, node = stop, stop + length, 0
            for at in range(start, stop):
                # As `below`, without a call: a profile has many frames.
                frame, behind = frames[at], node + 1
                if behind < count and indexes[behind] == frame and behind not in other_parents:
                    node = behind
                    continue
                child = others.get(node << 32 | frame)
                if child is None:
                    if behind != count:
                        others[node << 32 | frame] = count
                        other_parents[count] = node
                    indexes.extend(frames[at:stop])
                    count += stop - at
                    node = count - 1
                    break
                node = child
            ends.append(node)
        return ends

    def below(self, node: int, frame: int) -> int:
        """Return the child of a node for a frame; add it where it is missing."""
        child = self._child(node, frame)
        if child is not None:
            return child
        added = len(self._frame_indexes)
        if added != node + 1:
            self._other_children[node << 32 | frame] = added
            self._other_parents[added] = node
        self._frame_indexes.append(frame)
        return added

    def _child(self, node: int, frame: int) -> int | None:
        behind, indexes = node + 1, self._frame_indexes
        if behind < len(indexes) and indexes[behind] == frame and behind not in self._other_parents:
            return behind
        return self._other_children.get(node << 32 | frame)

    def tree(
        self,
        frames: tuple[Frame, ...],
        ends: list[int],
        sizes: Sequence[int],
        counts: Sequence[int] | None,
        source: str,
    ) -> CallTree:
        """Build the tree with the amounts of the stacks that end at these nodes. All trees share one shape.

        Raises:
            InputError: Where the amounts add up to more than an address space.
        """
        if self._runs is None or self._runs[0] is not ends:
            self._runs = (ends, Runs(self._frame_indexes, self._other_parents, ends))
        if max(sum(sizes), sum(counts or ())) > MOST_AMOUNT:
            raise InputError(source, "its amounts add up to more than an address space")
        return CallTree.of_runs(frames, self._runs[1], sizes, counts)


def read_label(text: str) -> Frame:
    """Read one label. A label without an address is not a call, and is kept as text."""
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        addr_digits, function, path, file, line = usual.groups()
        if file is None:
            return Frame(int(addr_digits, 16), _stated(function), object=_stated(path))
        return Frame(int(addr_digits, 16), _stated(function), file, int(line))
    call = _CALL.fullmatch(text)
    if call is None:
        return Frame(label=text)
    addr, rest = int(call[1], 16), call[2]
    if rest.endswith(")"):
        start = len(rest)
        for _ in range(_MOST_TRIES):
            start = rest.rfind(" (", 0, start)
            if start < 0:
                break
            place = rest[start + 2 : -1]
            # In `f(int) (in /a (b)/c.so)` the last parenthesis belongs to the path; only the one before it fits.
            if place.startswith("in ") and place.count("(") == place.count(")"):
                return Frame(addr, _stated(rest[:start]), object=_stated(place[3:]))
            if (source := _SOURCE.fullmatch(place)) and place.count("(") == place.count(")"):
                return Frame(addr, _stated(rest[:start]), source[1], int(source[2]))
    return Frame(addr, _stated(rest))


def _stated(text: str) -> str | None:
    return None if text == _UNKNOWN else text
