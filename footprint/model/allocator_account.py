"""The heap of a process as its own allocator accounts for it."""

from typing import NamedTuple

__all__ = ("AllocatorAccount",)


class AllocatorAccount(NamedTuple):
    """The heap of a live process, read from the structures of its allocator in its memory.

    Sizes are of addresses, touched or not, except where they say `private`. `held_bytes` are `live_bytes`,
    `overhead_bytes` and `free_bytes` together.

    Attributes:
        allocator: Whose structures were read: `glibc`.
        arena_count: How many arenas it has.
        live_block_count: The number of blocks that the program has.
        live_bytes: The room in these blocks: what malloc_usable_size(3) returns of them. It is what the program asked
            for, rounded up to sizes that the allocator has.
        overhead_bytes: What the allocator has for itself: a header before each block, and its structures.
        free_bytes: What it has from the kernel and the program does not use.
        held_bytes: What it has from the kernel.
        cached_bytes: The part of `free_bytes` in blocks that threads or fastbins keep for requests of the same size.
            mallinfo2(3) counts those of threads as in use.
        mapped_block_count: The number of large blocks that it maps alone; they are live.
        mapped_block_bytes: The size of their mappings, as part of `held_bytes`.
        free_private_bytes: The part of `free_bytes` that is in private memory: the rows `[free]` of the ledger.
        trimmable_bytes: The private memory in whole free pages that malloc_trim(3) returns to the kernel.
        unread: What could not be read and why, in sentences: that memory is in no figure of the account.
    """

    allocator: str
    arena_count: int
    live_block_count: int
    live_bytes: int
    overhead_bytes: int
    free_bytes: int
    held_bytes: int
    cached_bytes: int
    mapped_block_count: int
    mapped_block_bytes: int
    free_private_bytes: int
    trimmable_bytes: int
    unread: tuple[str, ...] = ()
