"""A heap profile of any format: memory over time, and the call stacks that allocated it."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain, compress, islice, pairwise, repeat
from operator import add, attrgetter, eq, mul, sub
from struct import iter_unpack
from typing import Final

from footprint.errors import Note
from footprint.members import NamedTuple, dataclass


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
        amounts_of_runs = [0] * len(self.lasts)
        for run, amount in zip(self._end_runs, amounts, strict=True):
            amounts_of_runs[run] += amount
        return amounts_of_runs

    def node_amounts(self, run_amounts: Sequence[int]) -> "array[int]":
        """Return the amount of each node: of the stacks that end there, and at the nodes below it."""
        totals = list(run_amounts)
        for run in range(len(totals) - 1, 0, -1):
            totals[self.above[run]] += totals[run]
        # The eight bytes of each amount, as often as its run has nodes.
        amounts_bytes = chain.from_iterable(iter_unpack("8s", array("q", totals)))
        lengths = (after - before for before, after in pairwise((-1, *self.lasts)))
        return array("q", b"".join(map(mul, amounts_bytes, lengths)))

    def own_amounts(self, run_amounts: Sequence[int]) -> list[int]:
        """Return for each node the amount of the stacks that end there."""
        amounts = [0] * (self.lasts[-1] + 1)
        for last, amount in zip(self.lasts, run_amounts, strict=True):
            amounts[last] = amount
        return amounts

    @cached_property
    def parents(self) -> "array[int]":
        """The parent of each node, -1 for the root."""
        parents = array("i", range(-1, self.lasts[-1]))
        for first in islice(self.firsts, 1, None):
            parents[first] = self._other_parents.get(first, first - 1)
        return parents


Buffer = bytes | memoryview
# Formats whose last snapshot is the end of the program; others are written at any time, or round the end.
_UNTIL_THE_END: Final = frozenset({"dhat", "heaptrack", "mtrace", "xtree"})

# The heaps of runtimes, by their names in the account of a process.
GO_HEAP: Final = "[go heap]"
V8_HEAP: Final = "[v8 heap]"

# The end of a mapping from 0 on whose addresses are those of its file.
WHOLE_FILE: Final = (1 << 64) - 1


class Counted(StrEnum):
    """The unit of the amounts of a profile."""

    HEAP = "heap"
    """Bytes requested from the allocator."""
    PAGES = "pages"
    """Address space requested from the kernel, including reserved and untouched pages."""
    COPIES = "copies"
    """Bytes copied by memcpy and similar functions: not memory in use."""
    EVENTS = "events"
    """Units that the program declared."""


class Frame(NamedTuple):
    """One call of a stack, or a text in the place of one. A fact that the profile lacks is None.

    Attributes:
        addr: The address in the process: of the call or of the next instruction, as in the profile.
        function: The name as in the profile, linker name or demangled.
        file: The source file, mostly without its directory.
        line: The line number.
        object: The path of the program or library.
        label: The text where it is not a call: the heading of a tree, or `in 30 places, all below ...`.
    """

    addr: int | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    object: str | None = None
    label: str | None = None


class Module(NamedTuple):
    """A mapping listed in the profile, to find the names of its addresses. The range is half-open.

    Attributes:
        start_addr: First address.
        end_addr: First address behind it.
        offset: The offset in the file, in bytes.
        path: The file, a name such as `[heap]`, or "".
        build_id: The build-id of the file, where the profile has it.
    """

    start_addr: int
    end_addr: int
    offset: int
    path: str
    build_id: str = ""

    @property
    def has_file_addrs(self) -> bool:
        """Whether the profile has addresses of this file, not of the process: jemalloc_pprof writes such mappings."""
        return self.start_addr == 0 and self.end_addr == WHOLE_FILE


class StackEnds(NamedTuple):
    """The nodes where stacks may end, in order, and the amounts of these stacks.

    Attributes:
        firsts: For each the first node of its run: those behind it are each the only child of the node before.
        nodes: The last node of each run, where stacks may end.
        above: For each run the place of the run above it in these lists, -1 for the first.
        sizes: The bytes of the stacks that end there.
        counts: Their blocks, where the profile counts them.
    """

    firsts: Sequence[int]
    nodes: Sequence[int]
    above: Sequence[int]
    sizes: Sequence[int]
    counts: Sequence[int] | None


class CallTree:
    """Call stacks as one tree, from the allocation outwards: the children of a node are its callers; `main` is a leaf.

    Node 0 is the root: all stacks together. A parent comes before its children; otherwise the order is that of the
    profile. The amounts of a node include those of the nodes below it.

    Inlined functions are nodes of their own, the innermost first, all with the address of the one compiled call: see
    `inlined_nodes`.

    Attributes:
        frames: The frames of all trees of the profile.
        frame_indexes: The index of the frame of each node in `frames`.
        runs: The shape of a tree that was built from stacks, which other trees share; None for others.
        stack_sizes: The bytes of these stacks, in the order of the ends of the runs.
        stack_counts: Their blocks, where the profile counts them.
    """

    def __init__(
        self,
        frames: tuple[Frame, ...],
        parents: "array[int]",
        frame_indexes: "array[int]",
        node_bytes: "array[int]",
        node_blocks: "array[int] | None" = None,
    ) -> None:
        self.frames, self.parents, self.frame_indexes = frames, parents, frame_indexes
        self.node_bytes, self.node_blocks = node_bytes, node_blocks
        self.runs: Runs | None = None
        self.stack_sizes: Sequence[int] = ()
        self.stack_counts: Sequence[int] | None = None

    @classmethod
    def of_runs(
        cls, frames: tuple[Frame, ...], runs: Runs, sizes: Sequence[int], counts: Sequence[int] | None
    ) -> "CallTree":
        """Return the tree with the amounts of its stacks, in the order of the ends of its runs.

        They are added up by run, and spread over the nodes, only when these are needed: few answers need those of all
        trees.
        """
        tree = cls.__new__(cls)
        tree.frames, tree.frame_indexes, tree.runs = frames, runs.frame_indexes, runs
        tree.stack_sizes, tree.stack_counts = sizes, counts
        return tree

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.frame_indexes)

    def __eq__(self, other: object) -> bool:
        """Return whether the nodes and the amounts of two trees are equal."""
        return isinstance(other, CallTree) and self._members() == other._members()

    __hash__ = None  # type: ignore[assignment]

    def _members(self) -> tuple[object, ...]:
        return (self.frames, self.parents, self.frame_indexes, self.node_bytes, self.node_blocks)

    @cached_property
    def parents(self) -> "array[int]":
        """The parent of each node, -1 for the root."""
        return self._runs.parents

    @cached_property
    def node_bytes(self) -> "array[int]":
        """The bytes of each node."""
        return self._runs.node_amounts(self.stack_ends.sizes)

    @cached_property
    def node_blocks(self) -> "array[int] | None":
        """The blocks of each node, where the profile counts them."""
        counts = self.stack_ends.counts
        return None if counts is None else self._runs.node_amounts(counts)

    @cached_property
    def stack_ends(self) -> StackEnds:
        """The nodes where stacks may end; all nodes, where it was not built from stacks."""
        if (runs := self.runs) is not None:
            counts = None if self.stack_counts is None else runs.added_up(self.stack_counts)
            return StackEnds(runs.firsts, runs.lasts, runs.above, runs.added_up(self.stack_sizes), counts)
        nodes = range(len(self))
        return StackEnds(nodes, nodes, self.parents, self.own_bytes(), self.own_blocks())

    @property
    def _runs(self) -> Runs:
        if self.runs is None:
            raise AttributeError("a tree has either runs or amounts of its nodes")
        return self.runs

    @property
    def total_bytes(self) -> int:
        """The bytes of all stacks together."""
        return self.node_bytes[0] if self.runs is None else sum(self.stack_sizes)

    @property
    def total_blocks(self) -> int | None:
        """The blocks of all stacks together, where the profile counts them."""
        if self.runs is None:
            return None if self.node_blocks is None else self.node_blocks[0]
        return None if self.stack_counts is None else sum(self.stack_counts)

    def frame(self, node: int) -> Frame:
        """Return the frame of a node."""
        return self.frames[self.frame_indexes[node]]

    def has_shape_of(self, other: "CallTree") -> bool:
        """Return whether two trees have the same nodes."""
        if self.runs is not None and self.runs is other.runs:
            return True
        return (self.parents, self.frame_indexes) == (other.parents, other.frame_indexes)

    def own_bytes(self) -> list[int]:
        """Return the bytes of each node without those of the nodes below it; they add up to the total.

        Bytes that a faulty profile counts twice appear as a negative amount.
        """
        return self._own_amounts(self.node_bytes) if self.runs is None else self.runs.own_amounts(self.stack_ends.sizes)

    def own_blocks(self) -> list[int] | None:
        """Return the blocks of each node without those of the nodes below it, where the profile counts them."""
        if self.runs is None:
            return None if self.node_blocks is None else self._own_amounts(self.node_blocks)
        return None if self.stack_ends.counts is None else self.runs.own_amounts(self.stack_ends.counts)

    def _own_amounts(self, amounts: "array[int]") -> list[int]:
        amounts_left = amounts.tolist()
        for parent, amount in zip(self.parents[1:], amounts[1:], strict=True):
            amounts_left[parent] -= amount
        return amounts_left

    def inlined_nodes(self) -> bytearray:
        """Mark with 1 each node whose function was inlined into its caller, the node below.

        The two have the same address but differ otherwise; two equal calls are a recursion.
        """
        marks = bytearray(len(self))
        addr_of_frame = [frame.addr for frame in self.frames]
        addrs_present = [addr for addr in addr_of_frame if addr is not None]
        if len(set(addrs_present)) == len(addrs_present):
            # Each address has one function: there are no inlined functions.
            return marks
        indexes, parents = self.frame_indexes, self.parents
        addrs = list(map(addr_of_frame.__getitem__, indexes))
        # Few nodes have the address of the node below: find them without a Python loop.
        alike = map(eq, islice(addrs, 1, None), map(addrs.__getitem__, islice(parents, 1, None)))
        for node in compress(range(1, len(self)), alike):
            if addrs[node] is not None and indexes[parents[node]] != indexes[node]:
                marks[parents[node]] = 1
        return marks


class HeapSnapshot(NamedTuple):
    """The memory in use at one moment. A fact that the profile lacks is None.

    Attributes:
        number: The number in the profile.
        time: The time, in the `time_unit` of the profile.
        live_bytes: The bytes allocated and not freed.
        extra_bytes: The overhead of the allocator: its own data, and rounding.
        stack_bytes: The stacks.
        tree: The call stacks of the live bytes.
        is_peak: Whether it is the peak: the one that the profile marks, unless another is larger.
    """

    number: int
    time: float | None
    live_bytes: int
    extra_bytes: int | None = None
    stack_bytes: int | None = None
    tree: CallTree | None = None
    is_peak: bool = False

    @property
    def used_bytes(self) -> int:
        """The memory in use: live bytes, the allocator's own, and stacks, as far as these are counted."""
        return self.live_bytes + (self.extra_bytes or 0) + (self.stack_bytes or 0)


