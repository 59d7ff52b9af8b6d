"""Several processes as one: what each holds alone added up, what they share counted once."""

from collections.abc import Sequence
from dataclasses import dataclass

from footprint.audit.audit import Audit
from footprint.audit.layout import FileKey, Kind, file_key
from footprint.audit.ledger import Row, merged_rows
from footprint.audit.totals import Total
from footprint.errors import Note
from footprint.evidence import Evidence, weakest
from footprint.process import Snapshot

__all__ = ("Group", "group_up")


@dataclass(frozen=True, slots=True)
class Group:
    """Where the memory of several processes goes.

    Attributes:
        audits: Each process for itself.
        private: What each holds alone, added up.
        kernel: What the kernel spends on each, added up.
        shared_between: Anonymous memory that several of them hold since a fork, counted once.
        per_group: These three: what one more group of them costs.
        shared_once: Resident pages of files and shared memory, each counted once.
        ledger: The rows of all, those of one owner, section and symbol added up; `bytes` add up to `private`,
            those of the kernel to `kernel`.
        notes: What the reader must know, with the process it is about.

    Raises:
        ValueError: Where the rows do not add up: a defect of footprint, never of the input.
    """

    audits: tuple[Audit, ...]
    private: Total
    kernel: Total
    shared_between: Total
    per_group: Total
    shared_once: Total
    ledger: tuple[Row, ...]
    notes: tuple[Note, ...]

    def __post_init__(self) -> None:
        for is_kernel, total in ((False, self.private), (True, self.kernel)):
            sum_bytes = sum(row.bytes or 0 for row in self.ledger if (row.kind is Kind.KERNEL) is is_kernel)
            if total.bytes is not None and sum_bytes != total.bytes:
                raise ValueError(f"the rows hold {sum_bytes} bytes, the total is {total.bytes}")

    @property
    def debug_files(self) -> dict[str, str]:
        """Give the files that the names of stripped owners are from."""
        return {owner: path for audit in self.audits for owner, path in audit.debug_files.items()}


def group_up(members: Sequence[tuple[Snapshot, Audit]], notes: Sequence[Note] = ()) -> Group:
    """Add up processes that were read at about the same time.

    Anonymous memory that relatives share is counted by proportional shares (`Pss_Anon`), which is exact where all its
    holders are members. Of a file's pages, those of the member that has most of each mapping are counted: which of them
    are the same, the counters do not tell, so it is the least that they can be.
    """
    audits = tuple(audit for _, audit in members)
    private = _sum([audit.totals.private for audit in audits])
    kernel = _sum([audit.totals.kernel for audit in audits])
    shared_between = _shared_between(members)
    return Group(
        audits=audits,
        private=private,
        kernel=kernel,
        shared_between=shared_between,
        per_group=_sum([private, kernel, shared_between]),
        shared_once=Total(_shared_once([snapshot for snapshot, _ in members]), Evidence.ESTIMATED),
        ledger=merged_rows(row for audit in audits for row in audit.ledger),
        notes=(*notes, *(note for audit in audits for note in audit.notes)),
    )


def _sum(totals: Sequence[Total]) -> Total:
    evidence = weakest(total.evidence for total in totals)
    known = [total.bytes for total in totals if total.bytes is not None]
    return Total(sum(known) if len(known) == len(totals) else None, evidence)


def _shared_between(members: Sequence[tuple[Snapshot, Audit]]) -> Total:
    total_bytes = 0
    for snapshot, audit in members:
        shared_bytes = audit.totals.shared_with_relatives.bytes
        if not shared_bytes:
            continue
        proportional = snapshot.rollup.get("Pss_Anon") if snapshot.rollup else None
        if proportional is None or audit.totals.private.bytes is None:
            return Total(None, Evidence.ESTIMATED)
        own_bytes = audit.totals.private.bytes - audit.totals.of_which.swapped_bytes
        total_bytes += max(0, min(proportional - own_bytes, shared_bytes))
    return Total(total_bytes, Evidence.DERIVED)


def _shared_once(snapshots: Sequence[Snapshot]) -> int:
    """Add up, over the parts of each file that are mapped, the most that any member has resident."""
    parts: dict[FileKey | str, list[tuple[int, int, int, int]]] = {}
    for member, snapshot in enumerate(snapshots):
        for mapping in snapshot.memory.mappings:
            counter = mapping.counters.get
            shared_bytes = (counter("Rss") or 0) - (counter("Anonymous") or 0)
            if shared_bytes > 0:
                key = file_key(mapping) or f"{mapping.name} {mapping.device}:{mapping.inode}"
                start = mapping.offset or 0
                parts.setdefault(key, []).append((start, start + mapping.size_bytes, member, shared_bytes))
    return sum(_most_of_each(ranges) for ranges in parts.values())


def _most_of_each(ranges: list[tuple[int, int, int, int]]) -> int:
    """Join ranges of a file that overlap, however each member has cut them, and take the most that one has of each."""
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
