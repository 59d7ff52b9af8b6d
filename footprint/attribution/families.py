"""Families of processes: which of a group are alike, how they start, and what one more of them costs."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.attribution.cost_models import ForkParent, how_many_fit
from footprint.attribution.kernel import BUILT_IN, INODES, KernelConstants, KernelCost, inode_cost, kernel_costs
from footprint.attribution.memory_files import ChargedFile, charge_files, count_with_files, own_shared_bytes
from footprint.attribution.owned_range import count_each
from footprint.attribution.process_audit import kernel_with_inodes, total_up
from footprint.errors import UsageError
from footprint.members import replace
from footprint.model.audit import Audit, GroupSums, WorkerProjection
from footprint.model.group import ProcessClass
from footprint.model.projection import FILES_TERM, UNKNOWN, Basis, Model, Projection, Question, Term
from footprint.model.row import MemoryKind, Row, weakest
from footprint.process.snapshot import Snapshot
from footprint.text.units import counted, format_bytes

_Member = tuple[Snapshot, Audit]

# What distinguishes workers of one kind in their titles: numbers, and hexadecimal identifiers.
_NUMBERS: Final = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b|[0-9]+")
_TITLE_CHARS: Final = 200
_HELPER_SHARE: Final = 20  # processes of another program that cost less than this part of the main one may be helpers


def fork_reasons(child: Snapshot, parent: Snapshot, cow_shared_bytes: int) -> tuple[str, ...]:
    """Return what shows that a process is a fork of its parent; nothing where it was started by exec since.

    Args:
        child: The process.
        parent: Its parent.
        cow_shared_bytes: The anonymous memory that the process shares with others since a fork.
    """
    if child.place is None or child.place != parent.place or cow_shared_bytes <= 0:
        return ()
    return (
        f"its parent {parent.pid} has the same program at the same addresses, so there was no exec since the fork",
        f"it shares {format_bytes(cow_shared_bytes)} of anonymous memory since then",
    )


def fork_parent(child: Snapshot, parent: Snapshot, constants: KernelConstants) -> ForkParent | None:
    """Return what the parent of a process costs; None where the process is no fork of it.

    Args:
        child: The process.
        parent: Its parent, read at about the same time.
        constants: What the kernel spends on each process, thread, mapping.
    """
    counts = count_each(child.memory.mappings, child.pages)
    merged_bytes = child.memory.sum("KSM")
    shared_bytes = sum(count.cow_shared_bytes for count in counts) - merged_bytes + _shared_swap_bytes(child)
    reasons = fork_reasons(child, parent, shared_bytes)
    if not reasons or parent.pid is None:
        return None
    mappings, (counts, charges) = parent.memory.mappings, count_with_files(parent)
    timer_count = parent.kernel_holdings.timer_count
    kernel = kernel_costs(parent.status, len(mappings), constants, mappings, parent.open_files or (), timer_count)
    spent = kernel_with_inodes(kernel, parent, charges, constants)
    return ForkParent(parent.pid, total_up(parent.memory, counts, spent, charges), reasons)


class Channel(NamedTuple):
    """A socket or pipe that several processes of a group have.

    Attributes:
        holder_count: How many have it.
        size_bytes: What the kernel spends on it.
    """

    holder_count: int
    size_bytes: int


NO_CHANNELS: Final[Dict[int, Sequence[Channel]]] = MappingProxyType({})


class _Unit(NamedTuple):
    """A process with its descendants in the group.

    `others_swap_bytes` is what of their private memory is a share of swapped pages that others of the group have, too.
    """

    root: _Member
    members: Sequence[_Member]
    reasons: tuple[str, ...]
    others_swap_bytes: int


def process_classes(
    members: Sequence[_Member],
    channels: Dict[int, Sequence[Channel]] = NO_CHANNELS,
    constants: KernelConstants = BUILT_IN,
    *,
    is_partial: bool = False,
) -> tuple[ProcessClass, ...]:
    """Find the processes of a group that are alike; the most numerous first, of those the ones with a parent.

    Helpers come last: one more of what the group is about is not one more helper.

    Args:
        members: The processes, parents before their children.
        channels: The sockets and pipes that each process pays for and others have as well.
        constants: What the kernel spends on each thing.
        is_partial: Whether others of the group could not be read.
    """
    by_pid = {snapshot.pid: (snapshot, audit) for snapshot, audit in members if snapshot.pid is not None}
    parents = {pid: _parent_pid(member[0], by_pid) for pid, member in by_pid.items()}
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in parents.items():
        if parent is not None:
            children[parent].append(pid)
    keys: dict[int, tuple[object, ...]] = {}
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for pid in _parents_first(parents, children):
        parent = parents[pid]
        keys[pid] = (keys[parent] if parent is not None else (), *_kind(by_pid[pid]))
        alike[keys[pid]].append(pid)
    helpers = _helpers(by_pid, parents, children)
    holder_counts = Counter(chain.from_iterable([snapshot.shared_swap for snapshot, _ in by_pid.values()]))
    classes = [
        _class_of(
            [_unit(pid, by_pid, parents, children, holder_counts) for pid in pids],
            tuple(dict.fromkeys(parent for pid in pids if (parent := parents[pid]) is not None)),
            channels,
            constants,
            is_partial=is_partial,
        )._replace(is_helper=helpers.issuperset(pids))
        for pids in alike.values()
        if all(by_pid[pid][1].totals.per_process.bytes is not None for pid in pids)
    ]
    places = {pid: place for place, pid in enumerate(by_pid)}

    def order(kind: ProcessClass) -> tuple[bool, int, bool, int]:
        # Of as many, those nearest to the root include the others. Of single ones, the last that came is no helper.
        is_single = len(kind.pids) == 1
        return (
            kind.is_helper,
            -len(kind.pids),
            not kind.parent_pids,
            -places[kind.pids[-1]] if is_single else len(keys[kind.pids[0]]),
        )

    return tuple(sorted(classes, key=order))


def _helpers(
    by_pid: Dict[int, _Member], parents: Dict[int, int | None], children: Dict[int, Sequence[int]]
) -> frozenset[int]:
    """Find the descendants that only serve the main program of their tree: the one that costs most there.

    They have another program, and so have all their descendants; those of one program together cost little beside it.
    """
    helpers: set[int] = set()
    for root in [pid for pid, parent in parents.items() if parent is None]:
        tree = _descendants(root, children)
        costs: Counter[str] = Counter()
        for pid in tree:
            costs[_kind(by_pid[pid])[0]] += by_pid[pid][1].totals.per_process.bytes or 0
        most_bytes = max(costs.values())
        # A few large workers of a small master, or many small ones of a large one, are no helpers.
        minor = {name for name, size_bytes in costs.items() if size_bytes * _HELPER_SHARE < most_bytes}
        for pid in reversed(tree[1:]):
            if _kind(by_pid[pid])[0] in minor and helpers.issuperset(children.get(pid, ())):
                helpers.add(pid)
    return frozenset(helpers)


def _descendants(pid: int, children: Dict[int, Sequence[int]]) -> list[int]:
    """Return a process and all its descendants, parents before their children."""
    pids = [pid]
    for member in pids:
        pids.extend(children.get(member, ()))
    return pids


def _parent_pid(snapshot: Snapshot, by_pid: Dict[int, _Member]) -> int | None:
    parent = snapshot.status.parent_pid if snapshot.status else None
    return parent if parent in by_pid and parent != snapshot.pid else None


def _parents_first(parents: Dict[int, int | None], children: Dict[int, Sequence[int]]) -> Iterator[int]:
    """Yield all PIDs, parents before their children; those in a circle, which only a forged text has, not at all."""
    ready = [pid for pid, parent in parents.items() if parent is None]
    for pid in ready:
        ready.extend(children.get(pid, ()))
    yield from ready


def _kind(member: _Member) -> tuple[str, str]:
    """Return the program and the title of a process, without what distinguishes processes of one kind."""
    snapshot, audit = member
    program = next((mapping.name for mapping in snapshot.memory.mappings if mapping.inode), "")
    return program, _NUMBERS.sub("#", audit.command[:_TITLE_CHARS])


def _unit(
    pid: int,
    by_pid: Dict[int, _Member],
    parents: Dict[int, int | None],
    children: Dict[int, Sequence[int]],
    holder_counts: Dict[int, int],
) -> _Unit:
    pids = _descendants(pid, children)
    root = by_pid[pid]
    parent = parents[pid]
    shared_bytes = cow_shared_bytes(root[1]) + _shared_swap_bytes(root[0])
    if parent is not None:
        reasons = fork_reasons(root[0], by_pid[parent][0], shared_bytes)
    elif shared_bytes and len(pids) == 1:
        reasons = (f"it shares {format_bytes(shared_bytes)} of anonymous memory since a fork",)
    else:
        reasons = ()
    members = [by_pid[number] for number in pids]
    return _Unit(root, members, reasons, _others_swap_bytes([snapshot for snapshot, _ in members], holder_counts))


def _shared_swap_bytes(snapshot: Snapshot) -> int:
    """Return how much more the swapped memory of a process is than its shares of it."""
    if snapshot.rollup is not None and not snapshot.rollup.get("Swap"):
        return 0
    counters = [mapping.counters for mapping in snapshot.memory.mappings]
    return sum([(c.get("Swap") or 0) - share for c in counters if (share := c.swap_share_bytes()) is not None])


def _others_swap_bytes(snapshots: Sequence[Snapshot], holder_counts: Dict[int, int]) -> int:
    """Return what processes have as shares of swapped pages that others of the group have, too."""
    entries = Counter(chain.from_iterable([snapshot.shared_swap for snapshot in snapshots]))
    if not entries:
        return 0
    alone_count = sum([count == holder_counts[entry] for entry, count in entries.items()])
    shares = [
        mapping.counters.swap_share_bytes() or 0
        for snapshot in snapshots
        for mapping in snapshot.memory.mappings
        if snapshot.shared_swap
    ]
    return max(0, sum(shares) - alone_count * snapshots[0].page_bytes)


def cow_shared_bytes(audit: Audit) -> int:
    """Return the anonymous memory that a process shares since a fork, without what KSM merged."""
    return max(0, (audit.totals.cow_shared.bytes or 0) - audit.totals.of_which.ksm_bytes)


def shared_between_bytes(members: Sequence[_Member], *, is_partial: bool) -> int | None:
    """Compute the anonymous memory that processes share since a fork, each page once; None where it is unknown.

    Args:
        members: The processes.
        is_partial: Whether others that share it could not be read: all together have at least what one of them has.
    """
    shares = [_proportional_bytes(member) for member in members]
    present = [share for share in shares if share is not None]
    if len(present) < len(shares):
        return None
    least_bytes = max((cow_shared_bytes(audit) for _, audit in members), default=0) if is_partial else 0
    return max(sum(present), least_bytes)


def _proportional_bytes(member: _Member) -> int | None:
    """Compute the process's share of the anonymous memory that it shares since a fork; None where it is unknown."""
    snapshot, audit = member
    shared_bytes = audit.totals.cow_shared.bytes
    if not shared_bytes:
        return 0
    all_bytes = snapshot.rollup.get("Pss_Anon") if snapshot.rollup else None
    if all_bytes is None or audit.totals.private.bytes is None:
        return None
    own_bytes = audit.totals.private.bytes - audit.totals.of_which.swapped_bytes
    return max(0, min(all_bytes - own_bytes, shared_bytes))


