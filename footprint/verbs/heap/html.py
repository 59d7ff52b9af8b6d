"""The HTML report of `footprint heap`."""

from collections.abc import Iterator, Sequence
from typing import Final

from footprint.attribution.heap_usage import HeapUsage, used_bytes
from footprint.errors import Note
from footprint.formats.escape import well_formed
from footprint.formats.json import Json
from footprint.heap import CallTree
from footprint.heap.attribution import attribute, callees
from footprint.html import report
from footprint.model.finding import Finding
from footprint.units import counted
from footprint.verbs.heap.json import heap_members, tree_members
from footprint.verbs.heap.text import heap_document

__all__ = ("heap_html",)

# The limit keeps the file small enough to be sent by mail.
_MOST_NODES: Final = 300_000


def heap_html(
    usages: Sequence[HeapUsage], notes: Sequence[Note], version: str, findings: Sequence[Finding] = ()
) -> str:
    """Write the HTML report of heap profiles, with the call tree of every moment that has one.

    Args:
        usages: The profiles, each at one moment.
        notes: What was odd in them.
        version: The version of footprint.
        findings: The findings in them.
    """
    # Moments of one profile share it.
    of_profile: dict[int, list[HeapUsage]] = {}
    for usage in usages:
        of_profile.setdefault(id(usage.profile), []).append(usage)
    moments, left_out_count = _moments([some[0] for some in of_profile.values()])
    answers = {
        "kind": "heap",
        "heap": heap_members(usages, notes, version, by="tree", findings=findings),
        "used_bytes": [used_bytes(one) for usage in usages for one in usage.profile.snapshots],
        "named": {
            well_formed(some[0].file): [one.snapshot and one.snapshot.number for one in some]
            for some in of_profile.values()
        },
        # One member for each moment, not rows of one table: the tables within them become columns.
        "moments": dict(enumerate(moments)),
    }
    warning = ""
    if left_out_count:
        trees = counted(left_out_count, "call tree")
        warning = f"{trees} of the profile: too many for this report; `heap --at` shows each."
    return report(", ".join(usage.file for usage in usages), answers, heap_document(usages, notes, findings), warning)


def _moments(usages: Sequence[HeapUsage]) -> tuple[list[Json], int]:
    """Return the call tree and the bytes by function of each moment, and the number of call trees left out."""
    moments: list[Json] = []
    room = _MOST_NODES
    left_out_count = 0
    for usage in usages:
        file = well_formed(usage.file)
        left_out_count += sum(1 for place in usage.profile.tree_places if usage.profile.snapshots[place].tree is None)
        for name, tree in _trees(usage):
            # The tree of a profile has a node for each call of a stack; the tree that is shown has at most as many.
            if len(tree) > room:
                left_out_count += 1
                continue
            shown = callees(tree, usage.calls)
            room -= len(shown)
            moments.append(
                {
                    "file": file,
                    "moment": name,
                    "bytes": tree.total_bytes,
                    **tree_members(shown, attribute(tree, usage.calls).shares, file),
                }
            )
    return moments, left_out_count


def _trees(usage: HeapUsage) -> Iterator[tuple[int | str, CallTree]]:
    """Yield the call trees of a profile with the snapshot number or the tally name; the chosen snapshot comes first."""
    own = usage.snapshot
    if own is not None and own.tree is not None:
        yield own.number, own.tree
    for snapshot in usage.profile.snapshots:
        if snapshot.tree is not None and (own is None or snapshot.number != own.number):
            yield snapshot.number, snapshot.tree
    for tally in usage.profile.tallies:
        yield tally.name, tally.tree