class Tally(NamedTuple):
    """An amount counted over the whole run, not at a moment.

    Attributes:
        name: `allocated`, `freed`, `temporary` (freed right after they were allocated), `read`, `written`, `copied`,
            `occurred`, `lived` (the lives of all blocks, in the unit of time); or another name from the profile.
        tree: The amounts by call stack.
    """

    name: str
    tree: CallTree


@dataclass(frozen=True)
class Profile:
    """The contents of one profile.

    Attributes:
        format: `massif`, `xtree`, `dhat`, `heaptrack`, `gperftools`, `jemalloc`, `pprof`, `go` (its text), `v8`,
            `mtrace`, `malloc_info`, `nmt` or `leaksanitizer`; `heaptrack massif` is a recording of heaptrack that was
            exported in the format of massif.
        counted: The unit of its amounts.
        command: The command line of the program.
        description: The description in the profile: the options of massif, the mode of DHAT.
        time_unit: The unit of all times: `i` (instructions), `ms`, `s`, `B` (bytes allocated), or DHAT's own word.
        pid: The process.
        frames: The frames of all trees.
        snapshots: In the order of time.
        peak_index: The index of the peak in `snapshots`, where the profile marks one; it may have no tree.
        tallies: The amounts counted over the whole run.
        modules: The mappings of the process, where the profile lists them.
        has_own_allocator: Whether the process had another allocator than that of its C library, and that wrote it.
        heap_owner: The runtime heap that it counts, `[go heap]` or `[v8 heap]`; None for the heap of malloc.
        sample_period_bytes: The mean distance of the samples, where the profile is sampled: then the amounts are
            estimates, scaled to all blocks; 0 where it is unknown.
        notes: Problems of the profile.
        detailed_places: The indexes of the snapshots that have a tree in the profile, where not all trees were built.
        has_end: Whether its last snapshot is its end: massif writes none at the end of a run, and a recording may be
            cut.
    """

    format: str
    counted: Counted
    command: str | None = None
    description: str | None = None
    time_unit: str | None = None
    pid: int | None = None
    frames: tuple[Frame, ...] = ()
    snapshots: tuple[HeapSnapshot, ...] = ()
    peak_index: int | None = None
    tallies: tuple[Tally, ...] = ()
    modules: tuple[Module, ...] = ()
    has_own_allocator: bool = False
    heap_owner: str | None = None
    sample_period_bytes: int | None = None
    notes: tuple[Note, ...] = ()
    detailed_places: tuple[int, ...] = ()
    has_end: bool = True

    @property
    def tree_places(self) -> tuple[int, ...]:
        """The indexes of the snapshots that have a tree, built or not."""
        built = (place for place, snapshot in enumerate(self.snapshots) if snapshot.tree is not None)
        return self.detailed_places or tuple(built)

    @property
    def peak(self) -> HeapSnapshot | None:
        """The snapshot that is the peak, where the profile marks one."""
        return None if self.peak_index is None else self.snapshots[self.peak_index]

    @property
    def untold_peak(self) -> HeapSnapshot | None:
        """The largest snapshot, where it has no tree and all trees are smaller: who asked for it is unknown."""
        most_bytes = max((self.snapshots[place].used_bytes for place in self.tree_places), default=None)
        if most_bytes is None:
            return None
        largest = self.peak or max(self.snapshots, key=attrgetter("used_bytes"))
        return largest if largest.used_bytes > most_bytes else None

    @property
    def left_tree(self) -> CallTree | None:
        """The call tree of the blocks that were not freed when the program ended, where the profile has it."""
        return self.snapshots[-1].tree if self.snapshots and self.format in _UNTIL_THE_END else None


def sampled_notes(source: str, period_bytes: int | None) -> list[Note]:
    """Return the note on a profile that was sampled; none where it counts every block."""
    if period_bytes is None or period_bytes == 1:
        return []
    period = f"one byte in {period_bytes:,} on average" if period_bytes else "and does not tell the period"
    detail = f"it is sampled, {period}: all amounts are estimates"
    return [Note("heap-sampled", source, detail)]
