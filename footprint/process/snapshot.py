"""One process at one moment: read live, or from a text that somebody saved."""

import os
import platform
from collections.abc import Callable, Iterator
from collections.abc import Mapping as AbstractMapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from footprint.errors import AccessError, InputError, Note, UnsupportedError
from footprint.process.mappings import Counters, Mapping, MemoryMap, looks_like_maps, parse_maps, parse_rollup
from footprint.process.pages import PageRange, PageReader, has_exclusive_bit
from footprint.process.status import Status, parse_status

__all__ = (
    "FileFacts",
    "FileIdentity",
    "Snapshot",
    "looks_like_capture",
    "looks_like_memory_text",
    "process_folder",
    "read_process",
    "read_texts",
    "read_whole",
)

Pages = dict[int, tuple[PageRange, ...]]
FileIdentity = tuple[str | None, int | None, str]
"""Device, inode and name of a mapped file, as the kernel prints them."""
Keep = Callable[[str, bytes], None]

_CHUNK_BYTES = 1 << 20
_DEFAULT_PAGE_BYTES = 4096
_MOST_COMMAND_BYTES = 4096


class FileFacts(NamedTuple):
    """What a capture tells of a mapped file, so that it can be known again elsewhere; None where it could not be read.

    Attributes:
        size_bytes: Its size.
        build_id: The build-id in its notes, as hexadecimal digits.
    """

    size_bytes: int | None
    build_id: str | None


class Snapshot(NamedTuple):
    """What is known of a process at one moment.

    Attributes:
        source: What to call it in messages: `pid 4711`, or the file's name.
        pid: Its number, where the source tells.
        is_live: Whether it was read from this machine's /proc now, so that its files can be looked up.
        command: Its command line, or name.
        memory: Its mappings.
        rollup: The kernel's own sums over all mappings, where it gives them (Linux 4.14).
        status: Threads and page tables, where known.
        thread_stack_addrs: Stack pointers of the threads beside the main one, where the kernel tells.
        pages: By the start of its mapping, which pages of it only this process holds; mappings that were not looked
            at, because their counters say there are none, are left out. None where the page bits could not be read:
            then only the counters of each mapping are known.
        page_bytes: The size of a page.
        host: Kernel and machine it was read on; empty for a saved text.
        notes: What was odd about reading it.
        files: Of the mapped files what a capture tells; empty for everything else.
    """

    source: str
    pid: int | None
    is_live: bool
    command: str
    memory: MemoryMap
    rollup: Counters | None
    status: Status | None
    thread_stack_addrs: tuple[int, ...]
    pages: Pages | None
    page_bytes: int
    host: dict[str, str]
    notes: tuple[Note, ...]
    files: AbstractMapping[FileIdentity, FileFacts] = MappingProxyType({})


def looks_like_capture(data: bytes | memoryview) -> bool:
    """Tell whether a file claims to be a capture: a zip file."""
    return bytes(data[:4]) == b"PK\x03\x04"


def looks_like_memory_text(text: bytes) -> bool:
    """Tell whether a text is one that `read_texts` reads: maps, smaps, or any pmap output."""
    if looks_like_maps(text):
        return True
    from footprint.process.pmap import looks_like_pmap  # noqa: PLC0415 # a live process needs no grammar of pmap

    return looks_like_pmap(text)


def read_texts(text: bytes, source: str) -> tuple[Snapshot, ...]:
    """Read saved `maps`, `smaps` or `pmap` output; one snapshot for each process in it.

    Raises:
        InputError: Where it is none of these.
    """
    if looks_like_maps(text):
        maps: tuple[MemoryMap, ...] = (_told_apart(parse_maps(text, source), source),)
    else:
        from footprint.process.pmap import parse_pmap  # noqa: PLC0415 # the same

        maps = parse_pmap(text, source)
    return tuple(
        Snapshot(
            source=source,
            pid=memory.pid,
            is_live=False,
            command=memory.command or "",
            memory=memory,
            rollup=None,
            status=None,
            thread_stack_addrs=(),
            pages=None,
            page_bytes=_page_bytes(memory),
            host={},
            notes=memory.notes,
        )
        for memory in maps
    )


