"""The memory of a live process: the structures of its heap, and where each thread has the blocks of the libraries."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from operator import itemgetter
from typing import Final

from footprint.errors import AccessError, Note
from footprint.members import NamedTuple, lazy_pattern
from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.glibc.threads import LinkEntry, ThreadVector, loader_entries, thread_vectors
from footprint.process.glibc.words import LiveHeap
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
_MOST_ENDED_THREADS: Final = 1 << 10
_MOST_FIRST_BYTES: Final = 4 << 20
_MOST_SEARCHED_BYTES: Final = 64 << 20


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


def _within(places: Iterable[_Place]) -> Iterator[_Place]:
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
    return tops, _within(likely), _within(others)


def _is_within(places: Sequence[_Place], addr: int) -> bool:
    """Return whether an address lies in one of some places, which ascend."""
    count = bisect_right(places, addr, key=itemgetter(0))
    return count > 0 and addr < places[count - 1][1]


def _may_be_stack(mapping: Mapping) -> bool:
    is_private = mapping.is_mapped_writable and not mapping.is_shared
    return is_private and not mapping.inode and not mapping.name.startswith("[s")