def inodes_of_group(
    members: Sequence[_Member], charges: Iterable[ChargedFile], constants: KernelConstants
) -> tuple[KernelCost, int]:
    """Compute what the kernel spends on the inodes of files in memory of some processes, and what each has by itself.

    A file that only several of them keep belongs to none of them alone.

    Args:
        members: The processes.
        charges: The files in memory that belong to all of them together.
        constants: What each thing costs.
    """
    page_bytes = members[0][0].page_bytes if members else 0
    rows = chain.from_iterable([audit.ledger for _, audit in members if audit.memory_files])
    return inode_cost(charges, page_bytes, constants), sum(row.bytes or 0 for row in rows if is_of_inodes(row))


def is_of_inodes(row: Row) -> bool:
    """Return whether a row is what the kernel spends on inodes; a variable may have any name."""
    return row.kind is MemoryKind.KERNEL and row.name == INODES


def _costs(unit: _Unit, constants: KernelConstants, *, is_partial: bool) -> dict[str, int]:
    """Return what one more unit costs, in parts."""
    totals = [audit.totals for _, audit in unit.members]
    # Memory that a forked process shares is mostly its parent's. What a started one shares is shared with its children.
    between_bytes = 0 if unit.reasons else shared_between_bytes(unit.members, is_partial=is_partial)
    own_bytes = sum(total.of_which.own_shared_bytes for total in totals)
    kernel_bytes = sum(total.kernel.bytes or 0 for total in totals)
    if len(totals) > 1 and any(audit.memory_files for _, audit in unit.members):
        charges = charge_files([snapshot for snapshot, _ in unit.members], is_partial=is_partial)
        own_bytes = own_shared_bytes(charges)
        together, separate_bytes = inodes_of_group(unit.members, charges, constants)
        kernel_bytes += together.size_bytes - separate_bytes
    return {
        "private memory": sum(total.private.bytes or 0 for total in totals) - unit.others_swap_bytes,
        "shared with its descendants": between_bytes or 0,
        "shared memory of its own": own_bytes,
        "kernel memory": kernel_bytes,
    }


