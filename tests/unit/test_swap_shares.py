"""Swapped pages that relatives have, too: each counts once, whatever was read; the expected figures by hand."""

import pytest

from footprint.attribution.families import process_classes
from footprint.attribution.group import group_up
from footprint.attribution.process_audit import audit_snapshot
from footprint.errors import InputError
from footprint.model.audit import Audit
from footprint.process.capture import _runs, _swap_entries
from footprint.process.pages import PageRange
from footprint.process.snapshot import Snapshot
from tests.groupmembers import HEAP, KIB, NoFiles, block, member

START = 0x55550000


def worker(
    pid: int, *, parent: int | None = None, entries: range = range(0), swap: int = 64, share: int = 16
) -> tuple[Snapshot, Audit]:
    """Return a process with 8 KiB of its own and swapped memory of which it has a share."""
    heap = block(HEAP, Rss=8, Anonymous=8, Private_Dirty=8, Swap=swap, SwapPss=share)
    snapshot, _ = member(pid, heap, pss_anon=8)
    assert snapshot.status is not None
    snapshot = snapshot._replace(
        pages={START: (PageRange(START, START + 8 * KIB),)},
        shared_swap=frozenset(entries),
        status=snapshot.status._replace(parent_pid=parent),
    )
    return snapshot, audit_snapshot(snapshot, {}, NoFiles(), target=str(pid))


def test_of_swapped_pages_that_relatives_have_too_a_process_has_its_share_with_and_without_page_bits() -> None:
    snapshot, live = worker(1)
    text = audit_snapshot(snapshot._replace(pages=None), {}, NoFiles(), target="1")
    for audit in (live, text):
        assert (audit.totals.private.bytes, audit.totals.private.evidence) == (24 * KIB, "estimated")
        assert audit.totals.of_which.swapped_bytes == 16 * KIB
        assert sum(row.bytes or 0 for row in audit.ledger if row.kind.value != "kernel") == 24 * KIB


def test_four_relatives_that_share_all_of_it_have_it_once_together() -> None:
    members = [worker(pid, entries=range(100, 116)) for pid in (1, 2, 3, 4)]
    assert group_up(members).totals.private.bytes == 4 * 8 * KIB + 64 * KIB


def test_one_more_worker_does_not_pay_for_what_its_relatives_have_swapped_out_too() -> None:
    # Of 16 pages, each worker has four for itself, and twelve with all others: 4 + 12 / 4 pages are its share.
    shared = range(100, 112)
    members = [
        worker(pid, parent=1 if pid > 1 else None, share=28, entries=range(200 + 4 * pid, 204 + 4 * pid))
        for pid in (1, 2, 3, 4)
    ]
    members = [
        (snapshot._replace(shared_swap=snapshot.shared_swap | set(shared)), audit) for snapshot, audit in members
    ]
    workers, *_ = process_classes(members)
    private = next(term.size_bytes for term in workers.terms if term.name == "private memory")
    assert (len(workers.pids), private) == (3, 8 * KIB + 16 * KIB)


def test_where_nobody_may_read_the_entries_the_share_counts() -> None:
    workers, *_ = process_classes([worker(pid, parent=1 if pid > 1 else None) for pid in (1, 2, 3)])
    assert next(term.size_bytes for term in workers.terms if term.name == "private memory") == 24 * KIB


def test_entries_are_written_as_runs_and_read_again() -> None:
    entries = frozenset({0x10, 0x11, 0x12, 0xFFFF00, 0xFFFF02})
    text = b"".join(b"%x %x\n" % run for run in _runs(sorted(entries)))
    assert text == b"10 3\nffff00 1\nffff02 1\n"
    assert _swap_entries(text, "x.capture") == entries


@pytest.mark.parametrize("text", [b"10\n", b"10 ffffff\n" * 2, b"-1 2\n", b"10 3 x\n"])
def test_runs_that_are_damaged_or_of_more_than_4_gib_are_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        _swap_entries(text, "x.capture")
