"""What the processes of a control group hold, beside what the kernel charges to it; every difference has a name."""

from collections.abc import Sequence

from footprint.model.audit import Audit
from footprint.model.group import CgroupComparison, CgroupRow, Group
from footprint.model.row import MemoryKind
from footprint.process.control_groups import CgroupCharges

__all__ = ("compare_with_cgroup",)

_MEMORY_FILES = "[memory files that are not mapped]"


def compare_with_cgroup(group: Group, charges: CgroupCharges, path: str, version: int) -> CgroupComparison:
    """Set the figures of a group of processes beside the charges of their control group.

    Args:
        group: The processes.
        charges: What is charged.
        path: The path of the control group.
        version: 1 or 2.
    """
    swapped_bytes = sum(audit.totals.of_which.swapped_bytes for audit in group.audits)
    unmapped_bytes = _kernel_row_bytes(group.audits, _MEMORY_FILES)
    anonymous_bytes = _sum(group.private.bytes, group.shared_between.bytes, -swapped_bytes)
    parts = (
        (
            "anonymous memory",
            anonymous_bytes,
            charges.anonymous_bytes,
            "memory that processes touched before they came, or that changed meanwhile",
        ),
        (
            "shared memory",
            _sum(group.own_shared.bytes, unmapped_bytes),
            charges.shared_memory_bytes,
            "files of tmpfs, and segments that nobody maps",
        ),
        (
            "kernel memory",
            _sum(group.kernel.bytes, -unmapped_bytes),
            charges.kernel_bytes,
            "slab: cached names and inodes of files, and what our model does not have",
        ),
        ("sockets", None, charges.socket_bytes, "data that is sent or received"),
        (
            "page cache",
            group.shared_once.bytes,
            charges.page_cache_bytes,
            "files that are read and not mapped; a file is charged to the first control group that reads it",
        ),
    )
    rows = [
        CgroupRow(name, audited_bytes, charged_bytes, charged_bytes - (audited_bytes or 0), cause)
        for name, audited_bytes, charged_bytes, cause in parts
    ]
    ahead_bytes = max(0, charges.total_bytes - sum(row.charged_bytes for row in rows))
    rows.append(CgroupRow("charged before use", None, ahead_bytes, ahead_bytes, "up to 63 pages for each CPU"))
    total_bytes = sum(row.charged_bytes for row in rows)
    return CgroupComparison(path, version, total_bytes, charges.slab_bytes, tuple(rows))


def _sum(*figures: int | None) -> int | None:
    known = [one for one in figures if one is not None]
    return sum(known) if len(known) == len(figures) else None


def _kernel_row_bytes(audits: Sequence[Audit], name: str) -> int:
    return sum(
        row.bytes or 0 for audit in audits for row in audit.ledger if row.kind is MemoryKind.KERNEL and row.name == name
    )
