"""Processes of one address space: what is in it counts once, with the first of them."""

from collections.abc import Sequence

from footprint.errors import Note
from footprint.process.mappings import NO_STACKS
from footprint.process.snapshot import Snapshot


def count_address_spaces_once(snapshots: Sequence[Snapshot]) -> tuple[list[Snapshot], list[Note]]:
    """Leave what is in an address space to the first process that has it.

    Returns:
        The processes; of the second one of an address space only what the kernel spends on it is left. And notes on
        processes that may have one address space, where nobody compared these.
    """
    counted_once: list[Snapshot] = []
    notes: list[Note] = []
    counted: set[int] = set()
    not_compared: dict[object, Snapshot] = {}
    for snapshot in snapshots:
        first = snapshot.address_space_pid
        if first is None:
            other = not_compared.setdefault(snapshot.place, snapshot)
            if other is not snapshot and _may_be_one(other, snapshot):
                detail = (
                    f"it shows the same memory as process {other.process_id} in each mapping: if both have one address "
                    "space (clone(CLONE_VM), vfork), this memory is counted twice"
                )
                notes.append(Note("address-spaces-not-compared", f"pid {snapshot.process_id}", detail))
            counted_once.append(snapshot)
        elif first in counted:
            counted_once.append(_without_memory(snapshot, first))
        else:
            counted.add(first)
            counted_once.append(snapshot)
    return counted_once, notes


def _may_be_one(first: Snapshot, other: Snapshot) -> bool:
    """Return whether two processes show private memory, and the same in each mapping."""
    has_private = any(mapping.counters.private_bounds()[0] for mapping in first.memory.mappings)
    return has_private and first.memory.mappings == other.memory.mappings


def _without_memory(snapshot: Snapshot, first: int) -> Snapshot:
    """Return a process with what it has beside an address space that is counted already."""
    detail = f"it has the address space of process {first} (clone(CLONE_VM), vfork): its memory is counted there"
    return snapshot._replace(
        memory=snapshot.memory._replace(mappings=()),
        rollup=None,
        status=snapshot.status._replace(page_table_bytes=0) if snapshot.status else None,
        thread_stacks=NO_STACKS,
        pages={},
        allocated_bytes={},
        found_memory_files=(),
        notes=(*snapshot.notes, Note("address-space-shared", snapshot.source, detail)),
    )
