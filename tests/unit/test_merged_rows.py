"""The rows of several processes added up, where alike processes have the same row."""

from footprint.attribution.accounts import merge
from footprint.model.row import Evidence, MemoryKind
from tests.ledgers import ledger_row

TABLE = ledger_row(
    "/lib/liba.so",
    5000,
    kind=MemoryKind.RELRO,
    section=".data.rel.ro",
    symbol="table",
    name="table",
    mapped_bytes=6000,
    shared_bytes=700,
    pages=2,
    sole_pages=1,
    relocated_bytes=4096,
    evidence=Evidence.MEASURED,
)


def test_a_row_that_two_processes_have_counts_twice_and_what_they_share_is_not_known() -> None:
    twice = TABLE._replace(
        bytes=10000, mapped_bytes=12000, shared_bytes=None, pages=4, sole_pages=2, relocated_bytes=8192
    )
    assert merge([TABLE, TABLE]) == (twice,)
    assert merge([TABLE, TABLE._replace()]) == (twice,)
    virtual = TABLE._replace(bytes=None, pages=None, relocated_bytes=None)
    assert merge([virtual] * 3) == (virtual._replace(mapped_bytes=18000, shared_bytes=None, sole_pages=3),)


def test_the_kernel_stacks_of_processes_with_different_threads_are_one_row() -> None:
    stacks = [
        TABLE._replace(kind=MemoryKind.KERNEL, name=f"[kernel stacks of {count} threads]", bytes=size_bytes)
        for count, size_bytes in ((2, 32), (3, 48))
    ]
    (row,) = merge(stacks)
    assert (row.name, row.bytes) == ("[kernel stacks]", 80)
