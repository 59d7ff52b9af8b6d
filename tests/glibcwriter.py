"""The memory of a process with a heap of glibc, written as malloc writes it (malloc/malloc.c, malloc/arena.c)."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ("DATA", "HEAP", "PAGE", "THREAD", "Chunk", "HeapWriter", "Pages")

PAGE = 4096
DATA = 0x7F1000000000
"""Of the C library: `mp_`, then `main_arena`."""
HEAP = 0x555500000000
THREAD = 0x7F0008000000
"""The first heap of the arena of a thread."""
_DATA_32, _HEAP_32, _THREAD_32 = 0xF7000000, 0x56000000, 0xF4100000


class Chunk(NamedTuple):
    """A chunk: its size with the header, and who has it: `used`, `binned`, `fast` or `cached`."""

    size: int
    state: str = "used"


class Pages:
    """The pages that are in memory."""

    def __init__(self) -> None:
        self.pages: dict[int, bytearray] = {}
        self.read_bytes = 0
        self.read_count = 0
        self.skipped: list[tuple[int, int]] = []

    def write(self, addr: int, data: bytes) -> None:
        for offset, byte in enumerate(data):
            page = self.pages.setdefault((addr + offset) // PAGE, bytearray(PAGE))
            page[(addr + offset) % PAGE] = byte

    def touch(self, start: int, end: int) -> None:
        for page in range(start // PAGE, -(-end // PAGE)):
            self.pages.setdefault(page, bytearray(PAGE))

    def read(self, addr: int, size_bytes: int) -> bytes:
        found = bytearray()
        number = addr // PAGE
        while len(found) < size_bytes + addr % PAGE and number in self.pages:
            found += self.pages[number]
            number += 1
        data = bytes(found[addr % PAGE : addr % PAGE + size_bytes])
        self.read_bytes += len(data)
        self.read_count += 1
        return data

    def skip(self, addr: int, end_addr: int) -> int:
        self.skipped.append((addr, end_addr))
        there = [page * PAGE for page in self.pages if addr < (page + 1) * PAGE and page * PAGE < end_addr]
        return max(addr, min(there)) if there else end_addr


class HeapWriter:
    """Writes the structures of malloc.

    Args:
        word: The size of a pointer.
        bins_offset: Where the bins of an arena are; None for those of glibc 2.27 and later.
        info_bytes: The size of `heap_info`; None for that of glibc 2.35 and later.
        is_linked_safely: Whether addresses in lists are mixed with their places, as from 2.32 on.
    """

    def __init__(
        self,
        word: int = 8,
        *,
        bins_offset: int | None = None,
        info_bytes: int | None = None,
        is_linked_safely: bool = True,
    ) -> None:
        self.word = word
        self.memory = Pages()
        is_64 = word == 8
        self.bins_offset = bins_offset or (112 if is_64 else 64)
        self.info_bytes = info_bytes or (48 if is_64 else 24)
        self.is_linked_safely = is_linked_safely
        self.data_addr = DATA if is_64 else _DATA_32
        self.heap_addr = HEAP if is_64 else _HEAP_32
        self.thread_addr = THREAD if is_64 else _THREAD_32
        self.main_addr = self.data_addr + 256
        self.arena_bytes = self.bins_offset + 259 * word + 16
        self.data = [(self.data_addr, self.data_addr + PAGE)]
        self.fastbins: dict[int, list[int]] = {}
        self.tcache: dict[int, list[int]] = {}

    def words(self, addr: int, *values: int) -> None:
        self.memory.write(addr, struct.pack(f"={len(values)}{'Q' if self.word == 8 else 'I'}", *values))

    def arena(self, addr: int, top: int, system_bytes: int, next_addr: int, fastbins: dict[int, list[int]]) -> None:
        """Write an arena with empty bins: the walk of the chunks needs no bin."""
        word, bins = self.word, addr + self.bins_offset
        fastbin_count = 0 if self.bins_offset < 32 else 10 if word == 8 else 11
        firsts = [fastbins.get((place + 2) * 2 * word, [0])[0] for place in range(fastbin_count)]
        self.words(bins - (fastbin_count + 2) * word, *firsts, top, 0)
        for place in range(127):
            self.words(bins + 2 * place * word, *[bins + (2 * place - 2) * word] * 2)
        self.words(bins + 254 * word + 16, next_addr, 0, 1, system_bytes, system_bytes)

    def parameters(self, mapped_count: int = 0, mapped_bytes: int = 0, *, is_padded: bool = True) -> None:
        """Write the end of `mp_`: the counts of blocks that are mapped alone, and the start of the heap."""
        at = self.data_addr + 64
        self.words(at, mapped_bytes, mapped_bytes, self.heap_addr)
        gap = 4 if is_padded and self.word == 8 else 0
        self.memory.write(at - gap - 16, struct.pack("=4i", mapped_count, 65536, mapped_count, 0))

    def chunks(self, first: int, chunks: Sequence[Chunk], *, is_thread: bool) -> int:
        """Write chunks end to end; return where they end."""
        at, is_before_in_use, size_before = first, True, 0
        for size, state in chunks:
            flags = is_before_in_use | (4 if is_thread and state != "binned" else 0)
            self.words(at, 0 if is_before_in_use else size_before, size | flags)
            lists = {"fast": self.fastbins, "cached": self.tcache}.get(state)
            if lists is not None:
                lists.setdefault(size, []).append(at)
            is_before_in_use, size_before = state != "binned", size
            self.memory.touch(at, at + size)
            at += size
        return at

    def link(self) -> None:
        """Link the chunks of lists."""
        header = 2 * self.word
        for lists, lead in ((self.fastbins, 0), (self.tcache, header)):
            for chunks in lists.values():
                for at, after in zip(chunks, [*(chunk + lead for chunk in chunks[1:]), 0], strict=True):
                    place = at + header
                    self.words(place, (place >> 12) ^ after if self.is_linked_safely else after)

    def main_heap(
        self, *chunks: Chunk, top_bytes: int = 0, next_addr: int = 0, has_tcache: bool = True, count_bytes: int = 2
    ) -> tuple[int, int]:
        """Write the heap of brk with its arena; return its first chunk and its end.

        The lists of the first thread are the first chunk, if it has any. The rest is as long as the last page needs.
        """
        word = self.word
        first = self.heap_addr + (0 if word == 8 else 8)
        size = 64 * (count_bytes + word) + word + 15 & -16
        own = [Chunk(size)] if has_tcache else []
        top = self.chunks(first, [*own, *chunks], is_thread=False)
        end = -(-(top + 4 * word + top_bytes) // PAGE) * PAGE
        self.words(top, 0, end - top | 1)
        if has_tcache:
            sizes = [4 * word + 16 * place for place in range(64)]
            counts = b"".join([len(self.tcache.get(one, ())).to_bytes(count_bytes, "little") for one in sizes])
            self.memory.write(first + 2 * word, counts)
            heads = [self.tcache[one][0] + 2 * word if one in self.tcache else 0 for one in sizes]
            self.words(first + 2 * word + len(counts), *heads)
        self.arena(self.main_addr, top, end - self.heap_addr, next_addr or self.main_addr, self.fastbins)
        self.parameters()
        self.link()
        return first, end

    def thread_heaps(self, *heaps: Iterable[Chunk], next_addr: int = 0) -> int:
        """Write the heaps of the arena of a thread, each full but the last; return the arena."""
        word, step = self.word, (64 << 20) if self.word == 8 else (1 << 20)
        arena_addr, before, total_bytes, top = self.thread_addr + self.info_bytes, 0, 0, 0
        for number, chunks in enumerate(heaps):
            start = self.thread_addr + number * step
            first = start + self.info_bytes + (self.arena_bytes if number == 0 else 0)
            first += -(first + 2 * word) & 15
            top = self.chunks(first, list(chunks), is_thread=True)
            end = -(-(top + 4 * word + 16) // PAGE) * PAGE
            if number < len(heaps) - 1:
                # What is left is a free chunk, then two without contents.
                fence = end - (32 if word == 8 else 24)
                if fence - top >= 4 * word:
                    self.words(top, 0, fence - top | 1)
                    self.words(fence, fence - top, 2 * word)
                else:
                    fence = top
                    self.words(fence, 0, 2 * word | 1)
                self.words(end - 16, 0, 1)
            else:
                self.words(top, 0, end - top | 1)
            self.words(start, arena_addr, before, end - start)
            before, total_bytes = start, total_bytes + end - start
        self.arena(arena_addr, top, total_bytes, next_addr or self.main_addr, {})
        return arena_addr

    def mapped_block(self, addr: int, size_bytes: int, alignment: int = 16, *, has_rest: bool = False) -> int:
        """Write the headers of a block that is mapped alone; return the room in it.

        With `has_rest`, two words are behind it, as from 2.43 on.
        """
        header_bytes = 2 * self.word
        header, end = addr + 16 - header_bytes, addr + size_bytes - (header_bytes if has_rest else 0)
        self.words(header, header - addr, end - header | 2)
        if alignment > 16:
            moved = -(-(header + header_bytes) // alignment) * alignment - header_bytes
            self.words(moved, moved - addr, end - moved | 2)
            header = moved
        return end - header - (self.word if has_rest else header_bytes)

    def lists_of_ranges(self, chunk: int, blocks: dict[int, int]) -> None:
        """Write the lists of a thread as from 2.42 on: room for 16 blocks in each, and one block in some of them."""
        counts = struct.pack("=76H", *[16 - (place in blocks) for place in range(76)])
        self.memory.write(chunk + 2 * self.word, counts)
        self.words(chunk + 2 * self.word + len(counts), *[blocks.get(place, 0) for place in range(76)])
        for block in blocks.values():
            self.words(block, block >> 12)
