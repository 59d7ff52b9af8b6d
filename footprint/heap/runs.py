"""The shape of a call tree that was built from stacks, as runs of nodes."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise, repeat
from operator import add, mul, sub
from struct import iter_unpack

__all__ = ("Runs",)


class Runs:
    """The nodes of a tree in runs: in a run each node is the only child of the one before, and has its amount.

    Stacks end at the last node of a run only. There are far fewer runs than nodes. Trees of one profile share them.

    Args:
        frame_indexes: The frame of each node.
        other_parents: The parents of the nodes that are not children of the node before them.
        ends: The nodes where the stacks end.

    Attributes:
        frame_indexes: The frame of each node.
        firsts: The first node of each run.
        lasts: The last node of each run.
        above: The run above each run, -1 for the first.
    """

    def __init__(self, frame_indexes: "array[int]", other_parents: Mapping[int, int], ends: Iterable[int]) -> None:
        self.frame_indexes = frame_indexes
        self._other_parents = other_parents
        count = len(frame_indexes)
        # A run ends where a stack ends, or where a node has several children.
        self.lasts = sorted({*ends, *other_parents.values(), *map(sub, other_parents, repeat(1)), count - 1})
        self.firsts = [0, *map(add, self.lasts[:-1], repeat(1))]
        run_of = dict(zip(self.lasts, range(len(self.lasts)), strict=True))
        # Most first nodes are behind their parents.
        self.above = [-1, *map(run_of.__getitem__, map(other_parents.get, self.firsts[1:], self.lasts))]
        self._end_runs = list(map(run_of.__getitem__, ends))

    def added_up(self, amounts: Sequence[int]) -> list[int]:
        """Return the amount of the stacks that end with each run."""
        own = [0] * len(self.lasts)
        for run, amount in zip(self._end_runs, amounts, strict=True):
            own[run] += amount
        return own

    def node_amounts(self, own: Sequence[int]) -> "array[int]":
        """Return the amount of each node: of the stacks that end there, and at the nodes below it."""
        totals = list(own)
        for run in range(len(totals) - 1, 0, -1):
            totals[self.above[run]] += totals[run]
        # The eight bytes of each amount, as often as its run has nodes.
        amounts_bytes = chain.from_iterable(iter_unpack("8s", array("q", totals)))
        lengths = (after - before for before, after in pairwise((-1, *self.lasts)))
        return array("q", b"".join(map(mul, amounts_bytes, lengths)))

    def own_amounts(self, own: Sequence[int]) -> list[int]:
        """Return for each node the amount of the stacks that end there."""
        amounts = [0] * (self.lasts[-1] + 1)
        for last, amount in zip(self.lasts, own, strict=True):
            amounts[last] = amount
        return amounts

    @cached_property
    def parents(self) -> "array[int]":
        """The parent of each node, -1 for the root."""
        parents = array("i", range(-1, self.lasts[-1]))
        for first in islice(self.firsts, 1, None):
            parents[first] = self._other_parents.get(first, first - 1)
        return parents
