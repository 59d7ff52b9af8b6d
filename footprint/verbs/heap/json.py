"""The JSON of `heap`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from footprint.attribution.heap_growth import growth_of
from footprint.attribution.heap_totals import run_totals, sorted_totals
from footprint.attribution.heap_usage import HeapUsage
from footprint.command_line import shown_command
from footprint.elf import shown_name
from footprint.errors import Note
from footprint.formats.codec import encode, encode_columns, like
from footprint.formats.finding_rows import FailedFinding, FindingRow, finding_rows
from footprint.formats.heap_account_json import heap_share
from footprint.formats.json import Envelope, Json, Tool
from footprint.heap import CallTree, Counted, Profile
from footprint.heap.attribution import callees, callers, stepped_over
from footprint.members import ABSENT, Absent, Positive, Signed
from footprint.model.evidence import Evidence
from footprint.model.finding import Finding
from footprint.model.heap_account import Share

__all__ = ("HeapJson", "heap_members", "tree_members")

# The nodes of a tree repeat their names, and a name may be as long as a profile is.
_LONGEST_NAME: Final = 8192
# How long blocks lived is in the unit of time, and an amount that only the profile knows has no unit.
_UNITS: Final = {
    **dict.fromkeys(("allocated", "freed", "temporary", "read", "written", "copied"), "bytes"),
    "occurred": "units",
}


class HeapTarget(NamedTuple):
    """The profiles that were read.

    Attributes:
        files: The files, with the moments that were named of them.
        by: What the report is grouped by.
    """

    files: tuple[str, ...]
    by: str


class ProfileRow(NamedTuple):
    """One heap profile.

    Attributes:
        file: The file, with the moment that was named of it.
        format: The profiler that wrote it.
        counted: What its amounts are: `heap` bytes, `pages` of address space, bytes of `copies`, or `events`.
        command: The program that was profiled; null where the profile does not say.
        description: What the profile says of itself; null where it says nothing.
        time_unit: The unit of its times; null where it has none.
        pid: The process that was profiled; null where the profile does not say.
        snapshot: The number of the snapshot that `owners`, `heap` and `calls` are about; null where there is none.
        tally: What these tables count over the whole run, where they are about no snapshot; else null.
        live_bytes: The bytes that the program had asked for and not freed; null without a snapshot.
        extra_bytes: The bytes that the allocator used besides; null where the profile does not say.
        stack_bytes: The stacks; null where the profile does not say.
        tree_bytes: The bytes of the call tree; null where there is none.
        attributed_bytes: The part of them whose object is known.
        evidence: How the amounts are known.
    """

    file: str
    format: str
    counted: Counted
    command: str | None
    description: str | None
    time_unit: str | None
    pid: int | None
    snapshot: int | None
    tally: str | None
    live_bytes: int | None
    extra_bytes: int | None
    stack_bytes: int | None
    tree_bytes: int | None
    attributed_bytes: Signed | None
    evidence: Evidence


class SnapshotRow(NamedTuple):
    """One moment of a profile.

    Attributes:
        file: The profile.
        number: The number of the snapshot.
        time: The time, in the unit of the profile; null where the profile has none.
        live_bytes: The bytes that the program had asked for and not freed.
        extra_bytes: The bytes that the allocator used besides; null where the profile does not say.
        stack_bytes: The stacks; null where the profile does not say.
        is_peak: Whether the profile calls it the peak.
        has_tree: Whether it has a call tree.
    """

    file: str
    number: int
    time: float | None
    live_bytes: int
    extra_bytes: int | None
    stack_bytes: int | None
    is_peak: bool
    has_tree: bool


class OwnerBytes(NamedTuple):
    """The bytes that one object asked for.

    Attributes:
        file: The profile.
        owner: The path of the object, or in brackets why it is not known.
        bytes: The bytes.
        block_count: The blocks; null where the profile does not count them.
    """

    file: str
    owner: str
    bytes: Signed
    block_count: Signed | None


class FunctionBytes(NamedTuple):
    """The bytes that one function asked for.

    Attributes:
        file: The profile.
        owner: The path of the object that the function is in, or in brackets why it is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        bytes: The bytes.
        block_count: The blocks; null where the profile does not count them.
    """

    file: str
    owner: str
    symbol: str | None
    name: str
    bytes: Signed
    block_count: Signed | None


class CallRow(NamedTuple):
    """One node of a call tree; names are cut at 8,192 characters.

    Attributes:
        file: The profile.
        node: The number of the node; a node stands after its parent.
        parent: The number of the node that it is called from, or that it calls; 0 for the root, which has no row.
        owner: The path of the object that the function is in, or in brackets why it is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        bytes: The bytes of the node and of all nodes below it.
        block_count: The blocks; null where the profile does not count them.
    """

    file: str
    node: Positive
    parent: int
    owner: str
    symbol: str | None
    name: str
    bytes: Signed
    block_count: Signed | None


class AllocatorRow(NamedTuple):
    """An allocation function: it only passes memory on, and its callers are charged.

    Attributes:
        file: The profile.
        rule: The rule by which it is one.
        owner: The path of the object that it is in, or in brackets why it is not known.
        symbol: Its linker name; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        bytes: The bytes of the stacks that it stands in; a stack counts for each of its allocation functions.
        block_count: The blocks; null where the profile does not count them.
    """

    file: str
    rule: str
    owner: str
    symbol: str | None
    name: str
    bytes: Signed
    block_count: Signed | None


class GrowthRow(NamedTuple):
    """How the memory of one function grew.

    Attributes:
        file: The profile.
        owner: The path of the object that the function is in, or in brackets why it is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        first_snapshot: The number of the first snapshot with a call tree.
        first_bytes: Its bytes then.
        last_snapshot: The number of the snapshot that the other tables are about.
        last_bytes: Its bytes then.
        growth_bytes: The difference.
        step_first_snapshot: The number of the snapshot after which it grew most until the next one with a call tree.
        step_last_snapshot: The number of this next one.
        step_bytes: By how much it grew between them.
    """

    file: str
    owner: str
    symbol: str | None
    name: str
    first_snapshot: int
    first_bytes: Signed
    last_snapshot: int
    last_bytes: Signed
    growth_bytes: Signed
    step_first_snapshot: int
    step_last_snapshot: int
    step_bytes: Signed


class FunctionTotalsRow(NamedTuple):
    """What a profile counted over the whole run of one function; null where it does not count something.

    Attributes:
        file: The profile.
        owner: The path of the object that the function is in, or in brackets why it is not known.
        symbol: The linker name of the function; null where it has none.
        name: The name to show; in brackets the address where it starts in its file, or why it has no name.
        allocated_bytes: All bytes that it asked for.
        allocated_blocks: The number of blocks.
        temporary_blocks: Blocks that were freed right after they were allocated: between the two was no other
            allocation and no other free.
        lifetime: How long a block lived on average, in the unit of time of the profile; blocks that were not freed
            lived until the end.
        read_bytes: The bytes that were read in its blocks; a byte counts as often as it was read.
        written_bytes: The bytes that were written in its blocks, likewise.
        leaked_bytes: The bytes that were not freed when the program ended.
        leaked_blocks: The number of these blocks.
    """

    file: str
    owner: str
    symbol: str | None
    name: str
    allocated_bytes: Signed | None
    allocated_blocks: Signed | None
    temporary_blocks: Signed | None
    lifetime: float | None
    read_bytes: Signed | None
    written_bytes: Signed | None
    leaked_bytes: Signed | None
    leaked_blocks: Signed | None


class TallyRow(NamedTuple):
    """An amount that the profile counts over the whole run.

    Attributes:
        file: The profile.
        name: What is counted: `allocated`, `freed`, `temporary`, `read`, `written`, `copied`, `occurred`, `lived`.
        amount: The amount.
        unit: Its unit; null where only the profile knows it.
        block_count: The blocks; null where the profile does not count them.
    """

    file: str
    name: str
    amount: int
    unit: str | None
    block_count: int | None


@dataclass(frozen=True, kw_only=True)
class HeapJson(Envelope):
    """What allocator profiles say; the `bytes` of `owners` and of `heap` add up to `tree_bytes`.

    Attributes:
        target: The profiles.
        profiles: The profiles, each with the snapshot that the other tables are about.
        snapshots: All snapshots.
        owners: The bytes by object.
        heap: The bytes by function.
        calls: The call tree, with `--by tree` or `--by callers`.
        growth: What grew from the first call tree to the chosen moment, by function, with `--by growth`.
        allocators: The functions that only pass memory on, with `--allocators`.
        tallies: What was counted over the whole run.
        totals: What was counted over the whole run, by function.
        findings: What the heap could do without.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["heap"] = "heap"
    target: HeapTarget
    profiles: tuple[ProfileRow, ...]
    snapshots: tuple[SnapshotRow, ...]
    owners: tuple[OwnerBytes, ...]
    heap: tuple[FunctionBytes, ...]
    calls: tuple[CallRow, ...]
    growth: tuple[GrowthRow, ...]
    allocators: tuple[AllocatorRow, ...]
    tallies: tuple[TallyRow, ...]
    totals: tuple[FunctionTotalsRow, ...]
    findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def heap_members(
    usages: Sequence[HeapUsage],
    notes: Sequence[Note],
    version: str,
    *,
    by: str,
    sort: str | None = None,
    has_allocators: bool = False,
    findings: Sequence[Finding] = (),
) -> Json:
    """Return the members of the answer; `by` is `tree`, `callers` or `growth` where these tables are wanted too."""
    grown = {"tree": callees, "callers": callers}.get(by)
    owners: list[OwnerBytes] = []
    functions: list[FunctionBytes] = []
    calls: list[CallRow] = []
    allocators: list[AllocatorRow] = []
    for usage in usages:
        if usage.attribution is None or usage.tree is None:
            continue
        owners += [
            OwnerBytes(usage.file, one.owner, one.size_bytes, one.block_count) for one in usage.attribution.owners
        ]
        functions += _share_rows(usage.attribution.shares, usage.file)
        calls += () if grown is None else _call_rows(grown(usage.tree, usage.calls), usage.file)
        if has_allocators:
            passed = stepped_over(usage.tree, usage.calls)
            allocators += [AllocatorRow(usage.file, call.rule, *heap_share(share)) for call, share in passed]
    return encode(
        HeapJson(
            tool=Tool("footprint", version),
            host={},
            target=HeapTarget(tuple([usage.file for usage in usages]), by),
            profiles=tuple(map(_profile, usages)),
            snapshots=tuple([row for usage in usages for row in _snapshots(usage)]),
            owners=tuple(owners),
            heap=tuple(functions),
            calls=tuple(calls),
            growth=tuple([row for usage in usages for row in _growth_rows(usage)]) if by == "growth" else (),
            allocators=tuple(allocators),
            tallies=tuple([row for usage in usages for row in _tallies(usage.profile, usage.file)]),
            totals=tuple([row for usage in usages for row in _totals(usage, sort)]),
            findings=finding_rows(findings, 1),
            notes=tuple(notes),
        )
    )


