"""Several processes as one group: private memory added up, shared memory counted once.

Of a control group it is shown beside what the kernel charges to it; every difference has a name.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from footprint.attribution.accounts import known_sum, merge
from footprint.attribution.families import (
    NO_CHANNELS,
    Channel,
    inodes_of_group,
    is_of_inodes,
    process_classes,
    project_group,
    shared_between_bytes,
)
from footprint.attribution.kernel import BUILT_IN, INODES, KernelConstants, uncounted_notes
from footprint.attribution.ledger import kernel_row
from footprint.attribution.memory_files import ChargedFile, charge_files, own_shared_bytes
from footprint.errors import Note
from footprint.members import replace
from footprint.model.audit import Audit, GroupFacts, GroupMember, GroupSums, audit_of_group, sum_totals
from footprint.model.costs import ObjectCost
from footprint.model.finding import Finding, SearchedRule
from footprint.model.group import CgroupComparison, CgroupRow
from footprint.model.projection import ONE, Question
from footprint.model.row import Evidence, MemoryKind, Row, Total, weakest
from footprint.process.control_groups import CgroupCharges
from footprint.process.mappings import FileKey, Mapping, file_key
from footprint.process.memory_files import KERNEL_BUFFERS, FileIdentity, file_identity
from footprint.process.snapshot import Snapshot
from footprint.process.status import KernelHoldings

_Value = TypeVar("_Value")
_LEFT_OUT = frozenset({"process-not-read", "members-changed"})
# At each moment up to so many pages of each processor are charged to a group in advance (MEMCG_CHARGE_BATCH).
_PAGES_AHEAD: Final = 63
_REST: Final = (
    "buffers of pipes, top pages of page tables, and what no counter of the kernel names; rings of packet sockets and "
    "of perf are charged to no group"
)


def group_findings(audits: Iterable[Audit]) -> tuple[Finding, ...]:
    """Join the findings that several processes have, the largest saving first.

    One finding is that of another process where all that is said of it is the same, apart from the figures. A process
    may have it several times.
    """
    alike: dict[object, list[Finding]] = {}
    for audit in audits:
        seen: dict[object, int] = {}
        for finding in audit.findings:
            key = (finding.rule, finding.kind, finding.subject, finding.object_path, finding.location)
            seen[key] = seen.get(key, 0) + 1
            alike.setdefault((key, seen[key]), []).append(finding)
    return tuple(sorted(map(_joined, alike.values()), key=lambda finding: -finding.saving_bytes))


def _joined(findings: Sequence[Finding]) -> Finding:
    # The words are those of the process in which it saves most.
    most = max(findings, key=lambda finding: finding.saving_bytes)
    private = [finding.private_bytes for finding in findings if finding.private_bytes is not None]
    return replace(
        most,
        saving_bytes=sum(finding.saving_bytes for finding in findings),
        private_bytes=sum(private) if len(private) == len(findings) else None,
        member_count=len(findings),
    )


def group_rules(audits: Iterable[Audit]) -> tuple[SearchedRule, ...]:
    """Return the rules that were run for every process that was searched."""
    searched = [{r.rule: r.left_out_count for r in audit.searched_rules} for audit in audits]
    searched = [counts for counts in searched if counts]
    rules = [rule for rule in (searched[0] if searched else ()) if all(rule in counts for counts in searched)]
    return tuple([SearchedRule(rule, sum(counts[rule] for counts in searched)) for rule in rules])


def group_objects(audits: Iterable[Audit]) -> tuple[ObjectCost, ...]:
    """Join the objects that several processes have, in the order in which they are met first."""
    alike: dict[str, list[ObjectCost]] = {}
    for audit in audits:
        for linked in audit.objects:
            alike.setdefault(linked.path, []).append(linked)
    return tuple(
        [
            same[0]._replace(
                own_bytes=sum(o.own_bytes for o in same),
                retained_bytes=sum(o.retained_bytes for o in same),
                held_by=_same([o.held_by for o in same]),
                tls_bytes=sum(o.tls_bytes for o in same),
                needs=_same([o.needs for o in same]),
                build_id=_same([o.build_id for o in same]),
            )
            for same in alike.values()
        ]
    )


def _same(values: Sequence[_Value | None]) -> _Value | None:
    """Return what all values are; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def group_up(
    members: Sequence[tuple[Snapshot, Audit]],
    notes: Sequence[Note] = (),
    question: Question = ONE,
    channels: Dict[int, Sequence[Channel]] = NO_CHANNELS,
    target: str = "",
    zombies: Sequence[int] = (),
    constants: KernelConstants = BUILT_IN,
) -> Audit:
    """Add up processes that were read at about the same time, and project them to many groups.

    COW-shared memory and the shared memory that they made are counted by proportional shares (`Pss`). This is exact
    where all holders of a page are members. Another group makes both for itself. Of each mapping of a file, the largest
    count of any member is taken. Counters do not say which pages are the same, so this is a lower bound. Where members
    could not be read, their shares are missing: what one member shares is then the least that all share.

    Args:
        members: The processes.
        notes: What was odd about reading them.
        question: How many such groups.
        channels: The sockets and pipes that each process pays for and others have as well.
        target: What the user named; "" for the names of the processes.
        zombies: Those that have ended, and that nobody has waited for.
        constants: What the kernel spends on each thing.
    """
    audits = tuple(audit for _, audit in members)
    private = sum_totals([audit.totals.private for audit in audits])
    kernel = sum_totals([audit.totals.kernel for audit in audits])
    holdings = [KernelHoldings(zombies=tuple(zombies)), *(snapshot.kernel_holdings for snapshot, _ in members)]
    uncounted = uncounted_notes(holdings, target or "the group")
    of_members = [note for audit in audits for note in audit.notes if note.slug != "kernel-memory-not-counted"]
    all_notes = (*notes, *of_members, *uncounted)
    is_partial = any(note.slug in _LEFT_OUT for note in all_notes)
    derived = Evidence.ESTIMATED if is_partial else Evidence.DERIVED
    between_bytes = shared_between_bytes(members, is_partial=is_partial)
    shared_between = Total(between_bytes, Evidence.ESTIMATED if between_bytes is None else derived)
    charges = charge_files([snapshot for snapshot, _ in members], is_partial=is_partial)
    own_shared = Total(own_shared_bytes(charges), derived)
    kernel, ledger = _with_inodes(members, kernel, charges, constants)
    per_group = sum_totals([private, kernel, shared_between, own_shared])
    # What prices of descriptors have whole is no part of the files, either.
    own_files = {c.file.identity for c in charges if c.cost.own_bytes or not c.cost.shared_bytes}
    shared_once = Total(
        _shared_once([snapshot.memory.mappings for snapshot, _ in members], own_files), Evidence.ESTIMATED
    )
    classes = process_classes(members, channels, constants, is_partial=is_partial)
    # A process of which nothing is known has one thread.
    task_count = sum(snapshot.thread_count for snapshot, _ in members)
    sums = GroupSums(private, kernel, shared_between, own_shared, per_group, shared_once)
    projection, workers = project_group(classes, sums, task_count, question)
    group = GroupFacts(
        tuple([_member(audit) for audit in audits]), own_shared, classes, task_count, workers, audits=audits
    )
    return audit_of_group(
        target or " ".join(audit.target for audit in audits),
        sums,
        group,
        ledger=merge(ledger),
        projection=projection,
        notes=all_notes,
        host=next((audit.host for audit in audits if audit.host), {}),
        debug_files={owner: path for audit in audits for owner, path in audit.debug_files.items()},
        findings=group_findings(audits),
        searched_rules=group_rules(audits),
        objects=group_objects(audits),
        memory_files=tuple([charge.cost for charge in charges]),
    )


