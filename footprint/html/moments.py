"""Who asked for the heap at each moment of a profile, for a page that shows them all."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.formats.escape import well_formed
from footprint.heap import CallTree
from footprint.heap.attribution import attribute, callees
from footprint.units import counted
from footprint.verbs.heap.json import call_rows, share_rows

__all__ = ("moment_rows",)

Json = dict[str, Any]

# A page stays small enough to be sent around.
_MOST_NODES: Final = 300_000


def moment_rows(usages: Sequence[HeapUsage]) -> tuple[list[Json], str]:
    """Give the call tree of each moment, and its bytes by function; and which were left out, where some were."""
    found: list[Json] = []
    left = _MOST_NODES
    left_count = 0
    for usage in usages:
        file = well_formed(usage.file)
        left_count += sum(1 for place in usage.profile.tree_places if usage.profile.snapshots[place].tree is None)
        for name, tree in _trees(usage):
            # A profile has a node for each call of a stack, and the tree that is shown at most as many.
            if len(tree) > left:
                left_count += 1
                continue
            shown = callees(tree, usage.calls)
            left -= len(shown)
            found.append(
                {
                    "file": file,
                    "moment": name,
                    "bytes": tree.total_bytes,
                    "calls": list(call_rows(shown, file)),
                    "shares": list(share_rows(attribute(tree, usage.calls).shares, file)),
                }
            )
    warning = ""
    if left_count:
        warning = f"{counted(left_count, 'call tree')} of the profile: too many for a page; `heap --at` shows each."
    return found, warning


def _trees(usage: HeapUsage) -> Iterator[tuple[int | str, CallTree]]:
    """Give the trees of a profile, that of the moment that was asked for first."""
    own = usage.snapshot
    if own is not None and own.tree is not None:
        yield own.number, own.tree
    for snapshot in usage.profile.snapshots:
        if snapshot.tree is not None and (own is None or snapshot.number != own.number):
            yield snapshot.number, snapshot.tree
    for tally in usage.profile.tallies:
        yield tally.name, tally.tree