def _profile(usage: HeapUsage) -> ProfileRow:
    snapshot, attribution = usage.snapshot, usage.attribution
    return like(
        ProfileRow,
        usage.profile,
        file=usage.file,
        command=None if usage.profile.command is None else shown_command(usage.profile.command),
        snapshot=None if snapshot is None else snapshot.number,
        tally=usage.tally,
        live_bytes=None if snapshot is None else snapshot.live_bytes,
        extra_bytes=None if snapshot is None else snapshot.extra_bytes,
        stack_bytes=None if snapshot is None else snapshot.stack_bytes,
        tree_bytes=None if attribution is None else attribution.total_bytes,
        attributed_bytes=None if attribution is None else attribution.attributed_bytes,
        evidence=usage.evidence,
    )


def _snapshots(usage: HeapUsage) -> Iterator[SnapshotRow]:
    trees = frozenset(usage.profile.tree_places)
    for place, one in enumerate(usage.profile.snapshots):
        yield like(SnapshotRow, one, file=usage.file, has_tree=place in trees)


def _tallies(profile: Profile, file: str) -> Iterator[TallyRow]:
    for one in profile.tallies:
        unit = profile.time_unit or "" if one.name == "lived" else _UNITS.get(one.name)
        yield TallyRow(file, one.name[:_LONGEST_NAME], one.tree.total_bytes, unit, one.tree.total_blocks)


