"""What a process costs beside its own pages. The expected figures name the constants once more, in full."""

import pytest

from footprint.audit.kernel import KernelCost, kernel_costs
from footprint.evidence import Evidence
from footprint.process import Status

KIB = 1024


def status_of(thread_count: int | None, page_table_bytes: int | None) -> Status:
    return Status("sleep", "S", thread_count, page_table_bytes, has_memory=True)


def test_a_process_costs_page_tables_kernel_stacks_and_kernel_objects() -> None:
    # 13,619 for the process + 7,987 for its one thread + 37 mappings of 276 = 31,818.
    assert kernel_costs(status_of(1, 44 * KIB), 37) == (
        KernelCost("[page tables]", 45_056, Evidence.MEASURED),
        KernelCost("[kernel stacks of 1 thread]", 16_384, Evidence.ESTIMATED),
        KernelCost("[kernel objects]", 31_818, Evidence.ESTIMATED),
    )


def test_each_thread_has_a_kernel_stack_of_16_kib_and_objects_of_its_own() -> None:
    # 13,619 + 7 * 7,987 + 93 * 276 = 13,619 + 55,909 + 25,668 = 95,196.
    _, stacks, objects = kernel_costs(status_of(7, 392 * KIB), 93)
    assert stacks == KernelCost("[kernel stacks of 7 threads]", 7 * 16 * KIB, Evidence.ESTIMATED)
    assert objects == KernelCost("[kernel objects]", 95_196, Evidence.ESTIMATED)


def test_one_more_mapping_costs_276_bytes_and_one_more_thread_24_kib() -> None:
    def total_bytes(threads: int, mappings: int) -> int:
        return sum(cost.size_bytes for cost in kernel_costs(status_of(threads, 0), mappings))

    assert total_bytes(1, 11) - total_bytes(1, 10) == 276
    assert total_bytes(3, 10) - total_bytes(2, 10) == 16_384 + 7_987


def test_only_the_page_tables_are_measured() -> None:
    assert [cost.evidence for cost in kernel_costs(status_of(2, 0), 1)] == ["measured", "estimated", "estimated"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="no status at all, as with a saved text"),
        pytest.param(status_of(None, 44 * KIB), id="no threads"),
        pytest.param(status_of(1, None), id="no page tables, as with kernel threads and zombies"),
    ],
)
def test_where_threads_or_page_tables_are_unknown_nothing_is_guessed(status: Status | None) -> None:
    assert kernel_costs(status, 37) == ()
