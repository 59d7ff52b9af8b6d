"""The bytes of a call tree by object and function, and as call trees of functions.

Each byte is charged to the innermost function of its stack that is not an allocation function. Bytes without a known
function have rows of their own with the cause, so the rows always add up to the tree.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice, repeat
from operator import or_
from typing import Final
from weakref import WeakKeyDictionary

from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import CallTree, Frame, Runs
from footprint.members import NamedTuple, dataclass
from footprint.model.heap_account import Share

NO_SYMBOL: Final = "[no symbol]"
BELOW_THRESHOLD: Final = "[below the profile's threshold]"
CALLERS_BELOW: Final = "[callers below the profile's threshold]"
NO_STACK: Final = "[no call stack]"


class Call(NamedTuple):
    """The object and function of one frame of a profile.

    Attributes:
        owner: The path of the object, or in brackets why it is unknown.
        function: The name of the function, the linker name where known; or in brackets why it is unknown.
        rule: The rule by which it is an allocation function (`footprint.heap.allocators`); "" for any other.
    """

    owner: str
    function: str
    rule: str = ""


_ROOT: Final = -1
_NOBODY: Final = Call(NO_STACK, NO_STACK)


@dataclass(frozen=True)
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
        return add_up_shares(share._replace(function="") for share in self.shares)

    @property
    def whole_bytes(self) -> int:
        """Return what shares are of: the total, or what a faulty profile that counts some bytes twice adds up to."""
        return max(self.total_bytes, sum(share.size_bytes for share in self.shares if share.size_bytes > 0))

    @property
    def attributed_bytes(self) -> int:
        """Add up the bytes whose object is known."""
        return sum(share.size_bytes for share in self.shares if not share.owner.startswith("["))


def attribute(tree: CallTree, calls: Sequence[Call]) -> HeapShares:
    """Charge the bytes of a tree to objects and functions; `calls` has those of each frame."""
    # Per frame, and of the root last: there are few frames.
    sizes, counts = _sums_of_nodes(tree, calls) if tree.runs is None else _sums_of_ends(tree, calls)
    has_blocks = tree.total_blocks is not None
    charged_calls = compress(zip((*calls, _NOBODY), sizes, counts, strict=True), map(or_, sizes, counts))
    shares = [
        Share(call.owner, call.function, size_bytes, block_count if has_blocks else None)
        for call, size_bytes, block_count in charged_calls
    ]
    return HeapShares(add_up_shares(shares), tree.total_bytes, tree.total_blocks)


def _sums_of_ends(tree: CallTree, calls: Sequence[Call]) -> tuple[list[int], list[int]]:
    ends, places = tree.stack_ends, charged_frames(tree, calls)
    sizes, counts = [0] * (len(calls) + 1), [0] * (len(calls) + 1)
    for sums, amounts in ((sizes, ends.sizes), (counts, ends.counts)):
        if amounts is not None:
            for place, amount in zip(places, amounts, strict=True):
                sums[place] += amount
    return sizes, counts


def _sums_of_nodes(tree: CallTree, calls: Sequence[Call]) -> tuple[list[int], list[int]]:
    """Add up the same for a tree that has the amounts of its nodes: most of the nodes are not visited."""
    inlined, parents, indexes = tree.inlined_nodes(), tree.parents, tree.frame_indexes
    sizes, counts = [0] * (len(calls) + 1), [0] * (len(calls) + 1)
    sizes[_ROOT], counts[_ROOT] = tree.total_bytes, tree.total_blocks or 0
    columns = [(sizes, tree.node_bytes)]
    if tree.node_blocks is not None:
        columns.append((counts, tree.node_blocks))
    # A charged function is charged for all nodes below it.
    is_open = bytearray(len(tree))
    is_open[0] = True
    for node in compress(range(1, len(tree)), map(is_open.__getitem__, islice(parents, 1, None))):
        place = indexes[node]
        above = indexes[parents[node]] if parents[node] else _ROOT
        is_open[node] = inlined[node] or not _can_be_charged(calls[place])
        for sums, amounts in columns:
            sums[place] += amounts[node]
            sums[above] -= amounts[node]
    return sizes, counts


def add_up_shares(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Add up the shares of each function, and sort the sums: the largest first."""
    sums: dict[tuple[str, str], Share] = {}
    for share in shares:
        place = share[:2]
        before = sums.get(place)
        if before is None:
            sums[place] = share
            continue
        has_blocks = before.block_count is not None and share.block_count is not None
        block_count = (before.block_count or 0) + (share.block_count or 0)
        sums[place] = Share(*place, before.size_bytes + share.size_bytes, block_count if has_blocks else None)
    return tuple(sorted(sums.values(), key=lambda share: (-share.size_bytes, share.owner, share.function)))


