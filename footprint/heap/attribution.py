"""The bytes of a call tree by object and function, and as call trees of functions.

Each byte is charged to the innermost function of its stack that is not an allocation function. Bytes without a known
function have rows of their own with the cause, so the rows always add up to the tree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import Final, NamedTuple

from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import CallTree, Frame
from footprint.model.heap_account import Share

__all__ = (
    "BELOW_THRESHOLD",
    "NO_STACK",
    "NO_SYMBOL",
    "Call",
    "HeapShares",
    "attribute",
    "callees",
    "callers",
    "charged",
)

NO_SYMBOL: Final = "[no symbol]"
BELOW_THRESHOLD: Final = "[below the profile's threshold]"
NO_STACK: Final = "[no call stack]"


class Call(NamedTuple):
    """The object and function of one frame of a profile.

    Attributes:
        owner: The path of the object, or in brackets why it is unknown.
        function: The name of the function, the linker name where known; or in brackets why it is unknown.
        is_allocator: Whether it is an allocation function.
    """

    owner: str
    function: str
    is_allocator: bool = False


_ROOT: Final = -1
_NOBODY: Final = Call(NO_STACK, NO_STACK)


@dataclass(frozen=True, slots=True)
class HeapShares:
    """The bytes of one call tree by object and function.

    Attributes:
        shares: One entry per function of each object, the largest first. They add up to `total_bytes`.
        total_bytes: The bytes of the tree.
        total_blocks: Its blocks, where the profile counts them.
    """

    shares: tuple[Share, ...]
    total_bytes: int
    total_blocks: int | None = None

    @property
    def owners(self) -> tuple[Share, ...]:
        """Add up the shares per object, the largest first; their functions are empty."""
        sums: dict[str, tuple[int, int]] = {}
        for share in self.shares:
            size_bytes, block_count = sums.get(share.owner, (0, 0))
            sums[share.owner] = (size_bytes + share.size_bytes, block_count + (share.block_count or 0))
        has_blocks = self.total_blocks is not None
        return _ordered(
            [Share(owner, "", size, count if has_blocks else None) for owner, (size, count) in sums.items()]
        )

    @property
    def attributed_bytes(self) -> int:
        """Add up the bytes whose object is known."""
        return sum(share.size_bytes for share in self.shares if not share.owner.startswith("["))


def attribute(tree: CallTree, calls: Sequence[Call]) -> HeapShares:
    """Charge the bytes of a tree to objects and functions.

    Args:
        tree: The tree.
        calls: The object and function of each frame, in the order of `frames`.
    """
    can_ask, inlined = _can_ask(calls), tree.inlined_nodes()
    parents, indexes = tree.parents, tree.frame_indexes
    # Per frame: there are few frames.
    sizes, counts = {_ROOT: tree.total_bytes}, {_ROOT: tree.total_blocks or 0}
    columns = [(sizes, tree.node_bytes)]
    if tree.node_blocks is not None:
        columns.append((counts, tree.node_blocks))
    # A charged function is charged for all nodes below it, so only a few of very many nodes are visited.
    is_open = bytearray(len(tree))
    is_open[0] = True
    for node in compress(range(1, len(tree)), map(is_open.__getitem__, islice(parents, 1, None))):
        place = indexes[node]
        above = indexes[parents[node]] if parents[node] else _ROOT
        is_open[node] = inlined[node] or not can_ask[place]
        for sums, amounts in columns:
            sums[place] = sums.get(place, 0) + amounts[node]
            sums[above] -= amounts[node]
    charged_to: dict[tuple[str, str], list[int]] = {}
    for place, size_bytes in sizes.items():
        block_count = counts.get(place, 0)
        if size_bytes or block_count:
            call = _NOBODY if place == _ROOT else calls[place]
            both = charged_to.setdefault((call.owner, call.function), [0, 0])
            both[0] += size_bytes
            both[1] += block_count
    has_blocks = tree.node_blocks is not None
    shares = [Share(*place, both[0], both[1] if has_blocks else None) for place, both in charged_to.items()]
    return HeapShares(_ordered(shares), tree.total_bytes, tree.total_blocks)


def charged(tree: CallTree, calls: Sequence[Call]) -> Iterator[tuple[Call, int, int | None]]:
    """Yield for each node at which stacks end the call that `attribute` charges, the bytes, and the blocks or None."""
    askers, own = _askers(tree, calls), _Own(tree)
    for node in range(len(tree)):
        if own.has(node):
            yield _asker(tree, calls, askers, node), own.sizes[node], own.counts[node] if own.counts else None


def callers(tree: CallTree, calls: Sequence[Call]) -> CallTree:
    """Build the tree of functions from the charged functions outwards: the children of a node are its callers.

    Calls from several places in one function are one node. So are functions inlined into it, and successive calls in
    one object without names.
    """
    askers = _askers(tree, calls)
    inlined = tree.inlined_nodes()
    own = _Own(tree)
    frames = _Frames(calls, tree)
    stacks = CallTreeBuilder()
    places = [0] * len(tree)
    last = [0]  # the frame of each node of the new tree
    ends = [0] * len(tree)
    for node in range(1, len(tree)):
        above = places[tree.parents[node]]
        # A stack that ends here has no outer function to charge.
        is_passed = inlined[node] or askers[node] < 0
        frame = frames.of(node) if not is_passed or own.has(node) else 0
        step = stacks.below(above, frame) if frame and not frames.is_more(frame, last[above]) else above
        if step == len(last):
            last.append(frame)
        places[node] = above if is_passed else step
        ends[node] = step
    return own.grown(stacks, frames, ends)


def callees(tree: CallTree, calls: Sequence[Call]) -> CallTree:
    """Build the tree of functions from the outermost ones inwards, down to the charged functions."""
    askers = _askers(tree, calls)
    inlined = tree.inlined_nodes()
    own = _Own(tree)
    frames = _Frames(calls, tree)
    stacks = CallTreeBuilder()
    ends = [0] * len(tree)
    for end in range(1, len(tree)):
        if not own.has(end):
            continue
        stack: list[int] = []
        node = end
        while node > 0:
            if node == end or not (inlined[node] or askers[node] < 0):
                frame = frames.of(node)
                if not stack or not frames.is_more(frame, stack[-1]):
                    stack.append(frame)
            node = tree.parents[node]
        ends[end] = stacks.add(stack)
    return own.grown(stacks, frames, ends)


def _ordered(shares: list[Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=lambda share: (-share.size_bytes, share.owner, share.function)))


class _Own:
    """The bytes and blocks of each node without those of the nodes below it."""

    def __init__(self, tree: CallTree) -> None:
        self.sizes = tree.own_bytes()
        self.counts: list[int] | None = None
        if tree.node_blocks is not None:
            self.counts = tree.node_blocks.tolist()
            for parent, count in zip(tree.parents[1:], tree.node_blocks[1:], strict=True):
                self.counts[parent] -= count

    def has(self, node: int) -> bool:
        """Return whether stacks end at a node."""
        return bool(self.sizes[node] or (self.counts and self.counts[node]))

    def grown(self, stacks: CallTreeBuilder, frames: "_Frames", ends: list[int]) -> CallTree:
        """Build the tree of other stacks with the same amounts."""
        return stacks.tree(tuple(frames.all), ends, self.sizes, self.counts, "")


def _askers(tree: CallTree, calls: Sequence[Call]) -> list[int]:
    """Return for each node the frame that its bytes are charged to; -1 where all frames up to it are allocators."""
    can_ask = _can_ask(calls)
    askers = [-1]
    rows = zip(tree.parents, tree.frame_indexes, tree.inlined_nodes(), strict=True)
    for parent, index, is_inlined in islice(rows, 1, None):
        asker = askers[parent]
        askers.append(index if asker < 0 and not is_inlined and can_ask[index] else asker)
    return askers


def _can_ask(calls: Sequence[Call]) -> list[bool]:
    """Return for each frame whether it can be charged: allocation functions cannot."""
    return [not call.is_allocator and call.owner != BELOW_THRESHOLD for call in calls]


def _asker(tree: CallTree, calls: Sequence[Call], askers: list[int], node: int) -> Call:
    if askers[node] >= 0:
        return calls[askers[node]]
    if node == 0:
        return _NOBODY
    # All known functions are allocation functions: charge the outermost one.
    return calls[tree.frame_indexes[node]]


class _Frames:
    """The frames of a new tree: one for each function, and the root."""

    def __init__(self, calls: Sequence[Call], tree: CallTree) -> None:
        self._calls, self._indexes = calls, tree.frame_indexes
        self.all = [tree.frame(0)]
        self._places: dict[tuple[str, str], int] = {}

    def of(self, node: int) -> int:
        """Return the index of the new frame for a node of the old tree."""
        owner, function, _ = self._calls[self._indexes[node]]
        place = self._places.get((owner, function))
        if place is None:
            place = self._places[owner, function] = len(self.all)
            self.all.append(Frame(function=function, object=owner))
        return place

    def is_more(self, frame: int, other: int) -> bool:
        """Return whether two frames are equal and have no name: such calls are indistinguishable."""
        return frame == other and self.all[frame].function == NO_SYMBOL
