"""Building one call tree from many call stacks."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from operator import mul
from struct import iter_unpack
from typing import Final, NamedTuple

from footprint.errors import InputError
from footprint.heap.profile import CallTree, Frame

__all__ = ("MOST_AMOUNT", "CallTreeBuilder")

# The largest signed 64-bit number: larger than any address space.
MOST_AMOUNT: Final = (1 << 63) - 1


class CallTreeBuilder:
    """A tree to which stacks are added one by one; frame 0 is the root.

    Most nodes have one child, which was added right behind them: only the others need a place in a dictionary.
    """

    def __init__(self) -> None:
        self._parents = array("i", [-1])
        self._frame_indexes = array("i", [0])
        self._other_children: dict[int, int] = {}
        self._runs = _Runs([], [], [], [])

    def add(self, frames: Iterable[int]) -> int:
        """Add a stack, the innermost frame first; return the node where it ends."""
        parents, indexes, others = self._parents, self._frame_indexes, self._other_children
        stack, node, count = list(frames), 0, len(parents)
        for at, frame in enumerate(stack):
            # As `_child`, without a call: a profile has many frames.
            behind = node + 1
            if behind < count and indexes[behind] == frame and parents[behind] == node:
                node = behind
                continue
            known = others.get(node << 32 | frame)
            if known is None:
                return self._append(node, stack[at:])
            node = known
        return node

    def below(self, node: int, frame: int) -> int:
        """Return the child of a node for a frame; add it where it is missing."""
        known = self._child(node, frame)
        return self._append(node, [frame]) if known is None else known

    def _child(self, node: int, frame: int) -> int | None:
        behind = node + 1
        if behind < len(self._parents) and self._parents[behind] == node and self._frame_indexes[behind] == frame:
            return behind
        return self._other_children.get(node << 32 | frame)

    def _append(self, node: int, frames: list[int]) -> int:
        """Add a chain of nodes below a node; return the last one."""
        first = len(self._parents)
        if first != node + 1:
            self._other_children[node << 32 | frames[0]] = first
        self._parents.append(node)
        self._parents.extend(range(first, first + len(frames) - 1))
        self._frame_indexes.extend(frames)
        return len(self._parents) - 1

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
        if self._runs.ends is not ends:
            self._runs = self._runs_of(ends)
        node_bytes = self._runs.added_up(sizes, source)
        node_blocks = None if counts is None else self._runs.added_up(counts, source)
        return CallTree(frames, self._parents, self._frame_indexes, node_bytes, node_blocks)

    def _runs_of(self, ends: list[int]) -> "_Runs":
        count = len(self._parents)
        # A run ends where a stack ends, or where a node has several children.
        lasts = {*ends, *(step >> 32 for step in self._other_children)}
        starts = {0, *self._other_children.values(), *(last + 1 for last in lasts)}
        bounds = [*sorted(start for start in starts if start < count), count]
        run_of = {after - 1: number for number, after in enumerate(bounds[1:])}
        lengths = [after - start for start, after in pairwise(bounds)]
        parents = [run_of[self._parents[start]] for start in bounds[1:-1]]
        return _Runs(ends, [run_of[end] for end in ends], parents, lengths)


class _Runs(NamedTuple):
    """The nodes of a tree in runs: in a run each node is the only child of the one before, and has its amount.

    Attributes:
        ends: The nodes where stacks end.
        end_runs: The run of each.
        parents: The run above each run but the first.
        lengths: The number of nodes of each run.
    """

    ends: list[int]
    end_runs: list[int]
    parents: list[int]
    lengths: list[int]

    def added_up(self, amounts: Sequence[int], source: str) -> "array[int]":
        """Return the amount of each node: of the stacks that end there, and at the nodes below it."""
        totals = [0] * len(self.lengths)
        for run, amount in zip(self.end_runs, amounts, strict=True):
            totals[run] += amount
        for number in range(len(totals) - 1, 0, -1):
            totals[self.parents[number - 1]] += totals[number]
        if totals[0] > MOST_AMOUNT:
            raise InputError(source, "its amounts add up to more than an address space")
        # The eight bytes of each amount, as often as its run has nodes.
        amounts_bytes = chain.from_iterable(iter_unpack("8s", array("q", totals)))
        return array("q", b"".join(map(mul, amounts_bytes, self.lengths)))
