"""What the processes of a control group hold, beside what the kernel charges to it; every difference has a name."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from footprint.attribution.accounts import known_sum
from footprint.model.audit import Audit
from footprint.model.group import CgroupComparison, CgroupRow
from footprint.model.row import MemoryKind
from footprint.process.control_groups import CgroupCharges
from footprint.process.memory_files import KERNEL_BUFFERS

# At each moment up to so many pages of each processor are charged to a group in advance (MEMCG_CHARGE_BATCH).
_PAGES_AHEAD: Final = 63


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
    _Kind("cached names and inodes", "slab_reclaimable", (), "of files; the kernel drops them when it needs memory"),
    _Kind("memory of each processor", "percpu", (), "counters of the group and its processes, one for each CPU"),
    _Kind("large tables", "vmalloc", (), "allocated by vmalloc, such as filters and programs of BPF"),
    _Kind("page tables of devices", "sec_pagetables", (), "of virtual machines and IOMMUs"),
    _Kind("compressed swap", "zswap", (), "what zswap keeps in memory"),
)
_REST: Final = (
    "buffers of pipes, top pages of page tables, and what no counter of the kernel names; rings of packet sockets and "
    "of perf are charged to no group"
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
    kernel_bytes, audits = known_sum([audit.totals.kernel.bytes, buffers_bytes]), audit.group.audits
    if not kinds or kernel_bytes is None:
        return [_row("kernel memory", kernel_bytes, charges.kernel_bytes, f"cached names and inodes of files, {_REST}")]
    rows = []
    for kind in kinds:
        audited_bytes = sum(_kernel_rows(audits, kind.rows)) if kind.rows else None
        rows.append(_row(kind.name, audited_bytes, charges.stat[kind.field], f"{kind.field}: {kind.cause}"))
    taken = tuple(prefix for kind in kinds for prefix in kind.rows)
    other_bytes = buffers_bytes + sum(_kernel_rows(audits, ("",))) - sum(_kernel_rows(audits, taken))
    rest_bytes = max(0, charges.kernel_bytes - sum(row.charged_bytes for row in rows))
    return [*rows, _row("other kernel memory", other_bytes or None, rest_bytes, _REST)]


def _kernel_rows(audits: Sequence[Audit], prefixes: tuple[str, ...]) -> Iterator[int]:
    """Yield the sizes of the rows of kernel memory whose name begins so."""
    for audit in audits:
        for row in audit.ledger:
            if row.kind is MemoryKind.KERNEL and (row.name or "").startswith(prefixes):
                yield row.bytes or 0
