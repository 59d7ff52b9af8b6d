"""XTree memory files of Valgrind: their snapshots are not moments, but columns of figures for the same stacks.

`footprint run --massif` appends one to the file of massif, which has no snapshot at the end of the run.

Source: coregrind/m_xtmemory.c of Valgrind 3.13 to 3.28.
"""

import re
from array import array
from typing import Final

from footprint.heap.profile import CallTree, HeapSnapshot, Tally

__all__ = ("COLUMN_ROOT", "read_columns")

# The root of a column names it: `totB : total allocated Bytes`.
COLUMN_ROOT: Final = re.compile(rb"n[0-9]{1,9}+: [0-9]{1,18}+ [A-Za-z]{1,16}+ : ")
_HEADING: Final = re.compile(r"([A-Za-z]{1,16}) : ")
# The column of bytes, the column of blocks, and our name for the pair; None for the memory in use.
_PAIRS: Final = (("curB", "curBk", None), ("totB", "totBk", "allocated"), ("totFdB", "totFdBk", "freed"))


def read_columns(snapshots: tuple[HeapSnapshot, ...]) -> tuple[tuple[HeapSnapshot, ...], tuple[Tally, ...]] | None:
    """Return the moments before an XTree with its one moment, and its tallies of the run; None without an XTree."""
    first = next((place for place, one in enumerate(snapshots) if one.tree and _heading(one.tree)), None)
    if first is None:
        return None
    columns: dict[str, tuple[HeapSnapshot, CallTree]] = {}
    for snapshot in snapshots[first:]:
        if snapshot.tree is None:
            continue
        heading = _heading(snapshot.tree)
        if heading is None or heading in columns:
            return None
        columns[heading] = (snapshot, snapshot.tree)
    moments = list(snapshots[:first])
    tallies: list[Tally] = []
    for bytes_name, blocks_name, tally_name in _PAIRS:
        if bytes_name not in columns:
            continue
        snapshot, tree = columns.pop(bytes_name)
        if blocks_name in columns:
            tree = _joined(tree, columns.pop(blocks_name)[1])
        if tally_name is None:
            moments.append(HeapSnapshot(snapshot.number, snapshot.time, snapshot.live_bytes, tree=tree))
        else:
            tallies.append(Tally(tally_name, tree))
    tallies += [Tally(name, tree) for name, (_, tree) in columns.items()]
    return tuple(moments), tuple(tallies)


def _heading(tree: CallTree) -> str | None:
    found = _HEADING.match(tree.frame(0).label or "")
    return found and found[1]


def _joined(tree: CallTree, blocks: CallTree) -> CallTree:
    """Join a tree of bytes with the blocks of its stacks; the blocks of stacks that it has in a lump remain above."""
    steps: dict[tuple[int, int], int] = {}
    for node, step in enumerate(zip(tree.parents, tree.frame_indexes, strict=True)):
        steps.setdefault(step, node)
    counts = array("q", bytes(8 * len(tree)))
    counts[0] = blocks.total_bytes
    places = [0]
    for parent, index, count in zip(blocks.parents[1:], blocks.frame_indexes[1:], blocks.node_bytes[1:], strict=True):
        place = steps.get((places[parent], index), -1)
        places.append(place)
        if place > 0:
            counts[place] += count
    return CallTree(tree.frames, tree.parents, tree.frame_indexes, tree.node_bytes, counts)
