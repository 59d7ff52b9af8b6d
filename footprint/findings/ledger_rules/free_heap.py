"""Rule `free-heap`: whole pages of the heap that the program has freed, and that stay in its private memory.

The allocator keeps what is freed for later requests. It gives back the end of the heap only; one call of malloc_trim(3)
gives back the pages between blocks, too.
"""

from typing import Final

from footprint.findings.registry import Fact, LedgerFacts, Rule
from footprint.model.finding import Confidence, Finding
from footprint.text.units import format_bytes

_LEAST_BYTES: Final = 1 << 20
_LEAST_SHARE: Final = 10  # a tenth of what is free and in use
_REMEDY: Final = "call malloc_trim(0) when much was freed, or free what was allocated last first"
# JDK 18, and 17.0.9: the command calls malloc_trim(0).
_JAVA_REMEDY: Final = "let the JVM call malloc_trim(0): `jcmd PID System.trim_native_heap`"
_JVM: Final = "libjvm.so"


def free_heap(ledger: LedgerFacts) -> tuple[Finding, ...]:
    """Find a heap of which much is free in whole pages, in private memory."""
    account = ledger.allocator
    if account is None or account.trimmable_bytes < max(_LEAST_BYTES, account.held_bytes // _LEAST_SHARE):
        return ()
    from footprint.attribution.live_ranges import FREE, HEAP  # noqa: PLC0415 # it was needed for the account

    free, trimmable = format_bytes(account.free_private_bytes), format_bytes(account.trimmable_bytes)
    by_owner: dict[str, int] = {}
    for row in ledger.rows:
        if row.name == FREE:
            by_owner[row.owner] = by_owner.get(row.owner, 0) + (row.bytes or 0)
    # Arenas of threads are owners of their own.
    places = sorted(by_owner.items(), key=lambda item: -item[1]) if len(by_owner) > 1 or HEAP not in by_owner else ()
    where = ", ".join([f"{format_bytes(size)} in {owner}" for owner, size in places])
    reasons = (
        f"{account.allocator}'s own lists say what is free, page bits that it is private",
        "what the program needs again it has to touch again: measure whether that happens at once",
    )
    return (
        Finding(
            RULE.name,
            "heap",
            HEAP,
            f"{free} of the heap{where and f' ({where})'} are free but resident, {trimmable} of them in whole pages",
            account.trimmable_bytes,
            Confidence.MEDIUM,
            reasons,
            _JAVA_REMEDY if any(row.owner.endswith(_JVM) for row in ledger.rows) else _REMEDY,
            private_bytes=account.free_private_bytes,
        ),
    )


RULE: Final = Rule("free-heap", "Memory of the heap that is free but resident", (Fact.LEDGER,), free_heap)