def _with_inodes(
    members: Sequence[tuple[Snapshot, Audit]], kernel: Total, charges: Sequence[ChargedFile], constants: KernelConstants
) -> tuple[Total, Iterable[Row]]:
    """Return the kernel memory of a group and its rows, with the inodes of the files that belong to all together."""
    rows = chain.from_iterable([audit.ledger for _, audit in members])
    together, separate_bytes = inodes_of_group(members, charges, constants)
    if kernel.bytes is None or together.size_bytes == separate_bytes:
        return kernel, rows
    others = [row for row in rows if not is_of_inodes(row)]
    size_bytes = kernel.bytes + together.size_bytes - separate_bytes
    return Total(size_bytes, weakest((kernel.evidence, together.evidence))), [*others, kernel_row(together)]


def _member(audit: Audit) -> GroupMember:
    return GroupMember(
        audit.target,
        audit.pid,
        audit.command,
        audit.source,
        audit.is_live,
        audit.mapping_count,
        audit.page_bytes,
        audit.totals,
    )


def _shared_once(members: Sequence[Sequence[Mapping]], own_files: Collection[FileIdentity]) -> int:
    """Add up the largest resident size that any member has, over the mapped parts of each file.

    Shared memory that the group brings with it is not part of it.
    """
    parts: dict[FileKey | str, list[tuple[int, int, int, int]]] = {}
    for member, mappings in enumerate(members):
        for mapping in mappings:
            if own_files and file_identity(mapping.device, mapping.inode, mapping.name) in own_files:
                continue
            counter = mapping.counters.get
            shared_bytes = (counter("Rss") or 0) - (counter("Anonymous") or 0)
            if shared_bytes > 0:
                key = file_key(mapping) or f"{mapping.name} {mapping.device}:{mapping.inode}"
                start = mapping.offset or 0
                parts.setdefault(key, []).append((start, start + mapping.size_bytes, member, shared_bytes))
    return sum(_most_of_each(ranges) for ranges in parts.values())


