"""The JSON of `heap`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from footprint.attribution.heap_totals import (
    FunctionTotals,
    GrownFunction,
    Growth,
    growth_of,
    run_totals,
    sorted_totals,
)
from footprint.attribution.heap_usage import HeapUsage, heap_share
from footprint.elf.names import shown_name
from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, rows_of
from footprint.formats.audit_rows import FailedFinding, finding_rows
from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.heap.attribution import callees, callers, stepped_over
from footprint.heap.profile import CallTree, Counted, HeapSnapshot, Profile, Tally
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode, encode_columns
from footprint.members import ABSENT, Absent, Positive, Signed, dataclass
from footprint.model.finding import Finding
from footprint.model.heap_account import HeapShare, Share
from footprint.model.row import Evidence
from footprint.text.command_line import shown_command

_OF_RUN: Final = frozenset({"allocated", "freed", "temporary", "read", "written"})


def heap_metrics(usages: Iterable[HeapUsage]) -> list[MetricFamily]:
    """Return what heap profiles say about their moment, by object."""
    live, extra, stacks, owners, counts = [], [], [], [], []
    for usage in usages:
        file = {"file": usage.file}
        if (snapshot := usage.snapshot) is not None:
            labels = file | {"evidence": usage.evidence.value}
            live.append(MetricSample(labels, snapshot.live_bytes))
            if snapshot.extra_bytes is not None:
                extra.append(MetricSample(labels, snapshot.extra_bytes))
            if snapshot.stack_bytes is not None:
                stacks.append(MetricSample(labels, snapshot.stack_bytes))
        counts += [
            MetricSample(file | {"counted": tally.name}, tally.tree.total_bytes)
            for tally in usage.profile.tallies
            if tally.name in _OF_RUN
        ]
        if usage.attribution is not None:
            owners += [MetricSample(file | {"owner": o.owner}, o.size_bytes) for o in usage.attribution.owners]
    return [
        MetricFamily("heap_live", "Memory that the program asked for and has not freed.", live),
        MetricFamily("heap_overhead", "Memory that the allocator uses in addition.", extra),
        MetricFamily("heap_stacks", "The stacks.", stacks),
        MetricFamily("heap_counted", "What was counted over the whole run.", counts),
        MetricFamily("heap_owner", "By the object that asked for it.", owners),
    ]


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


@answer_table
class ProfileRow:
    """One heap profile."""

    file: str = column("The file, with the moment that was named of it.")
    format: str = column("The profiler that wrote it.", "profile.format")
    counted: Counted = column(
        "What its amounts are: `heap` bytes, `pages` of address space, bytes of `copies`, or `events`.",
        "profile.counted",
    )
    command: str | None = column(
        "The program that was profiled; null where the profile does not say.",
        lambda usage: None if usage.profile.command is None else shown_command(usage.profile.command),
    )
    description: str | None = column(
        "What the profile says of itself; null where it says nothing.", "profile.description"
    )
    time_unit: str | None = column("The unit of its times; null where it has none.", "profile.time_unit")
    pid: int | None = column("The process that was profiled; null where the profile does not say.", "profile.pid")
    snapshot: int | None = column(
        "The number of the snapshot that `owners`, `heap` and `calls` are about; null where there is none.",
        "snapshot.number",
    )
    tally: str | None = column(
        "What these tables count over the whole run, where they are about no snapshot; else null."
    )
    live_bytes: int | None = column(
        "The bytes that the program had asked for and not freed; null without a snapshot.", "snapshot.live_bytes"
    )
    extra_bytes: int | None = column(
        "The bytes that the allocator used besides; null where the profile does not say.", "snapshot.extra_bytes"
    )
    stack_bytes: int | None = column("The stacks; null where the profile does not say.", "snapshot.stack_bytes")
    tree_bytes: int | None = column("The bytes of the call tree; null where there is none.", "attribution.total_bytes")
    attributed_bytes: Signed | None = column("The part of them whose object is known.", "attribution.attributed_bytes")
    evidence: Evidence = column("How the amounts are known.")


class _SnapshotOfFile(NamedTuple):
    file: str
    snapshot: HeapSnapshot
    has_tree: bool


@answer_table
class SnapshotRow:
    """One moment of a profile."""

    file: str = column("The profile.")
    number: int = column("The number of the snapshot.", "snapshot.number")
    time: float | None = column(
        "The time, in the unit of the profile; null where the profile has none.", "snapshot.time"
    )
    live_bytes: int = column("The bytes that the program had asked for and not freed.", "snapshot.live_bytes")
    extra_bytes: int | None = column(
        "The bytes that the allocator used besides; null where the profile does not say.", "snapshot.extra_bytes"
    )
    stack_bytes: int | None = column("The stacks; null where the profile does not say.", "snapshot.stack_bytes")
    is_peak: bool = column(
        "Whether it is the peak: the one that the profile marks, unless another is larger.", "snapshot.is_peak"
    )
    has_tree: bool = column("Whether it has a call tree.")


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


class _FunctionOfFile(NamedTuple):
    file: str
    function: GrownFunction | FunctionTotals
    share: HeapShare
    growth: Growth | None = None


_OWNER: Final = column(
    "The path of the object that the function is in, or in brackets why it is not known.", "share.owner"
)
_SYMBOL: Final = column("The linker name of the function; null where it has none.", "share.symbol")
_NAME: Final = column(
    "The name to show; in brackets the address where it starts in its file, or why it has no name.",
    "share.name",
)


@answer_table
class GrowthRow:
    """How the memory of one function grew."""

    file: str = column("The profile.")
    owner: str = _OWNER
    symbol: str | None = _SYMBOL
    name: str = _NAME
    first_snapshot: int = column(
        "The number of the first snapshot with a call tree.", lambda row: row.growth.numbers[0]
    )
    first_bytes: Signed = column("Its bytes then.", "function.first_bytes")
    last_snapshot: int = column(
        "The number of the snapshot that the other tables are about.", lambda row: row.growth.numbers[-1]
    )
    last_bytes: Signed = column("Its bytes then.", "function.last_bytes")
    growth_bytes: Signed = column("The difference.", "function.growth_bytes")
    step_first_snapshot: int = column(
        "The number of the snapshot after which it grew most until the next one with a call tree.",
        lambda row: row.function.step[0],
    )
    step_last_snapshot: int = column("The number of this next one.", lambda row: row.function.step[1])
    step_bytes: Signed = column("By how much it grew between them.", "function.step_bytes")


@answer_table
class FunctionTotalsRow:
    """What a profile counted over the whole run of one function; null where it does not count something."""

    file: str = column("The profile.")
    owner: str = _OWNER
    symbol: str | None = _SYMBOL
    name: str = _NAME
    allocated_bytes: Signed | None = column("All bytes that it asked for.", "function.allocated_bytes")
    allocated_blocks: Signed | None = column("The number of blocks.", "function.allocated_blocks")
    temporary_blocks: Signed | None = column(
        "Blocks that were freed right after they were allocated: between the two was no other allocation and no other "
        "free.",
        "function.temporary_blocks",
    )
    lifetime: float | None = column(
        "How long a block lived on average, in the unit of time of the profile; blocks that were not freed lived until "
        "the end.",
        "function.lifetime",
    )
    read_bytes: Signed | None = column(
        "The bytes that were read in its blocks; a byte counts as often as it was read.", "function.read_bytes"
    )
    written_bytes: Signed | None = column(
        "The bytes that were written in its blocks, likewise.", "function.written_bytes"
    )
    leaked_bytes: Signed | None = column(
        "The bytes that were not freed when the program ended.", "function.leaked_bytes"
    )
    leaked_blocks: Signed | None = column("The number of these blocks.", "function.leaked_blocks")


class _TallyOfFile(NamedTuple):
    file: str
    tally: Tally
    unit: str | None


@answer_table
class TallyRow:
    """An amount that the profile counts over the whole run."""

    file: str = column("The profile.")
    name: str = column(
        "What is counted: `allocated`, `freed`, `temporary`, `read`, `written`, `copied`, `occurred`, `lived`.",
        lambda row: row.tally.name[:_LONGEST_NAME],
    )
    amount: int = column("The amount.", "tally.tree.total_bytes")
    unit: str | None = column("Its unit; null where only the profile knows it.")
    block_count: int | None = column(
        "The blocks; null where the profile does not count them.", "tally.tree.total_blocks"
    )


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
    findings: tuple[Finding, ...]
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
    grown_usages = usages if by == "growth" else ()
    grown = {"tree": callees, "callers": callers}.get(by)
    owners: list[OwnerBytes] = []
    functions: list[FunctionBytes] = []
    calls: list[CallRow] = []
    allocators: list[AllocatorRow] = []
    for usage in usages:
        if usage.attribution is None or usage.tree is None:
            continue
        owners += [OwnerBytes(usage.file, o.owner, o.size_bytes, o.block_count) for o in usage.attribution.owners]
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
            profiles=rows_of(ProfileRow, usages),
            snapshots=rows_of(SnapshotRow, (row for usage in usages for row in _snapshots(usage))),
            owners=tuple(owners),
            heap=tuple(functions),
            calls=tuple(calls),
            growth=rows_of(GrowthRow, (row for usage in grown_usages for row in _growth_rows(usage))),
            allocators=tuple(allocators),
            tallies=rows_of(TallyRow, (row for usage in usages for row in _tallies(usage.profile, usage.file))),
            totals=rows_of(FunctionTotalsRow, (row for usage in usages for row in _totals(usage, sort))),
            findings=finding_rows(findings, 1),
            notes=tuple(notes),
        )
    )


def _snapshots(usage: HeapUsage) -> Iterator[_SnapshotOfFile]:
    trees = frozenset(usage.profile.tree_places)
    for place, snapshot in enumerate(usage.profile.snapshots):
        yield _SnapshotOfFile(usage.file, snapshot, place in trees)


def _tallies(profile: Profile, file: str) -> Iterator[_TallyOfFile]:
    for tally in profile.tallies:
        unit = profile.time_unit or "" if tally.name == "lived" else _UNITS.get(tally.name)
        yield _TallyOfFile(file, tally, unit)


class _TreeTables(NamedTuple):
    """One call tree, and its bytes by function."""

    calls: tuple[CallRow, ...]
    shares: tuple[FunctionBytes, ...]


def tree_members(tree: CallTree, shares: Iterable[Share], file: str) -> Json:
    """Return the tables `calls` of a call tree and `shares` of its functions."""
    return encode_columns(_TreeTables(tuple(_call_rows(tree, file)), tuple(_share_rows(shares, file))))


def _share_rows(shares: Iterable[Share], file: str) -> Iterator[FunctionBytes]:
    return (FunctionBytes(file, *heap_share(share)) for share in shares)


def _totals(usage: HeapUsage, sort: str | None) -> Iterator[_FunctionOfFile]:
    for row in sorted_totals(run_totals(usage), sort):
        yield _FunctionOfFile(usage.file, row, heap_share(Share(row.owner, row.function, 0)))


def _growth_rows(usage: HeapUsage) -> Iterator[_FunctionOfFile]:
    growth = growth_of(usage)
    for f in growth.functions:
        yield _FunctionOfFile(usage.file, f, heap_share(Share(f.owner, f.function, f.last_bytes)), growth)


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
