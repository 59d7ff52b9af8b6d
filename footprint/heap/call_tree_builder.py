"""Building one call tree from many call stacks."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from footprint.errors import InputError
from footprint.heap.profile import CallTree, Frame

__all__ = ("MOST_AMOUNT", "CallTreeBuilder")

# The largest signed 64-bit number: larger than any address space.
MOST_AMOUNT: Final = (1 << 63) - 1


class CallTreeBuilder:
    """A tree to which stacks are added one by one; frame 0 is the root."""

    def __init__(self) -> None:
        self._parents = array("i", [-1])
        self._frame_indexes = array("i", [0])
        self._nodes: dict[int, int] = {}

    def add(self, frames: Iterable[int]) -> int:
        """Add a stack, the innermost frame first; return the node where it ends."""
        node, below = 0, self.below
        for frame in frames:
            node = below(node, frame)
        return node

    def below(self, node: int, frame: int) -> int:
        """Return the child of a node for a frame; add it where it is missing."""
        step = node << 32 | frame
        known = self._nodes.get(step)
        if known is None:
            known = self._nodes[step] = len(self._nodes) + 1
            self._parents.append(node)
            self._frame_indexes.append(frame)
        return known

    def tree(
        self, frames: tuple[Frame, ...], ends: list[int], sizes: list[int], counts: Sequence[int] | None, source: str
    ) -> CallTree:
        """Build the tree with the amounts of the stacks that end at these nodes. All trees share one shape.

        Raises:
            InputError: Where the amounts add up to more than an address space.
        """
        node_bytes = self._added_up(ends, sizes, source)
        node_blocks = None if counts is None else self._added_up(ends, counts, source)
        return CallTree(frames, self._parents, self._frame_indexes, node_bytes, node_blocks)

    def _added_up(self, ends: list[int], amounts: Sequence[int], source: str) -> "array[int]":
        totals = [0] * len(self._parents)
        for node, amount in zip(ends, amounts, strict=True):
            totals[node] += amount
        for node in range(len(totals) - 1, 0, -1):
            totals[self._parents[node]] += totals[node]
        if totals[0] > MOST_AMOUNT:
            raise InputError(source, "its amounts add up to more than an address space")
        return array("q", totals)