def _most_of_each(ranges: list[tuple[int, int, int, int]]) -> int:
    """Join overlapping ranges of a file, and add up the largest count that one member has of each."""
    total_bytes = 0
    reached = -1
    by_member: dict[int, int] = {}
    for start, end, member, shared_bytes in sorted(ranges):
        if start >= reached:
            total_bytes += max(by_member.values(), default=0)
            by_member = {}
        by_member[member] = by_member.get(member, 0) + shared_bytes
        reached = max(reached, end)
    return total_bytes + max(by_member.values(), default=0)


class _Kind(NamedTuple):
    """A part of the kernel memory: its field of memory.stat, the rows of an audit that are it, and what differs."""

    name: str
    field: str
    rows: tuple[str, ...]
    cause: str


_KINDS: Final = (
    _Kind(
        "page tables",
        "pagetables",
        ("[page tables]",),
        "upper levels, which older kernels count elsewhere, and what changed meanwhile",
    ),
    _Kind("kernel stacks", "kernel_stack", ("[kernel stacks",), "those of threads that came or ended meanwhile"),
    _Kind(
        "kernel objects",
        "slab_unreclaimable",
        ("[kernel objects]", "[open descriptors]"),
        "sizes of objects are estimated; what belongs to no process, such as sockets that wait to be closed",
    ),
    _Kind(
        "cached names and inodes",
        "slab_reclaimable",
        (INODES,),
        "of files; the kernel drops them when it needs memory",
    ),
    _Kind("memory of each processor", "percpu", (), "counters of the group and its processes, one for each CPU"),
    _Kind("large tables", "vmalloc", (), "allocated by vmalloc, such as filters and programs of BPF"),
    _Kind("page tables of devices", "sec_pagetables", (), "of virtual machines and IOMMUs"),
    _Kind("compressed swap", "zswap", (), "what zswap keeps in memory"),
)


