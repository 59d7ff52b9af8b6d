"""What a profile of allocations says, whoever wrote it: memory over time, and the call stacks that asked for it."""

from array import array
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress, islice
from operator import eq
from typing import NamedTuple

from footprint.errors import Note

__all__ = ("Buffer", "CallTree", "Counted", "Frame", "HeapSnapshot", "Module", "Profile", "Tally")

Buffer = bytes | memoryview


class Counted(StrEnum):
    """What the amounts of a profile are amounts of."""

    HEAP = "heap"
    """Bytes that were asked of the allocator."""
    PAGES = "pages"
    """Address space that was asked of the kernel: reserved and untouched pages are in it."""
    COPIES = "copies"
    """Bytes that memcpy and its kin moved: no memory at all."""
    EVENTS = "events"
    """Units that the program itself declared."""


class Frame(NamedTuple):
    """One call of a stack, or the words that stand in the place of one. What the profile does not tell is None.

    Attributes:
        addr: The address in the process: of the call or behind it, as the profile has it.
        function: The name as the profile has it, linker name or demangled.
        file: The source file, mostly without its folder.
        line: The line in it.
        object: The path of the program or library.
        label: The whole text of what is no call: the heading of a tree, or `in 30 places, all below ...`.
    """

    addr: int | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    object: str | None = None
    label: str | None = None


class Module(NamedTuple):
    """A mapping that the profile lists, by which its addresses can be named. The range is half-open.

    Attributes:
        start_addr: First address.
        end_addr: First address behind it.
        permissions: Four letters as in `/proc/PID/maps`.
        offset: Where in the file it begins, in bytes.
        path: The file, or `[heap]` and its like, or "".
    """

    start_addr: int
    end_addr: int
    permissions: str
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class CallTree:
    """Call stacks as one tree, from the allocation outwards: below a node stand its callers, and `main` is a leaf.

    Node 0 is the root: all stacks together. A parent stands before its children; beyond that the order is that of the
    profile. The amounts of a node hold those of the nodes below it.

    Functions that the compiler inlined are nodes of their own, the innermost first, with the address of the call that
    all of them were compiled into: see `inlined_nodes`.

    Attributes:
        frames: The frames of all trees of the profile.
        parents: The parent of each node, -1 for the root.
        frame_indexes: The place of each node's frame in `frames`.
        node_bytes: The bytes of each node.
        node_blocks: Its blocks, where the profile counts them.
    """

    frames: tuple[Frame, ...]
    parents: "array[int]"
    frame_indexes: "array[int]"
    node_bytes: "array[int]"
    node_blocks: "array[int] | None" = None

    def __len__(self) -> int:
        """Give the number of nodes."""
        return len(self.parents)

    @property
    def total_bytes(self) -> int:
        """Give the bytes of all stacks together."""
        return self.node_bytes[0]

    @property
    def total_blocks(self) -> int | None:
        """Give the blocks of all stacks together, where the profile counts them."""
        return None if self.node_blocks is None else self.node_blocks[0]

    def frame(self, node: int) -> Frame:
        """Give the frame of a node."""
        return self.frames[self.frame_indexes[node]]

    def stack(self, node: int) -> list[Frame]:
        """Give the frames from the allocation to a node, the root left out."""
        found = []
        while node > 0:
            found.append(self.frame(node))
            node = self.parents[node]
        return found[::-1]

    def own_bytes(self) -> list[int]:
        """Give what of each node's bytes no node below it has: they add up to the total.

        What a faulty profile counts twice shows as a negative amount.
        """
        own = self.node_bytes.tolist()
        for parent, amount in zip(self.parents[1:], self.node_bytes[1:], strict=True):
            own[parent] -= amount
        return own

    def inlined_nodes(self) -> bytearray:
        """Mark with 1 each node whose function was inlined into its caller, the node below.

        Both have one address then, and differ in the rest: two calls that are alike in all are a recursion.
        """
        marks = bytearray(len(self))
        indexes, parents = self.frame_indexes, self.parents
        known = [frame.addr for frame in self.frames]
        told = [addr for addr in known if addr is not None]
        if len(set(told)) == len(told):
            # Each address is of one function: the profile tells of none that was inlined.
            return marks
        addrs = list(map(known.__getitem__, indexes))
        # Few have the address of the node below: those are found without a loop.
        alike = map(eq, islice(addrs, 1, None), map(addrs.__getitem__, islice(parents, 1, None)))
        for node in compress(range(1, len(self)), alike):
            if addrs[node] is not None and indexes[parents[node]] != indexes[node]:
                marks[parents[node]] = 1
        return marks


class HeapSnapshot(NamedTuple):
    """The memory in use at one moment. What the profile does not tell is None.

    Attributes:
        number: As the profile counts them.
        time: When, in the `time_unit` of the profile.
        live_bytes: What the program asked for and has not freed.
        extra_bytes: What the allocator uses beside it: its own data, and sizes rounded up.
        stack_bytes: The stacks.
        tree: Where the live bytes come from.
        is_peak: Whether the profile calls this its peak.
    """

    number: int
    time: float | None
    live_bytes: int
    extra_bytes: int | None = None
    stack_bytes: int | None = None
    tree: CallTree | None = None
    is_peak: bool = False


class Tally(NamedTuple):
    """What was counted over the whole run rather than at a moment.

    Attributes:
        name: `allocated`, `freed`, `read`, `written`, `copied`, `occurred`, `lived` (the lives of all blocks, in the
            unit of time); or a name that only the profile knows.
        tree: By which stacks.
    """

    name: str
    tree: CallTree


@dataclass(frozen=True, slots=True)
class Profile:
    """All that one profile says.

    Attributes:
        format: Which it is: `massif`, `xtree`, `dhat`, `heaptrack`, `gperftools`, `jemalloc`; `heaptrack massif` is a
            recording of heaptrack that was exported as massif's.
        counted: What its amounts are.
        command: The command line of the program.
        description: What the profile says of itself: massif's own options, the mode of DHAT.
        time_unit: The unit of all times: `i` (instructions), `ms`, `s`, `B` (bytes allocated), or DHAT's own word.
        pid: The process.
        frames: What the nodes of all trees are.
        snapshots: In the order of time.
        peak_index: The place of the peak in `snapshots`, where the profile tells one.
        tallies: What was counted over the whole run.
        modules: The mappings of the process, where the profile lists them.
        sample_period_bytes: Where one block in so many bytes was looked at: the amounts are scaled, hence estimates.
        notes: What was odd.
        detailed_places: The places of the snapshots that have a tree in the profile, where not all of those were built.
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
    sample_period_bytes: int | None = None
    notes: tuple[Note, ...] = ()
    detailed_places: tuple[int, ...] = ()

    @property
    def tree_places(self) -> tuple[int, ...]:
        """Give the places of the snapshots that have a tree, built or not."""
        built = (place for place, snapshot in enumerate(self.snapshots) if snapshot.tree is not None)
        return self.detailed_places or tuple(built)

    @property
    def peak(self) -> HeapSnapshot | None:
        """Give the snapshot that the profile calls its peak."""
        return None if self.peak_index is None else self.snapshots[self.peak_index]