def _told_apart(memory: MemoryMap, source: str) -> MemoryMap:
    """Tell the sums of smaps_rollup from a mapping: its header spans all of the address space, and maps none of it."""
    if [mapping.name for mapping in memory.mappings] != ["[rollup]"]:
        return memory
    sums = memory.mappings[0]
    note = Note("rollup-only", source, "these are the sums of a process: what is mapped, and by whom, they do not tell")
    return memory._replace(
        dialect="smaps_rollup",
        mappings=(sums._replace(end_addr=sums.start_addr),),
        notes=(*memory.notes, note),
    )


def _page_bytes(memory: MemoryMap) -> int:
    """Give the smallest page that the text speaks of; kernels before 2.6.29 speak of none."""
    sizes = {mapping.counters.get("KernelPageSize") for mapping in memory.mappings}
    return min((size for size in sizes if size), default=_DEFAULT_PAGE_BYTES)


def read_process(pid: int, keep: Keep | None = None) -> Snapshot:
    """Read a live process.

    The process goes on meanwhile; where its memory changed between two readings of the kernel's, a note says so.

    Args:
        pid: Its number.
        keep: Told each piece of `status`, `smaps` (or `maps`) and `smaps_rollup` as it is read, with that name.

    Raises:
        AccessError: Where it does not exist, ends while it is read, or may not be read.
        UnsupportedError: For a kernel thread or a zombie, which have no memory.
    """
    source = f"pid {pid}"
    with process_folder(pid) as folder:
        status = parse_status(b"".join(_kept(folder, "status", source, keep)))
        if not status.has_memory:
            kind = "a zombie" if status.state in {"Z", "X"} else "a kernel thread"
            raise UnsupportedError(source, f"{status.name} is {kind}: it has no memory of its own")
        try:
            memory = parse_maps(_kept(folder, "smaps", source, keep), source)
        except FileNotFoundError:
            memory = parse_maps(_kept(folder, "maps", source, keep), source)
        rollup = _rollup(folder, source, keep)
        pages, page_notes = _pages(folder, memory, source)
        stacks = tuple(_stack_addrs(folder, pid))
        command = read_whole(folder, "cmdline", source)[:_MOST_COMMAND_BYTES].rstrip(b"\0").replace(b"\0", b" ")
        if parse_status(read_whole(folder, "status", source)).state in {"Z", "X"} or not memory.mappings:
            raise AccessError(source, "the process ended while it was read")
    return Snapshot(
        source=source,
        pid=pid,
        is_live=True,
        command=command.decode("utf-8", "surrogateescape") or status.name,
        memory=memory,
        rollup=rollup,
        status=status,
        thread_stack_addrs=stacks,
        pages=pages,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        host={"kernel": platform.release(), "machine": platform.machine()},
        notes=(*memory.notes, *page_notes, *_changes(memory, rollup, source)),
    )


@contextmanager
def process_folder(pid: int) -> Iterator[int]:
    """Open the folder of a process in /proc. Should its number go to another process, reading through this one fails.

    Raises:
        AccessError: Where there is no such process.
    """
    try:
        folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise AccessError(f"pid {pid}", "no such process") from error
    try:
        yield folder
    finally:
        os.close(folder)


def _kept(folder: int, name: str, source: str, keep: Keep | None) -> Iterator[bytes]:
    """Give a file of the process in pieces, each told to who keeps it."""
    for piece in _stream(folder, name, source):
        if keep is not None:
            keep(name, piece)
        yield piece


