"""Rule `free-heap`: whole pages of the heap that the program has freed, and that stay in its private memory.

The allocator keeps what is freed for later requests. It gives back the end of the heap only; one call of malloc_trim(3)
gives back the pages between blocks, too.
"""

from typing import Final

from footprint.findings.registry import Fact, LedgerFacts, Rule
from footprint.model.finding import Confidence, Finding
from footprint.units import format_bytes

__all__ = ("RULE", "free_heap")

_LEAST_BYTES: Final = 1 << 20
_LEAST_SHARE: Final = 10  # a tenth of what is free and in use
_REMEDY: Final = "call malloc_trim(0) when much was freed, or free what was allocated last first"


def free_heap(ledger: LedgerFacts) -> tuple[Finding, ...]:
    """Find a heap of which much is free in whole pages, in private memory."""
    account = ledger.allocator
    if account is None or account.trimmable_bytes < max(_LEAST_BYTES, account.held_bytes // _LEAST_SHARE):
        return ()
    free, trimmable = format_bytes(account.free_private_bytes), format_bytes(account.trimmable_bytes)
    reasons = (
        f"{account.allocator}'s own lists say what is free, page bits that it is private",
        "what the program needs again it has to touch again: measure whether that happens at once",
    )
    return (
        Finding(
            RULE.name,
            "heap",
            "[heap]",
            f"{free} of the heap are free but resident, {trimmable} of them in whole pages",
            account.trimmable_bytes,
            Confidence.MEDIUM,
            reasons,
            _REMEDY,
            private_bytes=account.free_private_bytes,
        ),
    )


RULE: Final = Rule("free-heap", "Memory of the heap that is free but resident", (Fact.LEDGER,), free_heap)
