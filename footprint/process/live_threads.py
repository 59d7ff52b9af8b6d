"""The threads of a live process: where each has the thread-local blocks of the libraries."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from footprint.errors import AccessError
from footprint.process.glibc.threads import LinkEntry, ThreadVector, loader_entries, thread_vectors
from footprint.process.mappings import Mapping
from footprint.process.process_memory import ProcessMemory, word_bytes_of
from footprint.process.snapshot import Snapshot, process_folder, read_whole

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
                vectors = thread_vectors(memory, word_bytes, _within(places))
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


def _possible_places(snapshot: Snapshot) -> tuple[list[_Place], list[_Place]]:
    """Return the places that most likely hold a control block, and all others that can, which may be many.

    That of a thread lies above all that it has on its stack; of a running thread the stack pointer is not known. The
    kernel may merge neighbouring stacks: then the lowest stack pointer of the mapping counts. That of the first thread
    lies at the start of the heap (glibc 2.35 and later), or in a mapping that the loader made below a library.
    """
    addrs = sorted(snapshot.thread_stacks.pointers)
    likely: list[_Place] = []
    others: list[_Place] = []
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
    return likely, others


def _may_be_stack(mapping: Mapping) -> bool:
    is_private = mapping.is_mapped_writable and not mapping.is_shared
    return is_private and not mapping.inode and not mapping.name.startswith("[s")
