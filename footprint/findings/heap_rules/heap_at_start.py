"""Rule `heap-at-start`: tables that each process fills at its start and keeps; constant, but private in every process.

What a profile tells decides how sure that is. DHAT counts what is written: where each byte was written once, the table
is as it was filled. The others tell no more than that it was there early and stayed as large.
"""

from collections.abc import Container, Iterator
from collections.abc import Mapping as Dict
from itertools import pairwise
from typing import Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.findings.heap_functions import LEAST_BYTES, at_most_held, function_facts, requested
from footprint.findings.registry import Fact, HeapFacts, Rule
from footprint.heap.attribution import charged
from footprint.heap.profile import CallTree, Counted, Profile
from footprint.members import NamedTuple
from footprint.model.finding import Confidence, Finding
from footprint.model.heap_account import Share
from footprint.text.units import counted, format_bytes

_LEAST_ALIKE: Final = 64
# The start is the first tenth of a run. A very short run is all start.
_START_SHARE: Final = 10
_SHORT: Final = {"i": 10**7, "instrs": 10**7, "ms": 100, "s": 0.1, "B": 0}
# Blocks that lived for so many tenths of the run were kept: some programs free everything at their end.
_KEPT_TENTHS: Final = 8
_FEW_TREES: Final = 4
# The pool for exceptions, and Python's index of its arenas: programs hardly touch them, so they cost nothing.
_LEFT_ALONE_OBJECT: Final = "libstdc++.so"
_LEFT_ALONE_FUNCTION: Final = "arena_map_mark_used"
_REMEDY: Final = (
    "where it holds the same in each process, make it a static const table, or fill it before the workers are forked: "
    "then all share one copy"
)
_REMEDY_ALIKE: Final = "where several of them hold the same, keep one and point to it; or put them into one block"

_Place = tuple[str, str]


class _Table(NamedTuple):
    """The memory that a function asked for and kept; whether it did so at the start, as far as is known."""

    share: Share
    kind: str
    confidence: Confidence
    reasons: tuple[str, ...]
    is_at_start: bool = True


def heap_at_start(heap: HeapFacts) -> tuple[Finding, ...]:
    """Find large tables that are filled at start and kept, and blocks of one call that are alike.

    No more than the process holds can be saved.
    """
    usage, held_bytes = heap
    profile = usage.profile
    # The heap of a runtime moves or collects its blocks: none of them can be a constant.
    if profile.counted is not Counted.HEAP or not profile.snapshots or profile.heap_owner is not None:
        return ()
    tables = list(_tables(usage))
    findings = [_table_finding(table, held_bytes) for table in tables]
    findings += map(_alike_finding, _alike(usage, {table.share[:2] for table in tables}))
    return tuple(sorted(findings, key=lambda finding: (-finding.saving_bytes, finding.subject)))


RULE: Final = Rule(
    "heap-at-start", "Memory of the allocator that is filled once, or kept from the start", (Fact.HEAP,), heap_at_start
)


def _tables(usage: HeapUsage) -> Iterator[_Table]:
    profile = usage.profile
    tallies = {tally.name: tally.tree for tally in profile.tallies}
    if "allocated" not in tallies:
        yield from _steady(usage)
    elif "lived" in tallies or profile.format != "dhat":
        yield from _counted(usage, tallies)


def _is_told(share: Share) -> bool:
    if share.function.startswith(("[", _LEFT_ALONE_FUNCTION)) or _LEFT_ALONE_OBJECT in share.owner:
        return False
    return share.size_bytes >= LEAST_BYTES


def _by_place(tree: CallTree, usage: HeapUsage) -> dict[_Place, Share]:
    return {(share.owner, share.function): share for share in usage.shares_in(tree)}


def _start_end(profile: Profile) -> float:
    """Return the time at which the start ends."""
    times = [snapshot.time for snapshot in profile.snapshots if snapshot.time is not None]
    return max(max(times, default=0) / _START_SHARE, _SHORT.get(profile.time_unit or "", 0))


# --- DHAT and heaptrack: all blocks are counted -----------------------------------------------------------------------


def _counted(usage: HeapUsage, tallies: Dict[str, CallTree]) -> Iterator[_Table]:
    profile = usage.profile
    last = profile.snapshots[-1]
    if last.tree is None:
        return
    left = _by_place(last.tree, usage)
    lived, written, read = (
        _by_place(tallies[name], usage) if name in tallies else None for name in ("lived", "written", "read")
    )
    at_peak = _by_place(profile.peak.tree, usage) if profile.peak and profile.peak.tree else left
    for place, share in _by_place(tallies["allocated"], usage).items():
        # What nothing reads is found by `heap-unused`.
        is_read = read is None or (place in read and read[place].size_bytes > 0)
        if not _is_told(share) or not is_read:
            continue
        is_left = place in left and left[place][2:] == share[2:]
        is_at_peak = place in at_peak and at_peak[place][2:] == share[2:]
        if lived is None:
            if is_left and is_at_peak:
                reason = "nothing of it was freed, and nothing added after the peak"
                yield _Table(share, "kept", Confidence.LOW, (reason, _UNWRITTEN, _WHEN), is_at_start=False)
            continue
        life = lived[place].size_bytes / max(1, share.block_count or 0) if place in lived else 0
        run = last.time or 0
        if not (is_left and run - life <= _start_end(profile)) and life * 10 < run * _KEPT_TENTHS:
            continue
        is_at_start = (run - life) * _START_SHARE <= run or life * 10 >= run * _KEPT_TENTHS
        reason = "its blocks live from the start to the end"
        if not is_at_start:
            reason = f"its blocks live for the last {life / run:.0%} of the run, and so short a run is all start"
        if written is None:
            yield _Table(share, "kept", Confidence.MEDIUM, (reason, _UNWRITTEN), is_at_start=is_at_start)
            continue
        written_bytes = written[place].size_bytes if place in written else 0
        if share.size_bytes // 2 <= written_bytes <= share.size_bytes:
            reasons = (reason, f"{written_bytes:,} bytes were written, once each")
            yield _Table(share, "filled-once", Confidence.HIGH, reasons, is_at_start=is_at_start)