def _class_of(
    units: Sequence[_Unit],
    parents: Sequence[int],
    channels: Dict[int, Sequence[Channel]],
    constants: KernelConstants,
    *,
    is_partial: bool,
) -> ProcessClass:
    channel_bytes = _channel_bytes(units, parents, channels) if units[-1].reasons else 0
    costs = [_costs(unit, constants, is_partial=is_partial) for unit in units]
    evidence = weakest(audit.totals.per_process.evidence for unit in units for _, audit in unit.members)
    for cost in costs:
        cost["sockets and pipes of its parent for it"] = channel_bytes
    costs.sort(key=lambda figures: sum(figures.values()))
    # The median: the first worker often keeps what all workers need, such as the caches of postgres.
    middle = costs[(len(costs) - 1) // 2 : len(costs) // 2 + 1]
    medians = {name: sum(figures[name] for figures in middle) // len(middle) for name in costs[0]}
    terms = tuple(
        Term(name, size_bytes, is_once=False, evidence=evidence) for name, size_bytes in medians.items() if size_bytes
    )
    wholes = [sum(figures.values()) for figures in costs]
    last = units[-1]
    threads = sum(snapshot.thread_count for u in units for snapshot, _ in u.members)
    return ProcessClass(
        command=last.root[1].command,
        pids=tuple(unit.root[0].pid or 0 for unit in units),
        parent_pids=tuple(parents),
        model=Model.FORK if last.reasons else Model.EXEC,
        reasons=last.reasons,
        each_bytes=sum(medians.values()),
        least_bytes=wholes[0],
        most_bytes=wholes[-1],
        all_bytes=sum(wholes),
        task_count=-(-threads // len(units)),
        terms=terms,
        evidence=evidence,
    )


def _channel_bytes(units: Sequence[_Unit], parents: Sequence[int], channels: Dict[int, Sequence[Channel]]) -> int:
    """Compute what the sockets and pipes cost that masters make for each of their workers.

    nginx makes a socket pair before each fork: a worker lacks those that were made after it. What was there before the
    first fork all workers have.
    """
    holder_count = 1 + len(units) // max(1, len(parents))
    made = [c for pid in parents for c in channels.get(pid, ()) if 1 < c.holder_count < holder_count]
    return sum(channel.size_bytes for channel in made) // len(units)


def reprojected_group(audit: Audit, question: Question) -> Audit:
    """Return the audit of a group with another projection, computed from its own classes of processes.

    Raises:
        UsageError: For a count below 1.
    """
    totals, group = audit.totals, audit.group
    sums = GroupSums(
        totals.private, totals.kernel, totals.cow_shared, group.own_shared, totals.per_process, totals.shared_once
    )
    projection, workers = project_group(group.classes, sums, group.task_count, question)
    return replace(audit, projection=projection, group=group._replace(workers=workers))


def project_group(
    classes: Sequence[ProcessClass], sums: GroupSums, task_count: int, question: Question
) -> tuple[Projection, WorkerProjection]:
    """Compute what many groups cost, or how many fit, and how many workers.

    Where the cost of the group is unknown, the projection has no terms.

    Args:
        classes: The processes that are alike, the workers first.
        sums: What the group costs.
        task_count: Its threads.
        question: How many groups, of how many workers.

    Raises:
        UsageError: For a count below 1.
    """
    per_group, shared_once = sums.per_group, sums.shared_once
    if not classes or per_group.bytes is None:
        return UNKNOWN._replace(count=question.count), WorkerProjection()
    workers = classes[0]
    now_count = len(workers.pids)
    worker_count = now_count if question.worker_count is None else question.worker_count
    if min(question.count, worker_count) < 1:
        raise UsageError(f"the number is {min(question.count, worker_count)}: it must be 1 or more")
    rest_bytes = max(0, per_group.bytes - workers.all_bytes)
    rest_tasks = max(0, task_count - now_count * workers.task_count)
    # Workers that are there cost what they have; of a part of them the mean.
    there_bytes = workers.all_bytes * min(worker_count, now_count) // now_count
    workers_bytes = there_bytes + max(0, worker_count - now_count) * workers.each_bytes
    workers_tasks = worker_count * workers.task_count
    once_bytes = shared_once.bytes or 0
    terms = [Term(counted(worker_count, workers.noun), workers_bytes, is_once=False, evidence=workers.evidence)]
    if rest_bytes:
        terms.append(Term("all else of the group", rest_bytes, is_once=False, evidence=per_group.evidence))
    terms.append(Term(FILES_TERM, once_bytes, is_once=True, evidence=shared_once.evidence, is_page_cache=True))
    group_limits = how_many_fit(
        question.all_limits,
        each_bytes=rest_bytes + workers_bytes,
        kept_bytes=0,
        cache_bytes=once_bytes,
        each_tasks=rest_tasks + workers_tasks,
    )
    count = group_limits[0].count if group_limits else question.count
    projection = Projection(
        count=count,
        per_process_bytes=rest_bytes + workers_bytes,
        shared_once_bytes=once_bytes,
        total_bytes=once_bytes + count * (rest_bytes + workers_bytes) if count else 0,
        basis=Basis.PER_PROCESS,
        evidence=weakest((per_group.evidence, workers.evidence, shared_once.evidence)),
        model=workers.model,
        terms=tuple(terms),
        memory_bytes=question.memory_bytes,
        limits=group_limits,
    )
    worker_limits = how_many_fit(
        question.all_limits,
        each_bytes=workers.each_bytes,
        kept_bytes=max(0, rest_bytes + workers.all_bytes - now_count * workers.each_bytes),
        cache_bytes=once_bytes,
        each_tasks=workers.task_count,
        once_tasks=rest_tasks,
    )
    return projection, WorkerProjection(worker_count, workers.each_bytes, worker_limits)
