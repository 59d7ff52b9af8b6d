"""The finding of a heap that is free but resident."""

from footprint.findings.ledger_rules.free_heap import free_heap
from footprint.findings.registry import LedgerFacts
from footprint.model.allocator_account import AllocatorAccount

MIB = 1 << 20
ACCOUNT = AllocatorAccount("glibc", 1, 100, 10 * MIB, MIB, 9 * MIB, 20 * MIB, 0, 0, 0, 8 * MIB, 5 * MIB)


def savings(**figures: int) -> list[int]:
    account = ACCOUNT._replace(**figures)  # type: ignore[arg-type] # only numbers
    return [one.saving_bytes for one in free_heap(LedgerFacts((), 4096, account))]


def test_whole_free_pages_are_what_the_process_saves() -> None:
    (finding,) = free_heap(LedgerFacts((), 4096, ACCOUNT))
    assert (finding.saving_bytes, finding.private_bytes, finding.confidence) == (5 * MIB, 8 * MIB, "medium")
    assert finding.message == "8 MiB of the heap are free but resident, 5 MiB of them in whole pages"


def test_less_than_a_mebibyte_or_a_tenth_is_no_finding() -> None:
    assert savings(trimmable_bytes=2 * MIB) == [2 * MIB]
    assert savings(trimmable_bytes=2 * MIB - 4096) == []
    assert savings(trimmable_bytes=MIB, held_bytes=MIB) == [MIB]
    assert savings(trimmable_bytes=MIB - 4096, held_bytes=MIB) == []


def test_a_heap_that_was_not_read_has_no_finding() -> None:
    assert free_heap(LedgerFacts((), 4096)) == ()
