"""The memory of a live process: the structures of its heap, and where each thread has the blocks of the libraries.

A control block of a thread of glibc begins with a pointer to itself, its vector of blocks (dtv), and a second pointer
to itself; it lies above the blocks of the libraries that the program started with. The vector has the address of each
block by the number of its module. The loader keeps that number of each object: numbers are used again when an object is
closed.

Source: include/link.h (struct link_map), sysdeps/x86_64/nptl/tls.h and sysdeps/i386/nptl/tls.h (tcbhead_t),
sysdeps/generic/dl-dtv.h, elf/dl-tls.c of glibc 2.26 to 2.43; ELF Handling For Thread-Local Storage, variant II.
"""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, count, islice, zip_longest
from operator import add, itemgetter
from typing import Final

from footprint.errors import AccessError, Note
from footprint.members import NamedTuple, lazy_pattern
from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.glibc.words import LAYOUTS, HeapMemory, LiveHeap, MisfitError, ProcessWords
from footprint.process.mappings import Mapping, word_bytes_of
from footprint.process.pages import ProcessMemory
from footprint.process.snapshot import Snapshot, process_folder, read_whole

MOST_CHUNKS: Final = 2 << 20
"""A heap with more is not read to its end: a million chunks take up to a second."""
MOST_CHUNKS_OF_A_SEARCH: Final = 64 << 20
"""The same where time matters less."""
_LIBC: Final = re.compile(r"/libc(?:\.so\.6|-2\.[0-9]+\.so)(?: \(deleted\))?$")
_MUSL: Final = lazy_pattern(r"/ld-musl-[^/]*$|linux-musl[^/]*/libc\.so(?: \(deleted\))?$")
_OTHERS: Final = re.compile(r"/lib(jemalloc|mimalloc|tcmalloc|scudo|hoard|snmalloc|rpmalloc)[^/]*$")
_OTHER_ALLOCATOR: Final = " allocates for it, whose structures are not read: how much of its memory is free is unknown"
# The start of a static program of glibc has a page or two of brk(2) for its thread, without malloc.
_LEAST_HEAP_BYTES: Final = 64 << 10
_NAMED: Final = "[anon: glibc: malloc"  # glibc 2.39 with glibc.mem.decorate_maps


def read_live_heap(snapshot: Snapshot, most_chunks: int = MOST_CHUNKS) -> tuple[LiveHeap | None, tuple[Note, ...]]:
    """Read the heap of a live process, and what could not be read of it.

    Args:
        snapshot: The process.
        most_chunks: The number of chunks that are read at most.
    """
    mappings, source = snapshot.memory.mappings, snapshot.source
    if not snapshot.is_live or snapshot.pid is None or snapshot.pages is None:
        return None, ()
    other = next(filter(None, map(_other_allocator, mappings)), None)
    if other is not None:
        return None, (other_allocator_note(other, source),)
    try:
        with process_folder(snapshot.pid) as folder, ProcessMemory(folder, snapshot.page_bytes) as memory:
            word_bytes = word_bytes_of(mappings)
            heap = None
            if not any(mapping.permissions[2] == "x" and _LIBC.search(mapping.name) for mapping in mappings):
                from footprint.process.mallocng import read_musl_heap  # noqa: PLC0415 # few programs have musl

                heap = read_musl_heap(memory, word_bytes, _data(mappings, _MUSL), most_blocks=most_chunks)
            heap = heap or read_glibc_heap(
                memory,
                word_bytes,
                _data(mappings, _LIBC),
                [(mapping.start_addr, mapping.end_addr) for mapping in mappings if _may_be_blocks(mapping)],
                brk=[(mapping.start_addr, mapping.end_addr) for mapping in mappings if mapping.name == "[heap]"],
                page_bytes=snapshot.page_bytes,
                most_chunks=most_chunks,
            )
    except (AccessError, OSError) as error:
        cause = "only a debugger may read it (root, CAP_SYS_PTRACE, ptrace_scope)"
        cause = cause if isinstance(error, PermissionError) else str(error)
        return None, (Note("allocator-unread", source, f"how much of its heap is free is unknown: {cause}"),)
    return heap, _notes(heap, snapshot)


def other_allocator_note(name: str, source: str) -> Note:
    """Return the note on an allocator whose structures are not read."""
    return Note("allocator-unread", source, f"{name}{_OTHER_ALLOCATOR}")


def other_allocator(notes: Iterable[Note]) -> str | None:
    """Return the name in the note on an allocator whose structures are not read; None without one."""
    return next((note.detail.removesuffix(_OTHER_ALLOCATOR) for note in notes if _is_of_other(note)), None)


def _is_of_other(note: Note) -> bool:
    return note.slug == "allocator-unread" and note.detail.endswith(_OTHER_ALLOCATOR)