def _stream(folder: int, name: str, source: str) -> Iterator[bytes]:
    """Give a file of the process in pieces of about 1 MiB: the kernel hands out a page at a time."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        if name == "smaps":
            raise
        raise AccessError(source, "the process ended while it was read") from None
    except OSError as error:
        raise _access_error(error, source) from error
    try:
        pieces: list[bytes] = []
        pieces_bytes = 0
        while piece := os.read(descriptor, _CHUNK_BYTES):
            pieces.append(piece)
            pieces_bytes += len(piece)
            if pieces_bytes >= _CHUNK_BYTES:
                yield b"".join(pieces)
                pieces, pieces_bytes = [], 0
        yield b"".join(pieces)
    except OSError as error:
        raise _access_error(error, source) from error
    finally:
        os.close(descriptor)


def read_whole(folder: int, name: str, source: str) -> bytes:
    """Read a file of the process.

    Raises:
        AccessError: Where the process has ended, or may not be read.
    """
    return b"".join(_stream(folder, name, source))


def _access_error(error: OSError, source: str) -> AccessError:
    if isinstance(error, PermissionError):
        cause = "permission denied: reading its memory takes its own user, or root (CAP_SYS_PTRACE)"
        return AccessError(source, cause)
    if isinstance(error, ProcessLookupError | FileNotFoundError):
        return AccessError(source, "the process ended while it was read")
    return AccessError(source, error.strerror or str(error))


def _rollup(folder: int, source: str, keep: Keep | None) -> Counters | None:
    try:
        return parse_rollup(b"".join(_kept(folder, "smaps_rollup", source, keep)), source)
    except (AccessError, InputError):
        # Before Linux 4.14 there is none, and nothing but a cross-check is lost.
        return None


def _pages(folder: int, memory: MemoryMap, source: str) -> tuple[Pages | None, tuple[Note, ...]]:
    """Read the page bits of all mappings that hold anonymous memory."""
    if memory.dialect != "smaps":
        return None, ()
    if not has_exclusive_bit():
        detail = "the page bits of this host do not tell whose a page is: private pages are known by mapping"
        return None, (Note("page-bits-denied", source, detail),)
    wanted = [mapping for mapping in memory.mappings if _has_own_pages(mapping)]
    try:
        with PageReader(folder, os.sysconf("SC_PAGE_SIZE")) as reader:
            pages = {mapping.start_addr: ranges for mapping, ranges in reader.read_all(wanted)}
    except PermissionError:
        detail = "its page bits may not be read: private pages are known by mapping, not by symbol"
        return None, (Note("page-bits-denied", source, detail),)
    except FileNotFoundError:
        return None, (Note("page-bits-denied", source, "this kernel has no page bits (CONFIG_PROC_PAGE_MONITOR)"),)
    except OSError as error:
        raise _access_error(error, source) from error
    return pages, ()


def _has_own_pages(mapping: Mapping) -> bool:
    count = mapping.counters.get
    # Huge pages of the reserved pool look anonymous in the page bits, and are counted apart.
    return (count("Anonymous") != 0 or bool(count("Swap"))) and " ht" not in f" {mapping.vm_flags}"


def _stack_addrs(folder: int, pid: int) -> Iterator[int]:
    """Give the stack pointer of each thread that waits in the kernel; a running one has none to give."""
    try:
        task = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        for thread in os.listdir(task):
            if thread == str(pid):
                continue
            try:
                descriptor = os.open(f"{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC, dir_fd=task)
            except OSError:
                continue
            try:
                # number, six arguments, stack pointer, program counter; -1 and these two outside of a call.
                words = os.read(descriptor, 512).split()
            except OSError:
                continue
            finally:
                os.close(descriptor)
            if len(words) in {3, 9}:
                yield int(words[-2], 16)
    finally:
        os.close(task)


def _changes(memory: MemoryMap, rollup: Counters | None, source: str) -> list[Note]:
    """Compare the sums of what was read with the kernel's own, read right after it."""
    if rollup is None or memory.dialect != "smaps":
        return []
    differing = []
    for key in ("Rss", "Anonymous", "Swap"):
        then, now = memory.sum(key), rollup.get(key)
        if now is not None and then != now:
            differing.append(f"{key} {then} to {now} bytes")
    if not differing:
        return []
    detail = f"its memory changed while it was read: {', '.join(differing)}; stop it for an exact picture"
    return [Note("changed-while-read", source, detail)]
