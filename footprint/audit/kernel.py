"""What a process costs beside its own pages: page tables, kernel stacks, kernel objects.

The constants were fitted on Linux 6.18, x86-64, against the growth of a memory cgroup over seven programs.
"""

from dataclasses import dataclass
from typing import Final

from footprint.evidence import Evidence
from footprint.process import Status

__all__ = ("KernelCost", "kernel_costs")

_STACK_BYTES: Final = 16 * 1024
# task_struct, mm, signal and file tables, the top page of the page tables.
_PROCESS_BYTES: Final = 13_619
_THREAD_BYTES: Final = 7_987
_MAPPING_BYTES: Final = 276


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One part of what the kernel spends on a process."""

    name: str
    size_bytes: int
    evidence: Evidence


def kernel_costs(status: Status | None, mapping_count: int) -> tuple[KernelCost, ...]:
    """Give the kernel's cost of a process in its parts; nothing where threads and page tables are unknown."""
    if status is None or status.page_table_bytes is None or status.thread_count is None:
        return ()
    threads = status.thread_count
    objects_bytes = _PROCESS_BYTES + threads * _THREAD_BYTES + mapping_count * _MAPPING_BYTES
    return (
        KernelCost("[page tables]", status.page_table_bytes, Evidence.MEASURED),
        KernelCost(
            f"[kernel stacks of {threads} {'thread' if threads == 1 else 'threads'}]",
            threads * _STACK_BYTES,
            Evidence.ESTIMATED,
        ),
        KernelCost("[kernel objects]", objects_bytes, Evidence.ESTIMATED),
    )
