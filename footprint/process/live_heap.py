"""The heap of a live process: where its structures are, and what may be read of them."""

import re
from collections.abc import Iterator
from typing import Final

from footprint.errors import AccessError, Note
from footprint.process.glibc import GlibcHeap, read_glibc_heap
from footprint.process.mappings import Mapping
from footprint.process.process_memory import ProcessMemory, word_bytes_of
from footprint.process.snapshot import Snapshot, process_folder

__all__ = ("MOST_CHUNKS", "MOST_CHUNKS_OF_A_SEARCH", "read_live_heap")

MOST_CHUNKS: Final = 2 << 20
"""A heap with more is not read to its end: a million chunks take up to a second."""
MOST_CHUNKS_OF_A_SEARCH: Final = 64 << 20
"""The same where time matters less."""
_LIBC: Final = re.compile(r"/libc(?:\.so\.6|-2\.[0-9]+\.so)(?: \(deleted\))?$")
_OTHERS: Final = re.compile(
    r"/(?:lib(jemalloc|mimalloc|tcmalloc|scudo|hoard|snmalloc|rpmalloc)|ld-(musl)-)[^/]*$|linux-(musl)[^/]*/libc\.so$"
)
_NAMED: Final = "[anon: glibc: malloc"  # glibc 2.39 with glibc.mem.decorate_maps


def read_live_heap(snapshot: Snapshot, most_chunks: int = MOST_CHUNKS) -> tuple[GlibcHeap | None, tuple[Note, ...]]:
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
        detail = f"{other} allocates for it, whose structures are not read: how much of its memory is free is unknown"
        return None, (Note("allocator-unread", source, detail),)
    try:
        with process_folder(snapshot.pid) as folder, ProcessMemory(folder, snapshot.page_bytes) as memory:
            heap = read_glibc_heap(
                memory,
                word_bytes_of(mappings),
                _data(mappings),
                [(one.start_addr, one.end_addr) for one in mappings if _may_be_blocks(one)],
                page_bytes=snapshot.page_bytes,
                most_chunks=most_chunks,
            )
    except (AccessError, OSError) as error:
        cause = "only a debugger may read it (root, CAP_SYS_PTRACE, ptrace_scope)"
        cause = cause if isinstance(error, PermissionError) else str(error)
        return None, (Note("allocator-unread", source, f"how much of its heap is free is unknown: {cause}"),)
    return heap, _notes(heap, snapshot)


def _notes(heap: GlibcHeap | None, snapshot: Snapshot) -> tuple[Note, ...]:
    """Return notes on what is unknown, if the process has a heap of glibc."""
    source = snapshot.source
    if heap is None:
        names = [one.name for one in snapshot.memory.mappings]
        detail = "how much of its heap is free is unknown: its C library has no arenas like those of glibc 2.26 to 2.42"
        is_expected = "[heap]" in names and any(map(_LIBC.search, names))
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


def _data(mappings: tuple[Mapping, ...]) -> Iterator[tuple[int, int]]:
    """Return the writable data of the C library, or of all objects where it is linked into the program."""
    writable = [one for one in mappings if one.inode and one.is_mapped_writable]
    of_library = [one for one in writable if _LIBC.search(one.name)]
    code = {one.name for one in mappings if one.permissions[2] == "x"}
    for one in of_library or [one for one in writable if one.name in code]:
        yield one.start_addr, one.end_addr


def _may_be_blocks(mapping: Mapping) -> bool:
    """Return whether large blocks can be in a mapping."""
    is_named = mapping.name.startswith(_NAMED)
    return mapping.is_mapped_writable and not mapping.inode and (not mapping.name or is_named)


def _other_allocator(mapping: Mapping) -> str | None:
    if mapping.permissions[2] != "x":
        return None
    found = _OTHERS.search(mapping.name)
    return None if found is None else next(filter(None, found.groups()))
