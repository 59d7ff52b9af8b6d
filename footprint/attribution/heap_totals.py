"""What a heap profile counted over the whole run, by function."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from footprint.attribution.heap_usage import HeapUsage


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