def has_unread_break(mappings: Iterable[Mapping], read_bytes: int = 0) -> bool:
    """Return whether the heap of brk(2) is larger than what an allocator has that was read."""
    writable = [mapping.size_bytes for mapping in mappings if mapping.name == "[heap]" and mapping.is_mapped_writable]
    return sum(writable) > read_bytes + _LEAST_HEAP_BYTES


def _notes(heap: LiveHeap | None, snapshot: Snapshot) -> tuple[Note, ...]:
    """Return notes on what is unknown, if the process has a heap of glibc."""
    source = snapshot.source
    if heap is None:
        mappings = snapshot.memory.mappings
        has_musl = any(_MUSL.search(mapping.name) for mapping in mappings)
        library = "musl's malloc does not look as it does" if has_musl else "its allocator does not look like glibc's"
        versions = "from 1.2.1 on" if has_musl else "from 2.26 to 2.43, nor like musl's from 1.2.1 on"
        detail = f"how much of its heap is free is unknown: {library} {versions}"
        is_expected = has_musl or has_unread_break(mappings)
        return (Note("allocator-unread", source, detail),) if is_expected else ()
    notes = [
        Note("allocator-unread", source, f"a part of its heap could not be read: {cause}") for cause in heap.causes
    ]
    if heap.is_changing:
        detail = (
            "its heap changed while it was read: what is free is that of some moments; stop it for an exact picture"
        )
        notes.append(Note("changed-while-read", source, detail))
    return tuple(notes)


