"""The thread-local blocks of glibc's threads, found in the memory of a process.

A thread's control block begins with a pointer to itself, its vector of blocks (dtv), and a second pointer to itself; it
lies above the blocks of the libraries that the program started with. The vector has the address of each block by the
number of its module. The loader keeps that number of each object: numbers are used again when an object is closed.

Source: include/link.h (struct link_map), sysdeps/x86_64/nptl/tls.h and sysdeps/i386/nptl/tls.h (tcbhead_t),
sysdeps/generic/dl-dtv.h, elf/dl-tls.c of glibc 2.26 to 2.43; ELF Handling For Thread-Local Storage, variant II.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import compress
from operator import eq
from typing import Final

from footprint.members import NamedTuple
from footprint.process.glibc.words import LAYOUTS, HeapMemory, MisfitError, ProcessWords

_TCB_ALIGNMENT: Final = 64
_MOST_MODULES: Final = 1 << 12
_MOST_BLOCKS: Final = 1 << 20  # of all threads
_MOST_OBJECTS: Final = 1 << 14
_MOST_HEADERS: Final = 1 << 10
_ENTRY_WORDS: Final = 192
_AT_PHDR, _AT_PHENT, _AT_PHNUM = 3, 4, 5
_PT_DYNAMIC, _PT_PHDR, _DT_NULL, _DT_DEBUG = 2, 6, 0, 21


class ThreadVector(NamedTuple):
    """The blocks of one thread.

    Attributes:
        tcb_addr: The address of its control block.
        block_addrs: The address of the block of each module, the first module first; None for one that is not part of
            the block that a thread gets at its start.
    """

    tcb_addr: int
    block_addrs: tuple[int | None, ...]


class LinkEntry(NamedTuple):
    """What the loader keeps of an object: the begin of its `struct link_map`.

    Attributes:
        section_addr: The address of its dynamic section; in a static program that of the program headers.
        words: The words of the structure, and what lies behind it; none in a static program.
    """

    section_addr: int
    words: tuple[int, ...] = ()

    def module_number(self, vaddr: int, file_bytes: int, memory_bytes: int, align: int) -> int | None:
        """Return the number of the module with these thread-local variables (PT_TLS), from 1; None where it is unknown.

        The place of the fields differs by the version of glibc, their order does not: the address of the first
        contents, their size, the size of the block, its alignment, two offsets, the number.
        """
        if not self.words:
            return 1
        sought = (self.words[0] + vaddr, file_bytes, memory_bytes, align)
        for place in range(4, len(self.words) - 6):
            if self.words[place] == sought[0] and self.words[place : place + 4] == sought:
                return self.words[place + 6] or None
        return None


def thread_vectors(memory: HeapMemory, word_bytes: int, places: Iterable[tuple[int, int]]) -> Iterator[ThreadVector]:
    """Find the control blocks in some places, and read the vector of each, up to a number of blocks."""
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    step, left = _TCB_ALIGNMENT // word_bytes, _MOST_BLOCKS
    for start_addr, data in (piece for place in places for piece in _present(memory, *place)):
        numbers = words.of(data)
        first, past = -start_addr % _TCB_ALIGNMENT // word_bytes, len(numbers) - 2
        addrs = range(start_addr + first * word_bytes, start_addr + past * word_bytes, _TCB_ALIGNMENT)
        # Python runs a step only for the words that hold their own address.
        for addr in compress(addrs, map(eq, numbers[first:past:step], addrs)):
            place = (addr - start_addr) // word_bytes
            if numbers[place + 2] == addr:
                with suppress(MisfitError):
                    blocks = _block_addrs(words, addr, numbers[place + 1])
                    left -= len(blocks)
                    if left < 0:
                        return
                    yield ThreadVector(addr, blocks)


def _present(memory: HeapMemory, start_addr: int, end_addr: int) -> Iterator[tuple[int, bytes]]:
    """Yield what is in memory of a place, with its address."""
    at = memory.skip(-(-start_addr // _TCB_ALIGNMENT) * _TCB_ALIGNMENT, end_addr)
    while at < end_addr and (data := memory.read(at, end_addr - at)):
        yield at, data
        at = memory.skip(at + len(data), end_addr)


def _block_addrs(words: ProcessWords, tcb_addr: int, vector_addr: int) -> tuple[int | None, ...]:
    word_bytes = words.layout.word_bytes
    # The entry before the first one has the number of entries, the first one the generation.
    (count,) = words.read(vector_addr - 2 * word_bytes, 1)
    if not 0 < count <= _MOST_MODULES:
        raise MisfitError(f"a vector of {count} blocks")
    entries = words.read(vector_addr + 2 * word_bytes, 2 * count)
    # A block that was allocated later has an address to free. One that was never used has the address -1.
    return tuple(
        [
            addr if not to_free and 0 < addr < tcb_addr else None
            for addr, to_free in zip(entries[::2], entries[1::2], strict=True)
        ]
    )


def loader_entries(memory: HeapMemory, word_bytes: int, auxiliary: bytes) -> tuple[LinkEntry, ...]:
    """Return the list of the loader: its entry of each object, in load order.

    Args:
        memory: The memory of the process.
        word_bytes: The size of a pointer.
        auxiliary: The auxiliary vector, as in `/proc/PID/auxv`; it leads to the list of the loader (`r_debug`).

    Returns:
        For a static program, and where the list cannot be read, the program alone.
    """
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    pairs = words.of(auxiliary).tolist()
    values = dict(zip(pairs[::2], pairs[1::2], strict=False))
    headers_addr = values.get(_AT_PHDR, 0)
    try:
        dynamic_addr = _dynamic_addr(words, headers_addr, values.get(_AT_PHENT, 0), values.get(_AT_PHNUM, 0))
        debug_addr = _debug_addr(words, dynamic_addr) if dynamic_addr else 0
        # struct r_debug: version, and the first struct link_map: l_addr, l_name, l_ld, l_next.
        entry_addr = words.read(debug_addr + word_bytes, 1)[0] if debug_addr else 0
        entries: list[LinkEntry] = []
        while entry_addr and len(entries) < _MOST_OBJECTS:
            _, _, section_addr, next_addr = words.read(entry_addr, 4)
            entries.append(LinkEntry(section_addr, tuple(words.of(memory.read(entry_addr, _ENTRY_WORDS * word_bytes)))))
            entry_addr = next_addr
    except MisfitError:
        entries = []
    # The program comes first in any case.
    return tuple(entries) or (LinkEntry(headers_addr),)


def _dynamic_addr(words: ProcessWords, headers_addr: int, size_bytes: int, count: int) -> int:
    """Return the address of the program's dynamic section; 0 where it has none."""
    is_64 = words.layout.word_bytes == 8
    if size_bytes != (56 if is_64 else 32) or not 0 < count <= _MOST_HEADERS:
        raise MisfitError(f"{count} program headers of {size_bytes} bytes")
    header_words = size_bytes // words.layout.word_bytes
    headers = words.read(headers_addr, header_words * count)
    bias_addr = vaddr = 0
    for place in range(0, len(headers), header_words):
        # 64 bits: type and flags in one word, offset, vaddr. 32 bits: type, offset, vaddr.
        kind = headers[place] & 0xFFFFFFFF
        if kind == _PT_PHDR:
            bias_addr = headers_addr - headers[place + 2]
        elif kind == _PT_DYNAMIC:
            vaddr = headers[place + 2]
    return bias_addr + vaddr if vaddr else 0


def _debug_addr(words: ProcessWords, dynamic_addr: int) -> int:
    """Return the value of DT_DEBUG; 0 where there is none."""
    for at in range(_MOST_HEADERS):
        tag, value = words.read(dynamic_addr + 2 * at * words.layout.word_bytes, 2)
        if tag == _DT_NULL:
            break
        if tag == _DT_DEBUG:
            return value
    return 0
