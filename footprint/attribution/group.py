"""Several processes as one group: private memory added up, shared memory counted once."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from itertools import chain

from footprint.attribution.accounts import merge
from footprint.attribution.families import NO_CHANNELS, Channel, process_classes, project_group, shared_between_bytes
from footprint.attribution.group_findings import group_findings, group_objects, group_rules
from footprint.attribution.shared_memory import Backing, backing_of, own_shared_bytes_of_group
from footprint.errors import Note
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.group import AS_IT_IS, Group, GroupQuestion
from footprint.model.group_member import GroupMember
from footprint.model.totals import Total
from footprint.process import Mapping, Snapshot
from footprint.process.mapped_files import FileKey, file_key

__all__ = ("group_up",)

_LEFT_OUT = frozenset({"process-not-read", "members-changed"})


def group_up(
    members: Sequence[tuple[Snapshot, Audit]],
    notes: Sequence[Note] = (),
    question: GroupQuestion = AS_IT_IS,
    channels: Dict[int, Sequence[Channel]] = NO_CHANNELS,
    target: str = "",
) -> Group:
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
    """
    audits = tuple(audit for _, audit in members)
    private = _sum([audit.totals.private for audit in audits])
    kernel = _sum([audit.totals.kernel for audit in audits])
    all_notes = (*notes, *(note for audit in audits for note in audit.notes))
    is_partial = any(note.slug in _LEFT_OUT for note in all_notes)
    derived = Evidence.ESTIMATED if is_partial else Evidence.DERIVED
    between_bytes = shared_between_bytes(members, is_partial=is_partial)
    shared_between = Total(between_bytes, Evidence.ESTIMATED if between_bytes is None else derived)
    mappings = [snapshot.memory.mappings for snapshot, _ in members]
    allocated_bytes = {key: size for snapshot, _ in members for key, size in snapshot.allocated_bytes.items()}
    own_shared = Total(own_shared_bytes_of_group(mappings, allocated_bytes, is_partial=is_partial), derived)
    per_group = _sum([private, kernel, shared_between, own_shared])
    shared_once = Total(_shared_once(mappings), Evidence.ESTIMATED)
    classes = process_classes(members, channels, is_partial=is_partial)
    task_count = _task_count(members)
    return Group(
        target=target or " ".join(audit.target for audit in audits),
        members=tuple([_member(audit) for audit in audits]),
        private=private,
        kernel=kernel,
        shared_between=shared_between,
        own_shared=own_shared,
        per_group=per_group,
        shared_once=shared_once,
        ledger=merge(chain.from_iterable([audit.ledger for audit in audits])),
        notes=all_notes,
        classes=classes,
        projection=project_group(classes, per_group, shared_once, task_count, question),
        host=next((audit.host for audit in audits if audit.host), {}),
        task_count=task_count,
        debug_files={owner: path for audit in audits for owner, path in audit.debug_files.items()},
        findings=group_findings(audits),
        searched_rules=group_rules(audits),
        objects=group_objects(audits),
        audits=audits,
    )


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


def _task_count(members: Sequence[tuple[Snapshot, Audit]]) -> int:
    """Add up the threads; a process of which nothing is known has one."""
    return sum(snapshot.thread_count for snapshot, _ in members)


def _sum(totals: Sequence[Total]) -> Total:
    evidence = weakest(total.evidence for total in totals)
    known = [total.bytes for total in totals if total.bytes is not None]
    return Total(sum(known) if len(known) == len(totals) else None, evidence)


def _shared_once(members: Sequence[Sequence[Mapping]]) -> int:
    """Add up the largest resident size that any member has, over the mapped parts of each file.

    Shared memory that the group brings with it is not part of it.
    """
    parts: dict[FileKey | str, list[tuple[int, int, int, int]]] = {}
    for member, mappings in enumerate(members):
        for mapping in mappings:
            if backing_of(mapping) in {Backing.NAMELESS, Backing.NAMED}:
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
