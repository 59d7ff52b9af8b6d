"""`heap --json`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.elf import shown_name
from footprint.errors import Note
from footprint.formats.escape import well_formed
from footprint.formats.findings_json import finding_rows
from footprint.formats.json import Json, envelope, note_rows
from footprint.heap import CallTree, Profile
from footprint.heap.attribution import callees, callers
from footprint.model.finding import Finding
from footprint.model.heap_account import Share

__all__ = ("call_rows", "heap_members", "share_rows")

# The nodes of a tree repeat their names, and a name may be as long as a profile is.
_LONGEST_NAME: Final = 8192
# What was counted over a run; how long blocks lived is in the unit of time, and what only a profile knows in none.
_UNITS: Final = dict.fromkeys(("allocated", "freed", "read", "written", "copied"), "bytes") | {"occurred": "units"}


def heap_members(
    usages: Sequence[HeapUsage], notes: Sequence[Note], version: str, *, by: str, findings: Sequence[Finding] = ()
) -> Json:
    """Give what heap profiles say; `by` is `tree` or `callers` where their call trees are wanted too."""
    tables: dict[str, list[Json]] = {
        "profiles": [],
        "snapshots": [],
        "owners": [],
        "heap": [],
        "calls": [],
        "tallies": [],
    }
    for usage in usages:
        file = well_formed(usage.file)
        tables["profiles"].append(_profile(usage, file))
        tables["snapshots"] += _snapshots(usage, file)
        tables["tallies"] += _tallies(usage.profile, file)
        if usage.attribution is None or usage.tree is None:
            continue
        tables["owners"] += [
            {"file": file, "owner": well_formed(one.owner), "bytes": one.size_bytes, "block_count": one.block_count}
            for one in usage.attribution.owners
        ]
        tables["heap"] += share_rows(usage.attribution.shares, file)
        if by in {"tree", "callers"}:
            grown = callers(usage.tree, usage.calls) if by == "callers" else callees(usage.tree, usage.calls)
            tables["calls"] += call_rows(grown, file)
    target = {"files": [well_formed(usage.file) for usage in usages], "by": by}
    return envelope(version, {}, target) | tables | {"findings": finding_rows(findings, 1), "notes": note_rows(notes)}


def _profile(usage: HeapUsage, file: str) -> Json:
    profile, snapshot, attribution = usage.profile, usage.snapshot, usage.attribution
    return {
        "file": file,
        "format": profile.format,
        "counted": profile.counted.value,
        "command": None if profile.command is None else well_formed(profile.command),
        "description": None if profile.description is None else well_formed(profile.description),
        "time_unit": None if profile.time_unit is None else well_formed(profile.time_unit),
        "pid": profile.pid,
        "snapshot": None if snapshot is None else snapshot.number,
        "tally": usage.tally,
        "live_bytes": None if snapshot is None else snapshot.live_bytes,
        "extra_bytes": None if snapshot is None else snapshot.extra_bytes,
        "stack_bytes": None if snapshot is None else snapshot.stack_bytes,
        "tree_bytes": None if attribution is None else attribution.total_bytes,
        "attributed_bytes": None if attribution is None else attribution.attributed_bytes,
        "evidence": usage.evidence.value,
    }


def _snapshots(usage: HeapUsage, file: str) -> Iterator[Json]:
    trees = frozenset(usage.profile.tree_places)
    for place, one in enumerate(usage.profile.snapshots):
        yield {
            "file": file,
            "number": one.number,
            "time": one.time,
            "live_bytes": one.live_bytes,
            "extra_bytes": one.extra_bytes,
            "stack_bytes": one.stack_bytes,
            "is_peak": one.is_peak,
            "has_tree": place in trees,
        }


def _tallies(profile: Profile, file: str) -> Iterator[Json]:
    for one in profile.tallies:
        unit = well_formed(profile.time_unit or "") if one.name == "lived" else _UNITS.get(one.name)
        yield {
            "file": file,
            "name": well_formed(one.name[:_LONGEST_NAME]),
            "amount": one.tree.total_bytes,
            "unit": unit,
            "block_count": one.tree.total_blocks,
        }


def share_rows(shares: Iterable[Share], file: str) -> Iterator[Json]:
    """Give the table of what each function asked for."""
    for one in shares:
        place = _place(one.owner, one.function)
        yield {"file": file} | place | {"bytes": one.size_bytes, "block_count": one.block_count}


def _place(owner: str, function: str) -> Json:
    return {
        "owner": well_formed(owner),
        "symbol": None if function.startswith("[") else well_formed(function),
        "name": well_formed(shown_name(function)),
    }


def call_rows(tree: CallTree, file: str) -> Iterator[Json]:
    """Give the table of a call tree, each node after its parent; the root, which is 0, is left out."""
    for node in range(1, len(tree)):
        frame = tree.frame(node)
        yield {
            "file": file,
            "node": node,
            "parent": tree.parents[node],
            **_place((frame.object or "")[:_LONGEST_NAME], (frame.function or "")[:_LONGEST_NAME]),
            "bytes": tree.node_bytes[node],
            "block_count": None if tree.node_blocks is None else tree.node_blocks[node],
        }
