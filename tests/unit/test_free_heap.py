"""The finding of a heap that is free but resident."""

from footprint.findings.ledger_rules.free_heap import free_heap
from footprint.findings.registry import LedgerFacts
from footprint.model.heap_account import AllocatorAccount
from footprint.model.row import Attribution, Evidence, MemoryKind, Row

MIB = 1 << 20
ACCOUNT = AllocatorAccount("glibc", 1, 100, 10 * MIB, MIB, 9 * MIB, 20 * MIB, 0, 0, 0, 8 * MIB, 5 * MIB)


def savings(**figures: int) -> list[int]:
    account = ACCOUNT._replace(**figures)  # type: ignore[arg-type] # only numbers
    return [one.saving_bytes for one in free_heap(LedgerFacts((), 4096, account))]


def test_whole_free_pages_are_what_the_process_saves() -> None:
    (finding,) = free_heap(LedgerFacts((), 4096, ACCOUNT))
    assert (finding.saving_bytes, finding.private_bytes, finding.confidence) == (5 * MIB, 8 * MIB, "medium")
    assert finding.message == "8 MiB of the heap are free but resident, 5 MiB of them in whole pages"


def row(owner: str, size_bytes: int, name: str = "[free]") -> Row:
    sizes = (size_bytes, size_bytes, 0, 1, 1, 0)
    place = Attribution.ALLOCATOR
    return Row(
        owner, MemoryKind.HEAP, None, None, name, *sizes, is_writable=True, evidence=Evidence.DERIVED, attribution=place
    )


def test_where_threads_have_arenas_the_message_says_how_much_lies_in_each() -> None:
    rows = row("[heap]", 2 * MIB), row("[malloc arenas]", 6 * MIB), row("[malloc arenas]", MIB, "[in use]")
    (finding,) = free_heap(LedgerFacts(rows, 4096, ACCOUNT))
    assert finding.message.startswith("8 MiB of the heap (6 MiB in [malloc arenas], 2 MiB in [heap]) are free")
    assert finding.subject == "[heap]"


def test_less_than_a_mebibyte_or_a_tenth_is_no_finding() -> None:
    assert savings(trimmable_bytes=2 * MIB) == [2 * MIB]
    assert savings(trimmable_bytes=2 * MIB - 4096) == []
    assert savings(trimmable_bytes=MIB, held_bytes=MIB) == [MIB]
    assert savings(trimmable_bytes=MIB - 4096, held_bytes=MIB) == []


def test_a_heap_that_was_not_read_has_no_finding() -> None:
    assert free_heap(LedgerFacts((), 4096)) == ()


def test_a_jvm_is_asked_to_trim_by_its_own_command() -> None:
    (finding,) = free_heap(LedgerFacts((row("/opt/jdk/lib/server/libjvm.so", MIB),), 4096, ACCOUNT))
    assert finding.remedy == "let the JVM call malloc_trim(0): `jcmd PID System.trim_native_heap`"
