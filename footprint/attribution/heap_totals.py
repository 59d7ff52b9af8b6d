"""What a heap profile counted over the whole run, and what grew between its moments, by function."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.errors import UsageError
from footprint.members import NamedTuple

ORDERS: Final = {
    "allocated": "allocated_bytes",
    "blocks": "allocated_blocks",
    "temporary": "temporary_blocks",
    "lifetime": "lifetime",
    "read": "read_bytes",
    "written": "written_bytes",
    "leaked": "leaked_bytes",
}
"""The totals that functions can be sorted by, the largest first."""
# The fields of the bytes and of the blocks of each tally.
_TALLIES: Final = {
    "allocated": ("allocated_bytes", "allocated_blocks"),
    "temporary": ("", "temporary_blocks"),
    "read": ("read_bytes", ""),
    "written": ("written_bytes", ""),
    "lived": ("lived", ""),
    "leaked": ("leaked_bytes", "leaked_blocks"),
}


class FunctionTotals(NamedTuple):
    """What was counted of the memory that one function asked for; None where the profile does not count it.

    Attributes:
        owner: The path of the object of the function, or in brackets why it is not known.
        function: The name of the function, or in brackets why there is none.
        allocated_bytes: All bytes that it asked for.
        allocated_blocks: The number of blocks.
        temporary_blocks: Blocks that were freed right after they were allocated: between the two was no other
            allocation and no other free.
        lived: The lives of all blocks together, in the unit of time of the profile; blocks that were not freed lived
            until the end.
        read_bytes: The bytes that were read in its blocks; a byte counts as often as it was read.
        written_bytes: The bytes that were written in its blocks, likewise.
        leaked_bytes: The bytes that were not freed when the program ended.
        leaked_blocks: The number of these blocks.
    """

    owner: str
    function: str
    allocated_bytes: int | None = None
    allocated_blocks: int | None = None
    temporary_blocks: int | None = None
    lived: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    leaked_bytes: int | None = None
    leaked_blocks: int | None = None

    @property
    def lifetime(self) -> float | None:
        """How long a block lived on average."""
        return None if self.lived is None else self.lived / (self.allocated_blocks or 1)


def run_totals(usage: HeapUsage) -> tuple[FunctionTotals, ...]:
    """Return the totals of each function, the largest of what it counts first; none if the profile has no totals."""
    counts = [(tally.tree, _TALLIES[tally.name]) for tally in usage.profile.tallies if tally.name in _TALLIES]
    if not counts:
        return ()
    if (left := usage.profile.left_tree) is not None:
        counts.append((left, _TALLIES["leaked"]))
    # What is counted of one function is 0 of another that has none.
    fields: dict[str, Any] = {}
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for tree, (bytes_field, blocks_field) in counts:
        names = {bytes_field: "size_bytes"} if bytes_field else {}
        names |= {blocks_field: "block_count"} if blocks_field and tree.total_blocks is not None else {}
        fields |= dict.fromkeys(names, 0)
        for share in usage.shares_in(tree):
            row = sums.setdefault(share[:2], {})
            row.update((field, getattr(share, amount)) for field, amount in names.items())
    totals = [FunctionTotals(*place, **(fields | row)) for place, row in sums.items()]
    return sorted_totals(totals)


def counted_by(totals: Sequence[FunctionTotals]) -> list[str]:
    """Return the orders in which totals can be sorted."""
    return [order for order, field in ORDERS.items() if totals and getattr(totals[0], field) is not None]


def sorted_totals(totals: Sequence[FunctionTotals], order: str | None = None) -> tuple[FunctionTotals, ...]:
    """Sort totals, the largest first; by the first order in which they can be sorted, where none is given.

    Equal ones follow what they allocated, then their names. An owner is a path: where a checkout lies sorts nothing.
    """
    field = ORDERS[order or next(iter(counted_by(totals)), "allocated")]

    def place(totals: FunctionTotals) -> tuple[float, int, str, str]:
        return -(getattr(totals, field) or 0), -(totals.allocated_bytes or 0), totals.function, totals.owner

    return tuple(sorted(totals, key=place))


class GrownFunction(NamedTuple):
    """The memory of one function at the first and at the last moment.

    Attributes:
        owner: The path of its object, or in brackets why it is not known.
        function: Its name, or in brackets why there is none.
        first_bytes: Its bytes at the first moment.
        last_bytes: Its bytes at the last moment.
        step: The numbers of the two successive snapshots between which it grew most.
        step_bytes: By how much it grew between them.
    """

    owner: str
    function: str
    first_bytes: int
    last_bytes: int
    step: tuple[int, int]
    step_bytes: int

    @property
    def growth_bytes(self) -> int:
        """By how much it grew from the first to the last moment."""
        return self.last_bytes - self.first_bytes


class Growth(NamedTuple):
    """What grew in a profile.

    Attributes:
        numbers: The numbers of the snapshots that were compared, in the order of time.
        functions: Each function that has memory at one of them, the one that grew most first. Their growth adds up to
            that of the profile.
    """

    numbers: tuple[int, ...]
    functions: tuple[GrownFunction, ...]


def growth_of(usage: HeapUsage) -> Growth:
    """Return what grew from the first call tree of a profile to its chosen moment.

    Raises:
        UsageError: If no call tree is earlier than the chosen moment.
    """
    moments = []
    for snapshot in usage.profile.snapshots:
        if snapshot.tree is not None:
            sizes = {share[:2]: share.size_bytes for share in usage.shares_in(snapshot.tree)}
            moments.append((snapshot.number, sizes))
        if snapshot is usage.snapshot:
            break
    if usage.snapshot is None or len(moments) < 2:
        raise UsageError(
            f"{usage.file} has no call tree before this moment: growth needs two (--at end chooses the last moment; "
            "massif --detailed-freq=1 keeps all call trees)"
        )
    functions = []
    for owner, function in dict.fromkeys(place for _, sizes in moments for place in sizes):
        sizes_bytes = [(number, sizes.get((owner, function), 0)) for number, sizes in moments]
        before, after = max(pairwise(sizes_bytes), key=lambda step: step[1][1] - step[0][1])
        step = (before[0], after[0])
        functions.append(
            GrownFunction(owner, function, sizes_bytes[0][1], sizes_bytes[-1][1], step, after[1] - before[1])
        )
    functions.sort(key=lambda f: (-f.growth_bytes, -f.step_bytes, f.owner, f.function))
    return Growth(tuple([number for number, _ in moments]), tuple(functions))