_WHEN: Final = "the profile does not say when it was asked for"
_UNWRITTEN: Final = "the profile does not say whether it is written later, or touched at all"


# --- massif: trees at some moments ------------------------------------------------------------------------------------


def _steady(usage: HeapUsage) -> Iterator[_Table]:
    profile = usage.profile
    trees = [(s.time or 0, s.tree) for s in profile.snapshots if s.tree is not None]
    # What was seen once may have been freed right after.
    if len(trees) < 2:
        return
    before, at_end = (_by_place(tree, usage) for _, tree in trees[-2:])
    kept = {place: share for place, share in at_end.items() if _is_told(share) and before.get(place) == share}
    # To add up the other trees takes long.
    if not kept:
        return
    moments = [(time, _by_place(tree, usage)) for time, tree in trees]
    start_end, last = _start_end(profile), trees[-1][0]
    is_short = last <= start_end
    run = max(snapshot.time or 0 for snapshot in profile.snapshots)
    # After the last tree, all that is known of a function is that it holds no more than the whole program.
    left_bytes = min(snapshot.live_bytes for snapshot in profile.snapshots if (snapshot.time or 0) >= last)
    for place, share in kept.items():
        first = next(time for time, shares in moments if shares.get(place) == share)
        if share.size_bytes > left_bytes and (last - first) * 10 < run * _KEPT_TENTHS:
            continue
        sizes = [(time, shares[place].size_bytes if place in shares else 0) for time, shares in moments]
        is_growing = all(sample[1] <= other[1] for sample, other in pairwise(sizes))
        later = [size_bytes for time, size_bytes in sizes if time > start_end]
        if is_growing and all(size_bytes == share.size_bytes for size_bytes in later):
            confidence = Confidence.LOW
            is_at_start = not is_short or first * _START_SHARE <= run
            if not is_at_start:
                reason = f"it is first seen at {first / run:.0%} of the run, and so short a run is all start"
            elif is_short:
                reason = "it is there at the end, but so short a run is all start"
            elif len(later) < _FEW_TREES:
                reason = f"it was looked at in {counted(len(later), 'snapshot')} after the start only"
            else:
                confidence = Confidence.MEDIUM
                reason = f"it is there from the first tenth of the run on, as large in {len(later)} snapshots"
            yield _Table(share, "kept", confidence, (reason, _UNWRITTEN), is_at_start=is_at_start)


# --- blocks that are alike --------------------------------------------------------------------------------------------


def _alike(usage: HeapUsage, reported: Container[_Place]) -> Iterator[Share]:
    """Return what one call asked for in many blocks of one size, and kept to the end."""
    profile, tree = usage.profile, usage.profile.snapshots[-1].tree
    ever = next((tally.tree for tally in profile.tallies if tally.name == "allocated"), None)
    if tree is None or ever is None:
        return
    many = [
        part
        for part in charged(tree, usage.calls, LEAST_BYTES)
        if (part[2] or 0) >= _LEAST_ALIKE and not part[1] % (part[2] or 1)
    ]
    # A call whose function, size and number are the same in both trees freed nothing.
    were = set(charged(ever, usage.calls, LEAST_BYTES)) if many else set()
    for call, size_bytes, block_count in many:
        is_known = (call.owner, call.function) in reported or call.function.startswith("[")
        if (call, size_bytes, block_count) in were and not is_known:
            yield Share(call.owner, call.function, size_bytes, block_count)


# --- what is said of them ---------------------------------------------------------------------------------------------


def _table_finding(table: _Table, held_bytes: Dict[_Place, int] | None) -> Finding:
    share, facts = table.share, function_facts(table.share)
    saving_bytes, reasons = at_most_held(share.size_bytes, table.reasons, share, held_bytes)
    return Finding(
        RULE.name,
        table.kind,
        facts.subject,
        f"{facts.shown} {requested(share)}{' at the start' if table.is_at_start else ''}, and keeps them",
        saving_bytes,
        table.confidence,
        reasons,
        _REMEDY,
        object=facts.object_path or None,
    )


def _alike_finding(share: Share) -> Finding:
    count, facts = share.block_count or 1, function_facts(share)
    each_bytes = share.size_bytes // count
    up_to = format_bytes(share.size_bytes - each_bytes)
    return Finding(
        RULE.name,
        "alike",
        facts.subject,
        f"{facts.shown} keeps {count:,} blocks of {each_bytes:,} bytes, all asked for by one call",
        0,
        Confidence.LOW,
        (f"the profile does not say what they hold: {up_to} if it is the same in all",),
        _REMEDY_ALIKE,
        object=facts.object_path or None,
    )
