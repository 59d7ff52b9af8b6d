"""The words of a process: how its structures are laid out with 64 and with 32 bits, and how they are read."""

from typing import Final, Literal, NamedTuple, Protocol

__all__ = ("ALIGNMENT", "LAYOUTS", "HeapMemory", "Layout", "MisfitError", "ProcessWords")

ALIGNMENT: Final = 16
"""Of all blocks of malloc (MALLOC_ALIGNMENT)."""
_MOST_ADDR: Final = 1 << 63
_MOST_WORDS: Final = 1 << 25
_WORDS_A_CALL: Final = 32


class MisfitError(Exception):
    """Memory is not what malloc writes there, or changed while it was read. It never leaves this package."""


class HeapMemory(Protocol):
    """The memory of a process, as far as it is there: reading it must not bring back pages that are not."""

    def read(self, addr: int, size_bytes: int) -> bytes:
        """Return the bytes from an address on: fewer than asked for where a page behind is not in memory."""

    def skip(self, addr: int, end_addr: int) -> int:
        """Return the first address from `addr` on whose page is in memory, or `end_addr`."""


class Layout(NamedTuple):
    """The structures of malloc for one size of pointers.

    Attributes:
        code: The letter of a word for `memoryview.cast`.
        word_bytes: The size of a word.
        fastbin_count: The number of fastbins.
        bins_offsets: Where the bins of an arena are: from 2.27 on, and in 2.26.
        info_bytes: The size of `heap_info` before a thread's arena: from 2.35 on, and before.
        heap_sizes: The possible largest sizes of a heap of a thread: the usual one, and those for huge pages.
    """

    code: Literal["Q", "I"]
    word_bytes: int
    fastbin_count: int
    bins_offsets: tuple[int, ...]
    info_bytes: tuple[int, ...]
    heap_sizes: tuple[int, ...]


LAYOUTS: Final = {
    8: Layout("Q", 8, 10, (112, 104), (48, 32), (64 << 20, 8 << 20, 4 << 30)),
    4: Layout("I", 4, 11, (64, 60), (24, 16), (1 << 20, 8 << 20)),
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