def charged_frames(tree: CallTree, calls: Sequence[Call]) -> list[int]:
    """Return for each of `stack_ends` the frame that is charged with the stacks that end there; -1 for the root.

    Where all known functions are allocation functions, it is the outermost one.
    """
    charged = None if tree.runs is None else _CHARGED.get(tree.runs)
    if charged is not None and charged[0] is calls:
        return charged[1]
    can_ask, inlined, indexes = _can_ask(calls), tree.inlined_nodes(), tree.frame_indexes
    ends = tree.stack_ends
    # For each run the innermost function that can be charged, -1 for none. Stacks share their inner nodes.
    askers: list[int] = []
    for first, last, above in zip(ends.firsts, ends.nodes, ends.above, strict=True):
        asker = askers[above] if above >= 0 else _ROOT
        if asker < 0:
            nodes = (node for node in range(first or 1, last + 1) if not inlined[node] and can_ask[indexes[node]])
            asker = next((indexes[node] for node in nodes), asker)
        askers.append(asker)
    callers = [asker if asker >= 0 or not end else indexes[end] for asker, end in zip(askers, ends.nodes, strict=True)]
    if tree.runs is not None:
        _CHARGED[tree.runs] = (calls, callers)
    return callers


# The trees of one profile share their runs.
_CHARGED: Final[WeakKeyDictionary[Runs, tuple[Sequence[Call], list[int]]]] = WeakKeyDictionary()


def charged(tree: CallTree, calls: Sequence[Call], least_bytes: int = 0) -> Iterator[tuple[Call, int, int | None]]:
    """Yield for each node at which stacks end the call that `attribute` charges, the bytes, and the blocks or None.

    With `least_bytes` these are only nodes with so many bytes.
    """
    ends = tree.stack_ends
    counts = repeat(None) if ends.counts is None else ends.counts
    for place, size_bytes, block_count in zip(charged_frames(tree, calls), ends.sizes, counts, strict=False):
        if size_bytes >= least_bytes if least_bytes else size_bytes or block_count:
            yield _NOBODY if place < 0 else calls[place], size_bytes, block_count


def stepped_over(tree: CallTree, calls: Sequence[Call]) -> list[tuple[Call, Share]]:
    """Return each allocation function that stands before charged functions, with the bytes of these stacks.

    The largest are first. A stack counts once for each of its allocation functions.
    """
    seen = _Functions(tree, calls)
    sums: dict[Call, list[int]] = {}
    for end in filter(seen.has_end, range(1, len(tree))):
        functions: set[Call] = set()
        node = end
        while node > 0:
            if seen.askers[node] < 0:
                functions.add(calls[tree.frame_indexes[node]])
            node = tree.parents[node]
        for call in functions:
            amounts = sums.setdefault(call, [0, 0])
            amounts[0] += seen.own_bytes[end]
            amounts[1] += seen.own_blocks[end] if seen.own_blocks else 0
    shares = [
        (call, Share(call.owner, call.function, size_bytes, block_count if seen.own_blocks else None))
        for call, (size_bytes, block_count) in sums.items()
        if call.rule
    ]
    return sorted(shares, key=lambda item: (-item[1].size_bytes, item[0]))


def callers(tree: CallTree, calls: Sequence[Call]) -> CallTree:
    """Build the tree of functions from the charged functions outwards: the children of a node are its callers.

    Calls from several places in one function are one node. So are functions inlined into it, and successive calls in
    one object without names.
    """
    seen = _Functions(tree, calls)
    places = [0] * len(tree)
    last = [0]  # the frame of each node of the new tree
    for node in range(1, len(tree)):
        above = places[tree.parents[node]]
        # A stack that ends here has no outer function to charge.
        is_passed = seen.is_passed[node]
        frame = seen.frame_of(node) if not is_passed or seen.has_end(node) else 0
        step = seen.stacks.below(above, frame) if frame and not seen.is_same_place(frame, last[above]) else above
        if step == len(last):
            last.append(frame)
        places[node] = above if is_passed else step
        seen.ends[node] = step
    return seen.new_tree()


