"""The heap of a process as its allocator has it, as a report shows it."""

from footprint.formats.document import Block, Facts, Heading
from footprint.model.allocator_account import AllocatorAccount
from footprint.units import counted, format_bytes

__all__ = ("allocator_blocks",)


def allocator_blocks(account: AllocatorAccount) -> list[Block]:
    """Write how much of the heap is in use, and how much is free but resident."""
    if not account.held_bytes:
        return []
    arenas = counted(account.arena_count, "arena")
    mapped = format_bytes(account.mapped_block_bytes)
    alone = f"; {mapped} in {counted(account.mapped_block_count, 'block')} of their own"
    facts = [
        (
            "in use",
            account.live_bytes,
            f"{counted(account.live_block_count, 'block')}, touched or not"
            + (alone if account.mapped_block_count else ""),
        ),
        ("headers, structures", account.overhead_bytes, arenas),
        ("free", account.free_bytes, "touched or not"),
        ("  kept for the next request", account.cached_bytes, "of the same size, by threads and fastbins"),
        ("  in private memory", account.free_private_bytes, "free but resident"),
        ("    whole pages", account.trimmable_bytes, "malloc_trim(0) returns them to the kernel"),
    ]
    rows = tuple((label, format_bytes(size_bytes), remark) for label, size_bytes, remark in facts)
    part = ", as far as it could be read" if account.unread else ""
    heading = f"The heap as {account.allocator} has it, {format_bytes(account.held_bytes)}{part}"
    return [Heading(heading), Facts(rows)]
