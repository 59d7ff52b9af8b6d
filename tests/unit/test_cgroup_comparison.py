"""The figures of processes beside those of their control group: each kind of kernel memory by its own counter."""

from types import MappingProxyType

import pytest

from footprint.attribution.group import compare_with_cgroup, group_up, most_ahead_bytes
from footprint.model.group import CgroupComparison
from footprint.process.control_groups import CgroupCharges
from tests.groupmembers import heap, member

KIB = 1024
STAT = {
    "kernel": 200 * KIB,
    "kernel_stack": 16 * KIB,
    "pagetables": 44 * KIB,
    "slab_reclaimable": 60 * KIB,
    "slab_unreclaimable": 50 * KIB,
    "percpu": 10 * KIB,
}


def compared(total_kib: int, **more: int) -> CgroupComparison:
    """Compare one process with 1,024 KiB of heap with charges of 1,224 KiB that are named."""
    stat = MappingProxyType(STAT | more)
    charges = CgroupCharges(total_kib * KIB, 1024 * KIB, 0, 0, 200 * KIB, 110 * KIB, 0, stat)
    group = group_up([member(20, heap(1024), pss_anon=1024)])
    return compare_with_cgroup(group, charges, "/a", 2, ahead_most_bytes=most_ahead_bytes(2, 4096))


def charged(comparison: CgroupComparison) -> dict[str, int]:
    return {row.name: row.charged_bytes // KIB for row in comparison.rows if row.charged_bytes}


def test_each_kind_of_kernel_memory_stands_beside_its_counter() -> None:
    comparison = compared(1224)
    assert charged(comparison) == {
        "anonymous memory": 1024,
        "page tables": 44,
        "kernel stacks": 16,
        "kernel objects": 50,
        "cached names and inodes": 60,
        "memory of each processor": 10,
        "other kernel memory": 200 - 44 - 16 - 50 - 60 - 10,
    }
    causes = {row.name: row.cause for row in comparison.rows}
    assert causes["cached names and inodes"].startswith("slab_reclaimable: ")


def test_kernel_memory_that_is_held_is_that_of_the_processes_in_all() -> None:
    group = group_up([member(20, heap(1024), pss_anon=1024)])
    kinds = {"page tables", "kernel stacks", "kernel objects", "other kernel memory"}
    held = [row.audited_bytes or 0 for row in compared(1224).rows if row.name in kinds]
    assert sum(held) == (group.totals.kernel.bytes or 0)


@pytest.mark.parametrize(
    ("total_kib", "swap_kib", "expected"),
    [
        pytest.param(1224 + 504, 0, {"charged before use": 504}, id="63 pages of 2 processors at the most"),
        pytest.param(1224 + 4096, 0, {"charged before use": 504, "not named": 3592}, id="no more than that"),
        pytest.param(
            1224 + 4096, 4000, {"swap cache": 4000, "charged before use": 96}, id="pages that are in swap too"
        ),
        pytest.param(1224 + 8, 4000, {"swap cache": 8}, id="of which mapped ones are anonymous memory"),
    ],
)
def test_what_is_charged_beyond_all_kinds_is_named_as_far_as_the_kernel_tells(
    total_kib: int, swap_kib: int, expected: dict[str, int]
) -> None:
    comparison = compared(total_kib, swapcached=swap_kib * KIB)
    assert {
        name: size
        for name, size in charged(comparison).items()
        if name in {"swap cache", "not named", "charged before use"}
    } == expected
    assert sum(row.charged_bytes for row in comparison.rows) == comparison.total_bytes == total_kib * KIB
