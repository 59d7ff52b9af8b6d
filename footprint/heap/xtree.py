"""XTree memory files of Valgrind: their snapshots are not moments, but columns of figures for the same stacks.

Source: coregrind/m_xtmemory.c of Valgrind 3.13 to 3.28.
"""

import re
from array import array
from typing import Final

from footprint.heap.profile import CallTree, HeapSnapshot, Tally

__all__ = ("read_columns",)

# The root of a column names it: `totB : total allocated Bytes`.
_HEADING: Final = re.compile(r"([A-Za-z]+) : ")
# The column of bytes, the column of blocks, and our name for the pair; None for the memory in use.
_PAIRS: Final = (("curB", "curBk", None), ("totB", "totBk", "allocated"), ("totFdB", "totFdBk", "freed"))


def read_columns(snapshots: tuple[HeapSnapshot, ...]) -> tuple[tuple[HeapSnapshot, ...], tuple[Tally, ...]] | None:
    """Return the one moment of an XTree and the tallies of the run; None where the snapshots are not an XTree."""
    columns: dict[str, tuple[HeapSnapshot, CallTree]] = {}
    for snapshot in snapshots:
        if snapshot.tree is None:
            continue
        heading = _HEADING.match(snapshot.tree.frame(0).label or "")
        if heading is None or heading[1] in columns:
            return None
        columns[heading[1]] = (snapshot, snapshot.tree)
    if not columns:
        return None
    moments: list[HeapSnapshot] = []
    tallies: list[Tally] = []
    for bytes_name, blocks_name, tally_name in _PAIRS:
        if bytes_name not in columns:
            continue
        snapshot, tree = columns.pop(bytes_name)
        if blocks_name in columns and (both := _joined(tree, columns[blocks_name][1])):
            tree = both
            del columns[blocks_name]
        if tally_name is None:
            moments.append(HeapSnapshot(0, snapshot.time, snapshot.live_bytes, tree=tree))
        else:
            tallies.append(Tally(tally_name, tree))
    tallies += [Tally(name, tree) for name, (_, tree) in columns.items()]
    return tuple(moments), tuple(tallies)


def _joined(tree: CallTree, blocks: CallTree) -> CallTree | None:
    """Join a tree of bytes with the blocks of a tree of the same stacks; return None where the stacks differ."""
    steps = {step: node for node, step in enumerate(zip(tree.parents, tree.frame_indexes, strict=True)) if node}
    if len(tree) != len(blocks) or len(steps) != len(tree) - 1:
        return None
    counts = array("q", bytes(8 * len(tree)))
    counts[0] = blocks.total_bytes
    places = [0]
    for parent, index, count in zip(blocks.parents[1:], blocks.frame_indexes[1:], blocks.node_bytes[1:], strict=True):
        place = steps.get((places[parent], index))
        if place is None:
            return None
        places.append(place)
        counts[place] = count
    return CallTree(tree.frames, tree.parents, tree.frame_indexes, tree.node_bytes, counts)
