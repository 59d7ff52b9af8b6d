"""What may be read of the heap of a live process: of this one, and of mappings written for the test."""

import os

import pytest

from footprint.process import live_memory
from footprint.process.live_memory import read_live_heap
from footprint.process.mappings import Mapping
from footprint.process.snapshot import read_process


def test_memory_that_only_a_debugger_may_read_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(live_memory, "ProcessMemory", denied)
    mappings = (Mapping(0x1000, 0x2000, "rw-p"),)
    own = read_process(os.getpid())
    snapshot = own._replace(memory=own.memory._replace(mappings=mappings), pages={})
    heap, (note,) = read_live_heap(snapshot)
    assert heap is None
    assert note.slug == "allocator-unread"
    assert note.detail == (
        "how much of its heap is free is unknown: only a debugger may read it (root, CAP_SYS_PTRACE, ptrace_scope)"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "jemalloc"),
        ("/opt/libmimalloc.so.2.1", "mimalloc"),
        ("/usr/lib/libtcmalloc_minimal.so.4", "tcmalloc"),
    ],
)
def test_other_allocators_are_named_by_their_libraries(path: str, name: str) -> None:
    mappings = (Mapping(0x1000, 0x2000, "r-xp", 0, "08:01", 7, path),)
    own = read_process(os.getpid())
    snapshot = own._replace(memory=own.memory._replace(mappings=mappings), pages={})
    heap, (note,) = read_live_heap(snapshot)
    assert heap is None
    assert note.detail.startswith(f"{name} allocates for it, whose structures are not read")


@pytest.mark.parametrize(
    ("mapping", "cause"),
    [
        (Mapping(0x1000, 0x2000, "r-xp", 0, "08:01", 7, "/lib/ld-musl-x86_64.so.1"), "musl's malloc does not look"),
        (Mapping(0x1000, 0x2000, "rw-p", 0, "08:01", 7, "/usr/lib/x86_64-linux-musl/libc.so"), "musl's malloc does"),
        (Mapping(0x100000, 0x120000, "rw-p", 0, "00:00", 0, "[heap]"), "its allocator does not look like glibc's"),
    ],
)
def test_an_allocator_whose_structures_are_not_there_is_a_note(mapping: Mapping, cause: str) -> None:
    own = read_process(os.getpid())
    snapshot = own._replace(memory=own.memory._replace(mappings=(mapping,)), pages={})
    heap, (note,) = read_live_heap(snapshot)
    assert heap is None
    assert (note.slug, cause in note.detail) == ("allocator-unread", True)


def test_what_is_not_live_has_no_heap_and_no_note() -> None:
    assert read_live_heap(read_process(os.getpid())._replace(is_live=False)) == (None, ())


def test_without_page_bits_nothing_is_read() -> None:
    assert read_live_heap(read_process(os.getpid())._replace(pages=None)) == (None, ())
