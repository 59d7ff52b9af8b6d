"""The HTML report of `footprint heap`."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from footprint.attribution.heap_usage import HeapUsage
from footprint.errors import Note
from footprint.formats.document import Verdict
from footprint.heap.attribution import attribute, callees
from footprint.heap.profile import CallTree
from footprint.html import report
from footprint.json.answer import Json
from footprint.model.finding import Finding
from footprint.text.escape import well_formed
from footprint.text.units import counted
from footprint.verbs.heap.json import heap_members, tree_members
from footprint.verbs.heap.text import heap_document

# The limit keeps the file small enough to be sent by mail.
_MOST_NODES: Final = 300_000


def heap_html(
    usages: Sequence[HeapUsage],
    notes: Sequence[Note],
    version: str,
    findings: Sequence[Finding] = (),
    failure: str = "",
) -> str:
    """Build the HTML report of heap profiles, with the call tree of every moment that has one.

    Args:
        usages: The profiles, each at one moment.
        notes: What was odd in them.
        version: The version of footprint.
        findings: The findings in them.
        failure: Why the command fails.
    """
    # Moments of one profile share it.
    of_profile: dict[int, list[HeapUsage]] = {}
    for usage in usages:
        of_profile.setdefault(id(usage.profile), []).append(usage)
    profiles = [some[0] for some in of_profile.values()]
    shown = _thinned([_trees(profile) for profile in profiles])
    texts = {well_formed(u.file): _left_out_text(u, len(trees)) for u, trees in zip(profiles, shown, strict=True)}
    left_out = {file: text for file, text in texts.items() if text}
    document = heap_document(usages, notes, findings)
    answers = {
        "kind": "heap",
        "verdict": next(block.text for block in document if isinstance(block, Verdict)),
        "heap": heap_members(usages, notes, version, by="tree", findings=findings),
        "used_bytes": [snapshot.used_bytes for usage in usages for snapshot in usage.profile.snapshots],
        "named": {
            well_formed(some[0].file): [usage.snapshot and usage.snapshot.number for usage in some]
            for some in of_profile.values()
        },
        # One member for each moment, not rows of one table: the tables within them become columns.
        "moments": dict(
            enumerate(_moment(profile, tree) for profile, trees in zip(profiles, shown, strict=True) for tree in trees)
        ),
        "left_out": left_out,
    }
    title = f"heap of {', '.join(usage.file.rsplit('/', 1)[-1] for usage in usages)}"
    return report(title, answers, document, " ".join(left_out.values()), failure)


class _Tree(NamedTuple):
    """The call tree of a snapshot, by its number, or of a tally, by its name."""

    moment: int | str
    tree: CallTree
    is_kept: bool


def _trees(usage: HeapUsage) -> list[_Tree]:
    """Return the call trees of a profile in the order of time; the chosen one, the peak and both ends are kept."""
    chosen = None if usage.snapshot is None else usage.snapshot.number
    full = [snapshot for snapshot in usage.profile.snapshots if snapshot.tree is not None]
    most = max(full, key=lambda s: s.live_bytes, default=None)
    kept = {chosen, *(s.number for s in (*full[:1], *full[-1:])), most and most.number}
    snapshots = [_Tree(s.number, s.tree, is_kept=s.is_peak or s.number in kept) for s in full if s.tree is not None]
    return [*snapshots, *(_Tree(tally.name, tally.tree, is_kept=True) for tally in usage.profile.tallies)]


def _thinned(profiles: Sequence[Sequence[_Tree]]) -> list[list[_Tree]]:
    """Return as many trees of each profile as a report has room for, evenly spread over its time.

    None are returned where those that must be kept are too many. The tree of a profile has a node for each call of a
    stack; the tree that is shown has at most as many.
    """
    for step in range(1, max(map(len, profiles), default=0) + 1):
        shown = [[tree for place, tree in enumerate(trees) if tree.is_kept or not place % step] for trees in profiles]
        if sum(len(tree.tree) for trees in shown for tree in trees) <= _MOST_NODES:
            return shown
    return [[] for _ in profiles]


def _left_out_text(usage: HeapUsage, shown_count: int) -> str:
    """Describe how many call trees of a profile the report has, where it has not all of them."""
    all_count = len(usage.profile.tree_places) + len(usage.profile.tallies)
    if shown_count == all_count:
        return ""
    trees = f"{shown_count:,} of {counted(all_count, 'call tree')} of {usage.file}"
    return f"This report has {trees}, evenly spread, with the peak and both ends; `heap --at` shows each."


def _moment(usage: HeapUsage, tree: _Tree) -> Json:
    """Return the call tree and the bytes by function of a moment."""
    file = well_formed(usage.file)
    shares = attribute(tree.tree, usage.calls).shares
    tables = tree_members(callees(tree.tree, usage.calls), shares, file)
    return {"file": file, "moment": tree.moment, "bytes": tree.tree.total_bytes, **tables}