def callees(tree: CallTree, calls: Sequence[Call]) -> CallTree:
    """Build the tree of functions from the outermost ones inwards, down to the charged functions.

    Functions whose outer callers the profile lumps together are below a node of their own: who asked is known of them.
    """
    seen = _Functions(tree, calls)
    is_passed, parents = seen.is_passed, tree.parents
    for end in range(1, len(tree)):
        if not seen.has_end(end):
            continue
        stack: list[int] = []
        node = end
        while node > 0:
            if node == end or not is_passed[node]:
                frame = seen.frame_of(node)
                if not stack or not seen.is_same_place(frame, stack[-1]):
                    stack.append(frame)
            node = parents[node]
        if len(stack) > 1:
            stack[0] = seen.outermost(stack[0])
        seen.ends[end] = seen.stacks.add(stack)
    return seen.new_tree()


class _Functions:
    """A call tree seen as functions, and a new tree that is made of them.

    Attributes:
        askers: For each node the frame that its bytes are charged to; -1 where all frames up to it are allocators.
        is_passed: Whether a node is left out: an inlined function, or an allocation function.
        own_bytes: The bytes of each node without those of the nodes below it.
        own_blocks: Its blocks, likewise; None where the profile does not count them.
        stacks: The stacks of the new tree.
        ends: For each node the node of the new tree at which its stacks end.
    """

    def __init__(self, tree: CallTree, calls: Sequence[Call]) -> None:
        self._calls, self._indexes = calls, tree.frame_indexes
        can_ask = _can_ask(calls)
        self.askers, self.is_passed = [-1], [True]
        nodes = zip(tree.parents, self._indexes, tree.inlined_nodes(), strict=True)
        for parent, index, is_inlined in islice(nodes, 1, None):
            asker = self.askers[parent]
            if asker < 0 and not is_inlined and can_ask[index]:
                asker = index
            self.askers.append(asker)
            self.is_passed.append(bool(is_inlined) or asker < 0)
        self.own_bytes, self.own_blocks = tree.own_bytes(), tree.own_blocks()
        self.stacks = CallTreeBuilder()
        self.ends = [0] * len(tree)
        self._frames = [tree.frame(0)]
        self._frame_numbers: dict[tuple[str, str], int] = {}

    def has_end(self, node: int) -> bool:
        """Return whether stacks end at a node."""
        return bool(self.own_bytes[node] or (self.own_blocks and self.own_blocks[node]))

    def frame_of(self, node: int) -> int:
        """Return the frame of the new tree for the function of a node."""
        owner, function, *_ = self._calls[self._indexes[node]]
        return self._number_of(owner, function)

    def outermost(self, frame: int) -> int:
        """Return the frame that stands for the outermost one of several."""
        is_lump = self._frames[frame].object == BELOW_THRESHOLD
        return self._number_of(CALLERS_BELOW, CALLERS_BELOW) if is_lump else frame

    def _number_of(self, owner: str, function: str) -> int:
        number = self._frame_numbers.get((owner, function))
        if number is None:
            number = self._frame_numbers[owner, function] = len(self._frames)
            self._frames.append(Frame(function=function, object=owner))
        return number

    def is_same_place(self, frame: int, other: int) -> bool:
        """Return whether two frames are equal and have no name: such calls are indistinguishable."""
        return frame == other and self._frames[frame].function == NO_SYMBOL

    def new_tree(self) -> CallTree:
        """Build the new tree, with the amounts of the old one."""
        return self.stacks.tree(tuple(self._frames), self.ends, self.own_bytes, self.own_blocks, "")


def _can_ask(calls: Sequence[Call]) -> list[bool]:
    """Return for each frame whether it can be charged: allocation functions cannot."""
    return list(map(_can_be_charged, calls))


def _can_be_charged(call: Call) -> bool:
    return not call.rule and call.owner != BELOW_THRESHOLD
