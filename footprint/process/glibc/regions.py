"""What is known of a part of the heap that lies in one piece."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ("HeapRegion",)


class HeapRegion(NamedTuple):
    """Contiguous memory of one arena: its structures, its chunks end to end, and the rest that was never handed out.

    A chunk is a block with its header. Chunks that are neither in `binned`, `fast` nor `cached` are in use.

    Attributes:
        start_addr: The first address.
        first_addr: The first chunk; what is before it are structures of the arena.
        top_addr: The end of the chunks. What is behind it is free, or closes a heap that another one follows.
        end_addr: The end.
        is_main: Whether it is the heap that brk(2) makes.
        is_last: Whether what is behind `top_addr` is free.
        binned: The free chunks in bins, ascending: start and end of each in turn.
        fast: The free chunks in fastbins, which keep blocks of one size, in the same form.
        cached: The free chunks that threads keep in such lists (tcache), in the same form.
        own_bytes: The part of the chunks in use that the allocator has for itself: the lists of threads.
        live_count: The number of blocks that the program has.
    """

    start_addr: int
    first_addr: int
    top_addr: int
    end_addr: int
    is_main: bool
    is_last: bool
    binned: Sequence[int]
    fast: Sequence[int]
    cached: Sequence[int]
    own_bytes: int
    live_count: int
