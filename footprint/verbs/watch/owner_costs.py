"""What each owner costs in an audit of a watch: all owners together cost what the audit says of the whole."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from footprint.attribution.counters import count_each
from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import by_mapping
from footprint.model.audit import Audit
from footprint.model.row import MemoryKind
from footprint.process.snapshot import Snapshot
from footprint.sources.files import ElfFiles
from footprint.sources.process_files import images_of

_SHARED: Final = "[shared since a fork]"
_STACKS: Final = "[kernel stacks]"


def cost_of(audit: Audit) -> int:
    """Return what the processes of an audit cost; where that is not known, what its rows have."""
    cost_bytes = audit.cost.bytes
    return sum(row.bytes or 0 for row in audit.ledger) if cost_bytes is None else cost_bytes


def owner_costs(audit: Audit, shared_weights: Mapping[str, int]) -> Mapping[str, int]:
    """Add up what each owner costs. What the kernel spends is divided by its kinds.

    Args:
        audit: The audit.
        shared_weights: By owner, in which proportion the memory counts that processes of a group share since a fork.
    """
    costs: Counter[str] = Counter()
    for row in audit.ledger:
        if row.bytes:
            costs[_kernel_owner(row.name or row.owner) if row.kind is MemoryKind.KERNEL else row.owner] += row.bytes
    if audit.is_group:
        costs.update(_divided(audit.totals.cow_shared.bytes or 0, shared_weights))
    for file in audit.memory_files:
        costs[file.owner] += file.own_bytes
    return dict(+costs)


def _kernel_owner(name: str) -> str:
    # The row of one process has the number of its threads.
    return _STACKS if name.startswith(_STACKS[:-1]) else name


def _divided(whole_bytes: int, weights: Mapping[str, int]) -> Mapping[str, int]:
    """Divide bytes in proportion to weights; the owner with the largest one has what is left by rounding."""
    whole_weight = sum(weights.values())
    if not whole_weight:
        return {_SHARED: whole_bytes}
    parts = {owner: whole_bytes * weight // whole_weight for owner, weight in weights.items()}
    parts[max(weights, key=weights.__getitem__)] += whole_bytes - sum(parts.values())
    return parts


def shared_weights(snapshots: Sequence[Snapshot], files: ElfFiles) -> Mapping[str, int]:
    """Add up the proportional shares of what processes share since a fork, by its owner.

    A mapping with several owners counts for the largest. Of one that has pages of its file, too, the kernel adds the
    shares of both: they count up to its COW-shared size.
    """
    weights: Counter[str] = Counter()
    for snapshot in snapshots:
        counts = count_each(snapshot.memory.mappings, snapshot.pages)
        if not any(counted.cow_shared_bytes for counted in counts):
            continue
        images, _ = images_of(snapshot, None, files.opened, files.images)
        ranges = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
        for parts, counted in by_mapping(ranges, counts):
            if counted.cow_shared_bytes:
                counter = parts[0].mapping.counters.get
                private_bytes = (counted.private_bytes or 0) - (counter("Swap") or 0)
                share_bytes = min(counted.cow_shared_bytes, (counter("Pss") or 0) - private_bytes)
                largest = max(parts, key=lambda part: part.end_addr - part.start_addr)
                weights[largest.owner] += max(0, share_bytes)
    return dict(+weights)
