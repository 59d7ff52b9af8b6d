"""The heap of a live process: where its structures are, and what may be read of them."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from footprint.errors import AccessError, Note
from footprint.process.glibc.heap import read_glibc_heap
from footprint.process.glibc.words import LiveHeap
from footprint.process.mappings import Mapping
from footprint.process.process_memory import ProcessMemory, word_bytes_of
from footprint.process.snapshot import Snapshot, process_folder

MOST_CHUNKS: Final = 2 << 20
"""A heap with more is not read to its end: a million chunks take up to a second."""
MOST_CHUNKS_OF_A_SEARCH: Final = 64 << 20
"""The same where time matters less."""
_LIBC: Final = re.compile(r"/libc(?:\.so\.6|-2\.[0-9]+\.so)(?: \(deleted\))?$")
_MUSL: Final = re.compile(r"/ld-musl-[^/]*$|linux-musl[^/]*/libc\.so(?: \(deleted\))?$")
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