class _TreeTables(NamedTuple):
    """One call tree, and its bytes by function."""

    calls: tuple[CallRow, ...]
    shares: tuple[FunctionBytes, ...]


def tree_members(tree: CallTree, shares: Iterable[Share], file: str) -> Json:
    """Return the tables `calls` of a call tree and `shares` of its functions."""
    return encode_columns(_TreeTables(tuple(_call_rows(tree, file)), tuple(_share_rows(shares, file))))


def _share_rows(shares: Iterable[Share], file: str) -> Iterator[FunctionBytes]:
    return (FunctionBytes(file, *heap_share(share)) for share in shares)


def _totals(usage: HeapUsage, sort: str | None) -> Iterator[FunctionTotalsRow]:
    for one in sorted_totals(run_totals(usage), sort):
        owner, symbol, name, *_ = heap_share(Share(one.owner, one.function, 0))
        yield like(FunctionTotalsRow, one, file=usage.file, owner=owner, symbol=symbol, name=name)


def _growth_rows(usage: HeapUsage) -> Iterator[GrowthRow]:
    growth = growth_of(usage)
    for one in growth.functions:
        owner, symbol, name, *_ = heap_share(Share(one.owner, one.function, one.last_bytes))
        yield like(
            GrowthRow,
            one,
            file=usage.file,
            owner=owner,
            symbol=symbol,
            name=name,
            first_snapshot=growth.numbers[0],
            last_snapshot=growth.numbers[-1],
            step_first_snapshot=one.step[0],
            step_last_snapshot=one.step[1],
        )


def _call_rows(tree: CallTree, file: str) -> Iterator[CallRow]:
    """Return a row for each node but the root, which is node 0; a node stands after its parent."""
    for node in range(1, len(tree)):
        frame = tree.frame(node)
        function = (frame.function or "")[:_LONGEST_NAME]
        yield CallRow(
            file,
            node,
            tree.parents[node],
            (frame.object or "")[:_LONGEST_NAME],
            None if function.startswith("[") else function,
            shown_name(function),
            tree.node_bytes[node],
            None if tree.node_blocks is None else tree.node_blocks[node],
        )