def compare_with_cgroup(
    audit: Audit, charges: CgroupCharges, path: str, version: int, *, ahead_most_bytes: int
) -> CgroupComparison:
    """Set the figures of a group of processes beside the charges of their control group.

    Args:
        audit: The audit of the processes.
        charges: What is charged.
        path: The path of the control group.
        version: 1 or 2.
        ahead_most_bytes: How much the processors of the host may have charged in advance, by `most_ahead_bytes`.
    """
    totals = audit.totals
    buffers_bytes = sum(file.own_bytes for file in audit.memory_files if file.owner.startswith(KERNEL_BUFFERS))
    rows = [
        _row(
            "anonymous memory",
            known_sum([totals.private.bytes, totals.cow_shared.bytes, -totals.of_which.swapped_bytes]),
            charges.anonymous_bytes,
            "memory that processes touched before they came, or that changed meanwhile",
        ),
        _row(
            "shared memory",
            known_sum([audit.group.own_shared.bytes, -buffers_bytes]),
            charges.shared_memory_bytes,
            "files of tmpfs, and segments that nobody maps",
        ),
        *_of_kernel(audit, charges, buffers_bytes),
        _row("sockets", None, charges.socket_bytes, "data that is sent or received"),
        _row(
            "page cache",
            totals.shared_once.bytes,
            charges.page_cache_bytes,
            "files that are read and not mapped; a file is charged to the first control group that reads it",
        ),
    ]
    rest_bytes = max(0, charges.total_bytes - sum(row.charged_bytes for row in rows))
    # A page of the swap cache that a process maps counts as anonymous, too.
    swap_cache_bytes = min(charges.stat.get("swapcached", 0), rest_bytes)
    if swap_cache_bytes:
        rows.append(_row("swap cache", None, swap_cache_bytes, "pages in memory that are in swap as well"))
    ahead_bytes = min(rest_bytes - swap_cache_bytes, ahead_most_bytes)
    rows.append(_row("charged before use", None, ahead_bytes, f"up to {_PAGES_AHEAD} pages for each CPU"))
    if unnamed_bytes := rest_bytes - swap_cache_bytes - ahead_bytes:
        rows.append(_row("not named", None, unnamed_bytes, "memory.stat does not say what it is"))
    total_bytes = sum(row.charged_bytes for row in rows)
    return CgroupComparison(path, version, total_bytes, charges.slab_bytes, tuple(rows))


def most_ahead_bytes(cpu_count: int, page_bytes: int) -> int:
    """Compute how much the processors of a host may have charged to a group in advance."""
    return _PAGES_AHEAD * cpu_count * page_bytes


def _row(name: str, audited_bytes: int | None, charged_bytes: int, cause: str) -> CgroupRow:
    return CgroupRow(name, audited_bytes, charged_bytes, charged_bytes - (audited_bytes or 0), cause)


def _of_kernel(audit: Audit, charges: CgroupCharges, buffers_bytes: int) -> list[CgroupRow]:
    """Compare kernel memory by the parts that memory.stat tells; as a whole where it tells none.

    Buffers of the kernel that are mapped are part of it.
    """
    kinds = [kind for kind in _KINDS if charges.stat.get(kind.field)]
    kernel_bytes = known_sum([audit.totals.kernel.bytes, buffers_bytes])
    if not kinds or kernel_bytes is None:
        return [_row("kernel memory", kernel_bytes, charges.kernel_bytes, f"cached names and inodes of files, {_REST}")]
    rows = []
    for kind in kinds:
        audited_bytes = sum(_kernel_rows(audit.ledger, kind.rows)) or None
        rows.append(_row(kind.name, audited_bytes, charges.stat[kind.field], f"{kind.field}: {kind.cause}"))
    taken = tuple(prefix for kind in kinds for prefix in kind.rows)
    other_bytes = buffers_bytes + sum(_kernel_rows(audit.ledger, ("",))) - sum(_kernel_rows(audit.ledger, taken))
    rest_bytes = max(0, charges.kernel_bytes - sum(row.charged_bytes for row in rows))
    return [*rows, _row("other kernel memory", other_bytes or None, rest_bytes, _REST)]


def _kernel_rows(ledger: Sequence[Row], prefixes: tuple[str, ...]) -> Iterator[int]:
    """Yield the sizes of the rows of kernel memory whose name begins so."""
    for row in ledger:
        if row.kind is MemoryKind.KERNEL and (row.name or "").startswith(prefixes):
            yield row.bytes or 0
