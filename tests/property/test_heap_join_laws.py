"""Whatever a profile says of a heap, the rows add up to what the kernel counts, and nothing in them is negative."""

from hypothesis import given
from hypothesis import strategies as st

from footprint.attribution.heap_join import join_heap
from footprint.formats.audit_json import audit_json
from footprint.formats.saved_audit import read_audit
from footprint.model.row import sum_rows
from footprint.verbs.audit.text import audit_document
from tests.examples import examples
from tests.heapjoins import Area, heap_rows, moment, process, profiled, sums

NAMES = ["", "[heap]", "[stack]", "[anon:scudo:primary]", "[anon:else]"]
SIZES = st.one_of(st.integers(0, 2000), st.integers(0, 300_000), st.integers(0, 1 << 40))
CALLS = st.lists(
    st.tuples(st.sampled_from(["/bin/program", "/lib/a.so", "/lib/libjemalloc.so.2"]), st.sampled_from("fgh"), SIZES),
    max_size=6,
)


@st.composite
def areas(draw: st.DrawFn) -> Area:
    mapped = 4 * draw(st.integers(1, 200))
    private = min(mapped, 4 * draw(st.integers(0, 200)))
    return Area(draw(st.sampled_from(NAMES)), mapped, private, draw(st.sampled_from(["rw-p", "rw-p", "r--p"])))


@given(
    st.lists(areas(), max_size=6), st.lists(st.tuples(CALLS, st.integers(0, 5000)), min_size=1, max_size=4), st.data()
)
@examples(150)
def test_the_rows_add_up_to_the_heap_that_the_kernel_counts(
    result: list[Area], moments: list[tuple[list[tuple[str, str, int]], int]], data: st.DataObject
) -> None:
    plain = process(*result)
    number = data.draw(st.integers(0, len(moments) - 1))
    usage = profiled(
        *(moment(*calls, time=time, extra_bytes=extra) for time, (calls, extra) in enumerate(moments)), at=str(number)
    )
    joined = join_heap(plain, usage, {})  # the ledger checks itself against the totals

    assert sum_rows(joined.ledger) == sum_rows(plain.ledger)
    assert sum(sums(joined).values()) == sum(sums(plain).values())
    assert all(row.bytes is not None and row.bytes >= 0 and row.mapped_bytes >= 0 for row in joined.ledger)
    account = joined.heap
    assert account is not None
    heap = sum(size_bytes or 0 for _, _, size_bytes, _ in heap_rows(plain))
    named = sum(row.bytes or 0 for row in plain.ledger if row.owner.startswith("[anon:scudo") and row.is_writable)
    kept = sum(row.bytes or 0 for row in plain.ledger if row.kind.value == "heap" and not row.is_writable)
    assert account.held_bytes == heap - kept + named
    calls, _ = moments[number]
    assert account.live_bytes == sum(size for _, _, size in calls)
    assert account.total_bytes == account.profiled_bytes + account.free_bytes + account.difference_bytes
    # Nobody has more than was profiled of him.
    asked = {(owner, function): 0 for owner, function, _ in calls}
    for owner, function, size in calls:
        asked[owner, function] += size
    for row in joined.ledger:
        if row.symbol is not None:
            assert (row.bytes or 0) <= asked[row.owner, row.symbol]

    text = audit_json(joined, "1")
    assert audit_json(read_audit(text.encode(), "saved").audit, "1") == text
    assert audit_document(joined)