def _data(mappings: tuple[Mapping, ...], library: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Return the writable data of the C library with its `.bss`, or of all objects where the program contains it."""
    of_library = any(library.search(mapping.name) for mapping in mappings)
    code = {mapping.name for mapping in mappings if mapping.permissions[2] == "x"}
    past = 0
    for mapping in mappings:
        is_file = bool(mapping.inode) and (bool(library.search(mapping.name)) if of_library else mapping.name in code)
        is_behind = mapping.start_addr == past and not mapping.inode and not mapping.name
        if (is_file or is_behind) and mapping.is_mapped_writable:
            past = mapping.end_addr
            yield mapping.start_addr, mapping.end_addr


def _may_be_blocks(mapping: Mapping) -> bool:
    """Return whether large blocks can be in a mapping."""
    is_named = mapping.name.startswith(_NAMED)
    return mapping.is_mapped_writable and not mapping.inode and (not mapping.name or is_named)


def _other_allocator(mapping: Mapping) -> str | None:
    if mapping.permissions[2] != "x":
        return None
    match = _OTHERS.search(mapping.name)
    return None if match is None else next(filter(None, match.groups()))


_Place = tuple[int, int]
_TOP_BYTES: Final = 1 << 14
_WINDOW_BYTES: Final = 1 << 17
_MOST_ENDED_THREADS: Final = 1 << 10
_MOST_FIRST_BYTES: Final = 4 << 20
_MOST_SEARCHED_BYTES: Final = 64 << 20
_TCB_ALIGNMENT: Final = 64
# The second lowest byte of the addresses at which a control block can be, until it repeats.
_SECOND_BYTES: Final = bytes(addr >> 8 for addr in range(0, 1 << 16, _TCB_ALIGNMENT))
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


class LiveThreads(NamedTuple):
    """The threads of a process.

    Attributes:
        entries: What the loader keeps of each object, in load order.
        vectors: The blocks of each thread that was found.
    """

    entries: tuple[LinkEntry, ...]
    vectors: tuple[ThreadVector, ...]


def read_live_threads(snapshot: Snapshot) -> LiveThreads | None:
    """Read the thread-local blocks of a live process; None where that is not allowed, or it has no such threads."""
    if not snapshot.is_live or snapshot.pid is None or snapshot.pages is None:
        return None
    word_bytes = word_bytes_of(snapshot.memory.mappings)
    with suppress(AccessError, OSError), process_folder(snapshot.pid) as folder:
        auxiliary = read_whole(folder, "auxv", snapshot.source)
        with ProcessMemory(folder, snapshot.page_bytes) as memory:
            entries = loader_entries(memory, word_bytes, auxiliary)
            by_addr: dict[int, ThreadVector] = {}
            for places in _possible_places(snapshot):
                vectors = thread_vectors(memory, word_bytes, places)
                # The control blocks of threads that have ended stay in the stacks that are kept for others.
                by_addr |= {v.tcb_addr: v for v in islice(vectors, 2 * snapshot.thread_count + _MOST_ENDED_THREADS)}
                if len(by_addr) >= snapshot.thread_count:
                    break
            if entries and by_addr:
                return LiveThreads(entries, tuple(by_addr.values()))
    return None


def _quickly_searched(places: Iterable[_Place]) -> Iterator[_Place]:
    """Yield as many places as are quickly searched."""
    left_bytes = _MOST_SEARCHED_BYTES
    for start_addr, end_addr in places:
        if end_addr - start_addr <= left_bytes:
            left_bytes -= end_addr - start_addr
            yield start_addr, end_addr


def _possible_places(snapshot: Snapshot) -> tuple[list[_Place], Iterator[_Place], Iterator[_Place]]:
    """Return the places that have a control block, those that most likely have one, and all others that can.

    That of a thread lies at the end of its block. The kernel merges neighbouring blocks, nearly all of them from glibc
    2.42 on, whose guards are no mappings. Where the block is not known, it lies above all that the thread has on its
    stack: the lowest stack pointer of a mapping counts. That of the first thread lies at the start of the heap (glibc
    2.35 and later), or in a mapping that the loader made below a library.
    """
    blocks = snapshot.thread_stacks.blocks
    tops = [(max(start_addr, end_addr - _TOP_BYTES), end_addr) for start_addr, end_addr in blocks]
    likely: list[_Place] = []
    others: list[_Place] = []
    addrs = [addr for addr in sorted(snapshot.thread_stacks.pointers) if not _is_within(blocks, addr)]
    mappings = snapshot.memory.mappings
    for area, behind in zip_longest(mappings, mappings[1:]):
        if area.name == "[heap]":
            likely.append((area.start_addr, min(area.end_addr, area.start_addr + _MOST_FIRST_BYTES)))
        elif _may_be_stack(area):
            place = bisect_left(addrs, area.start_addr)
            if place < len(addrs) and addrs[place] < area.end_addr:
                likely.append((addrs[place], area.end_addr))
            elif (
                behind and behind.inode and behind.start_addr == area.end_addr and area.size_bytes <= _MOST_FIRST_BYTES
            ):
                likely.append((area.start_addr, area.end_addr))
            else:
                others.append((max(area.start_addr, area.end_addr - _TOP_BYTES), area.end_addr))
    return tops, _quickly_searched(likely), _quickly_searched(others)


def _is_within(places: Sequence[_Place], addr: int) -> bool:
    """Return whether an address lies in one of some places, which ascend."""
    count = bisect_right(places, addr, key=itemgetter(0))
    return count > 0 and addr < places[count - 1][1]


def _may_be_stack(mapping: Mapping) -> bool:
    is_private = mapping.is_mapped_writable and not mapping.is_shared
    return is_private and not mapping.inode and not mapping.name.startswith("[s")


def thread_vectors(memory: HeapMemory, word_bytes: int, places: Iterable[tuple[int, int]]) -> Iterator[ThreadVector]:
    """Find the control blocks in some places, and read the vector of each, up to a number of blocks."""
    words = ProcessWords(memory, LAYOUTS[word_bytes])
    left = _MOST_BLOCKS
    for start_addr, data in (piece for place in places for piece in _present(memory, *place)):
        numbers = words.of(data)
        for place in _likely_places(data, start_addr, word_bytes):
            addr = start_addr + place * word_bytes
            if numbers[place : place + 3 : 2].tolist() == [addr, addr]:
                with suppress(MisfitError):
                    blocks = _block_addrs(words, addr, numbers[place + 1])
                    left -= len(blocks)
                    if left < 0:
                        return
                    yield ThreadVector(addr, blocks)


def _likely_places(data: bytes, start_addr: int, word_bytes: int) -> Iterator[int]:
    """Yield the places of aligned words whose second lowest byte is that of their own address, as few others have it.

    Python runs no step for the other words of the memory: to compare all of them takes ten times as long.
    """
    first = -start_addr % _TCB_ALIGNMENT
    column = data[first + (1 if sys.byteorder == "little" else word_bytes - 2) :: _TCB_ALIGNMENT]
    repeated = _SECOND_BYTES * (len(column) // len(_SECOND_BYTES) + 2)
    at = (start_addr + first) // _TCB_ALIGNMENT % len(_SECOND_BYTES)
    differences = int.from_bytes(column, "big") ^ int.from_bytes(repeated[at : at + len(column)], "big")
    *between, _ = differences.to_bytes(len(column), "big").split(b"\0")
    step = _TCB_ALIGNMENT // word_bytes
    yield from [first // word_bytes + step * at for at in map(add, accumulate(map(len, between)), count())]


def _present(memory: HeapMemory, start_addr: int, end_addr: int) -> Iterator[tuple[int, bytes]]:
    """Yield what is in memory of a place, with its address, in pieces of a size that needs few new pages."""
    at = memory.skip(-(-start_addr // _TCB_ALIGNMENT) * _TCB_ALIGNMENT, end_addr)
    while at < end_addr and (data := memory.read(at, min(end_addr - at, _WINDOW_BYTES))):
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
