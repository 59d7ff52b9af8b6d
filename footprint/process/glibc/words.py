"""The words of a process: how its structures are laid out with 64 and with 32 bits, and how they are read."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from footprint.members import NamedTuple


class HeapRegion(NamedTuple):
    """Contiguous memory of one arena: its structures, its chunks end to end, and the rest that was never handed out.

    Of musl it is a group of slots of one size, or several groups side by side; `binned` are its free slots. In glibc a
    chunk is a block with its header. Chunks that are neither in `binned`, `fast` nor `cached` are in use.

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
        own_bytes: The part of the memory in use that the allocator has for itself: the lists of threads; with musl all
            that no block has.
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


class MappedBlock(NamedTuple):
    """A block that is mapped alone.

    Attributes:
        start_addr: The start of its mapping.
        end_addr: The end.
        usable_bytes: The room in it: what is before it, by its alignment, and its header are none.
    """

    start_addr: int
    end_addr: int
    usable_bytes: int


class LiveHeap(NamedTuple):
    """The heap of a process.

    Attributes:
        allocator: Whose it is: `glibc` or `musl`.
        header_bytes: The size of the header of each block, if it is not part of `HeapRegion.own_bytes`.
        arena_count: The number of arenas.
        regions: The memory of the arenas that could be read, ascending.
        mapped: The large blocks that the allocator maps alone.
        causes: Why something could not be read, in sentences without full stops.
        is_changing: Whether the heap changed while it was read.
    """

    allocator: str
    header_bytes: int
    arena_count: int
    regions: tuple[HeapRegion, ...]
    mapped: tuple[MappedBlock, ...]
    causes: tuple[str, ...]
    is_changing: bool


ALIGNMENT: Final = 16
"""Of all blocks of malloc (MALLOC_ALIGNMENT)."""
_MOST_ADDR: Final = 1 << 63
_MOST_WORDS: Final = 1 << 25
_WORDS_A_CALL: Final = 32


class MisfitError(Exception):
    """Memory is not what malloc writes there, or changed while it was read. It never leaves what reads memory."""


class HeapMemory(Protocol):
    """The memory of a process, as far as it is there: reading it must not bring back pages that are not."""

    def read(self, addr: int, size_bytes: int) -> bytes:
        """Return the bytes from an address on: fewer than asked for where a page behind is not in memory."""

    def skip(self, addr: int, end_addr: int) -> int:
        """Return the first address from `addr` on whose page is in memory, or `end_addr`."""


class ArenaLayout(NamedTuple):
    """Where the bins of an arena are, and the number of fastbins, which are before them."""

    bins_offset: int
    fastbin_count: int


class Layout(NamedTuple):
    """The structures of malloc for one size of pointers.

    Attributes:
        code: The letter of a word for `memoryview.cast`.
        word_bytes: The size of a word.
        arenas: The start of an arena: from 2.27 on, from 2.43 on, and in 2.26.
        info_bytes: The size of `heap_info` before a thread's arena: from 2.35 on, and before.
        heap_sizes: The possible largest sizes of a heap of a thread: the usual one, and those for huge pages.
    """

    code: Literal["Q", "I"]
    word_bytes: int
    arenas: tuple[ArenaLayout, ...]
    info_bytes: tuple[int, ...]
    heap_sizes: tuple[int, ...]


LAYOUTS: Final = {
    8: Layout(
        "Q",
        8,
        (ArenaLayout(112, 10), ArenaLayout(24, 0), ArenaLayout(104, 10)),
        (48, 32),
        (64 << 20, 8 << 20, 4 << 30),
    ),
    4: Layout("I", 4, (ArenaLayout(64, 11), ArenaLayout(16, 0), ArenaLayout(60, 11)), (24, 16), (1 << 20, 8 << 20)),
}
"""By the size of a pointer. The one of 32 bits is that of x86, where blocks are aligned to 16 bytes since 2.26."""


class ProcessWords:
    """Reads words, up to a number: memory that is made for it may lead from structure to structure without end.

    Attributes:
        memory: What is read.
        layout: The layout of the process.
        header_bytes: The size of the two words before each block: that of the chunk before, and its own with flags.
    """

    def __init__(self, memory: HeapMemory, layout: Layout) -> None:
        self.memory = memory
        self.layout = layout
        self.header_bytes = 2 * layout.word_bytes
        self._words_left = _MOST_WORDS

    def of(self, data: bytes) -> "memoryview[int]":
        """Return bytes as words, without what is left at the end."""
        word = self.layout.word_bytes
        return memoryview(data)[: len(data) // word * word].cast(self.layout.code)

    def read(self, addr: int, count: int) -> list[int]:
        """Read some words.

        Raises:
            MisfitError: If they are not in memory, or if too many were read.
        """
        self._words_left -= count + _WORDS_A_CALL
        if self._words_left < 0:
            raise MisfitError("its structures have no end")
        size_bytes = count * self.layout.word_bytes
        data = self.memory.read(addr, size_bytes) if 0 < addr < _MOST_ADDR else b""
        if len(data) < size_bytes:
            raise MisfitError(f"what is at {addr:#x} is not in memory")
        return self.of(data).tolist()

    def aligned(self, addr: int) -> int:
        """Return the first address from `addr` on at which a chunk can be, so that its block is aligned."""
        return addr + (-(addr + self.header_bytes) & ALIGNMENT - 1)
