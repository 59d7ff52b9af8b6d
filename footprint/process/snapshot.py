"""One process at one moment: read live, or from a saved text."""

import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as AbstractMapping
from contextlib import contextmanager, suppress
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from footprint.errors import AccessError, InputError, Note, UnsupportedError, cause_of
from footprint.members import NamedTuple
from footprint.process.descriptions import OpenFile, read_own_open_files
from footprint.process.mappings import NO_STACKS, Counters, Mapping, MemoryMap, ThreadStacks
from footprint.process.maps_text import BlockCache, looks_like_maps, parse_maps, parse_rollup, split_rollups
from footprint.process.memory_files import (
    FileIdentity,
    FileKeepers,
    MemoryFile,
    memory_files,
    read_allocated_bytes,
    read_keepers,
)
from footprint.process.pages import PageRange, PageReader, has_exclusive_bit, has_parts_of_huge_pages
from footprint.process.status import NO_HOLDINGS, KernelHoldings, Status, parse_status, read_kernel_holdings
from footprint.system.limits import begin_activity
from footprint.text.command_line import command_line, shown_command
from footprint.text.units import format_bytes

if TYPE_CHECKING:
    from footprint.model.heap_account import AllocatorAccount
    from footprint.process.origin import CaptureHost, Placement

Pages = dict[int, tuple[PageRange, ...]]
MappedIdentity = tuple[str | None, int | None, str]
"""Device, inode and name of a mapped file, as the kernel prints them."""
Keep = Callable[[str, bytes], None]

TEXT_CAPTURE_START = b"footprint-text-capture/"

MOST_SWAP_ENTRIES = 1 << 20  # 4 GiB
BLOCK_BYTES = 512  # st_blocks, whatever the file system
_ROLLUP = "smaps_rollup"
_CHUNK_BYTES = 1 << 20
_DEFAULT_PAGE_BYTES = 4096
_KCMP_VM = 1


class FileFacts(NamedTuple):
    """The facts in a capture that identify a mapped file on another machine; None where the file was not readable.

    Attributes:
        size_bytes: Its size.
        build_id: Its build-id, as hexadecimal digits.
    """

    size_bytes: int | None
    build_id: str | None


class CapturedHeap(NamedTuple):
    """What a capture says of the allocator of a process.

    Attributes:
        account: Its account; None where it was not read.
        notes: Why it was not read, or not whole.
    """

    account: "AllocatorAccount | None" = None
    notes: tuple[Note, ...] = ()


class Snapshot(NamedTuple):
    """The state of a process at one moment.

    Attributes:
        source: The name for messages: `pid 4711`, or the name of the file.
        pid: The process ID, where the source has it; of a live process whose main thread has ended, the number of the
            thread that it was read through.
        is_live: Whether it was read from /proc of this machine now, so that its files can be opened.
        command: The command line, or the name.
        memory: Its mappings.
        rollup: The sums of the kernel over all mappings (Linux 4.14), where available.
        status: Threads and page tables, where known.
        thread_stacks: What the threads other than the main one say of their stacks.
        pages: The pages that only this process holds, by the start address of their mapping, without the mappings
            whose counters show no such page. None where the page bits were not readable: then only the counters of
            each mapping are known.
        page_bytes: The size of a page.
        host: The kernel and machine of the process; empty for a saved text.
        notes: Problems while reading.
        files: The facts of mapped files in a capture; empty for all other sources.
        allocated_bytes: What each mapped file in memory holds in all, touched by a process or not; empty where that
            may not be read.
        open_files: The open file descriptions that the process pays for; None where these were not read.
        found_memory_files: Its files in memory, once they were looked for: `memory_files` has them in any case.
        keepers: Who keeps its files in memory; None where nobody looked.
        address_space_pid: Of the processes that were read together, the first one that has the same address space;
            None where nobody compared them.
        shared_swap: The swap entries (type and offset) of mappings whose swapped pages others have, too; empty where
            these may not be read.
        main_pid: The process ID, where `pid` is the number of another thread.
        kernel_holdings: What it has in the kernel beside memory and open files.
        captured_heap: What its capture says of its allocator; nothing for other sources.
        capture_host: What its capture says of its host; None for other sources.
        placement: What its capture says of who runs it; None for other sources.
    """

    source: str
    pid: int | None
    is_live: bool
    command: str
    memory: MemoryMap
    rollup: Counters | None
    status: Status | None
    thread_stacks: ThreadStacks
    pages: Pages | None
    page_bytes: int
    host: dict[str, str]
    notes: tuple[Note, ...]
    files: AbstractMapping[MappedIdentity, FileFacts] = MappingProxyType({})
    allocated_bytes: AbstractMapping[FileIdentity, int] = MappingProxyType({})
    open_files: tuple[OpenFile, ...] | None = None
    found_memory_files: tuple[MemoryFile, ...] | None = None
    keepers: FileKeepers | None = None
    address_space_pid: int | None = None
    shared_swap: frozenset[int] = frozenset()
    main_pid: int | None = None
    kernel_holdings: KernelHoldings = NO_HOLDINGS
    captured_heap: CapturedHeap = CapturedHeap()
    capture_host: "CaptureHost | None" = None
    placement: "Placement | None" = None

    @property
    def process_id(self) -> int | None:
        """The process ID, where the source has it."""
        return self.pid if self.main_pid is None else self.main_pid

    @property
    def place(self) -> tuple[object, ...] | None:
        """The program of the process and the addresses of it and of the vDSO, which each exec chooses anew."""
        program = next((mapping for mapping in self.memory.mappings if mapping.inode), None)
        if program is None:
            return None
        vdso = next((m.start_addr for m in reversed(self.memory.mappings) if m.name == "[vdso]"), None)
        return program.name, program.inode, program.start_addr, vdso

    @property
    def pids(self) -> frozenset[int]:
        """The numbers under which the kernel shows it; none where the source has none."""
        return frozenset([pid for pid in (self.pid, self.main_pid) if pid is not None])

    @property
    def memory_files(self) -> tuple[MemoryFile, ...]:
        """The files in memory that it maps or holds open."""
        if self.found_memory_files is not None:
            return self.found_memory_files
        return memory_files(self.memory.mappings, self.allocated_bytes, self.open_files or ())

    @property
    def thread_count(self) -> int:
        """The number of threads: at least the one that every process has, also where it is not known."""
        return (self.status.thread_count if self.status else None) or 1


def looks_like_capture(data: bytes | memoryview) -> bool:
    """Return whether a file begins as a capture does: a zip file, or the text of `capture --script`."""
    return bytes(data[: len(TEXT_CAPTURE_START)]).startswith((b"PK\x03\x04", TEXT_CAPTURE_START))


def looks_like_memory_text(text: bytes) -> bool:
    """Return whether `read_texts` can read a text: maps, smaps, or any pmap output."""
    if looks_like_maps(text):
        return True
    from footprint.process.pmap_lines import looks_like_pmap  # noqa: PLC0415 # not for a live process

    return looks_like_pmap(text)


def read_texts(text: bytes, source: str) -> tuple[Snapshot, ...]:
    """Read saved `maps`, `smaps` or `pmap` output; return one snapshot per process.

    Raises:
        InputError: Where the text has another form.
    """
    if several := split_rollups(text):
        maps: tuple[MemoryMap, ...] = tuple(_rollups(several, source))
    elif looks_like_maps(text):
        maps = (_marked_rollup(parse_maps(text, source), source),)
    else:
        from footprint.process.pmap import parse_pmap  # noqa: PLC0415 # not for a live process

        maps = parse_pmap(text, source)
    return tuple(
        Snapshot(
            source=source,
            pid=memory.pid,
            is_live=False,
            command=shown_command(memory.command or ""),
            memory=memory,
            rollup=memory.mappings[0].counters if memory.dialect == _ROLLUP else None,
            status=None,
            thread_stacks=NO_STACKS,
            pages=None,
            page_bytes=page_bytes_of(memory),
            host={},
            notes=memory.notes,
        )
        for memory in maps
    )


def _rollups(several: Sequence[tuple[int | None, bytes]], source: str) -> Iterator[MemoryMap]:
    """Read the sums of several processes; those whose PIDs are not all told, or not all different, are numbered."""
    pids = {pid for pid, _ in several if pid is not None}
    for number, (pid, text) in enumerate(several, 1):
        memory = _marked_rollup(parse_maps(text, source), source)
        if len(pids) == len(several):
            yield memory._replace(pid=pid)
        else:
            detail = f"the text does not name all PIDs: {number} is its place among {len(several)}"
            yield memory._replace(pid=number, notes=(*memory.notes, Note("rollup-numbered", source, detail)))


def _marked_rollup(memory: MemoryMap, source: str) -> MemoryMap:
    """Mark the sums of smaps_rollup: their header spans the whole address space, but is not a mapping."""
    if [mapping.name for mapping in memory.mappings] != ["[rollup]"]:
        return memory
    sums = memory.mappings[0]
    note = Note(
        "rollup-only", source, "these are the sums of a process: they do not show its mappings and their owners"
    )
    return memory._replace(
        dialect=_ROLLUP,
        mappings=(sums._replace(end_addr=sums.start_addr),),
        notes=(*memory.notes, note),
    )


def page_bytes_of(memory: MemoryMap) -> int:
    """Return the smallest page size in the text; kernels before 2.6.29 print none."""
    sizes = {mapping.counters.get("KernelPageSize") for mapping in memory.mappings}
    return min((size for size in sizes if size), default=_DEFAULT_PAGE_BYTES)


def read_process(pid: int, keep: Keep | None = None, cache: BlockCache | None = None) -> Snapshot:
    """Read a live process.

    The process keeps running; a note says where its memory changed between two reads.

    Args:
        pid: The process ID.
        keep: Called with the name and each piece of `status`, `smaps` (or `maps`) and `smaps_rollup`.
        cache: The blocks of `smaps` of similar processes; those of this process are added.

    Raises:
        AccessError: Where the process does not exist, ends meanwhile, or we may not read it.
        UnsupportedError: Where it is a kernel thread or a zombie: they have no memory.
    """
    begin_activity(f"reads process {pid}")
    source = f"pid {pid}"
    with process_folder(pid) as folder:
        status = parse_status(b"".join(_kept(folder, "status", source, keep)))
        if not status.has_memory:
            thread = _live_thread(folder, pid)
            if thread is not None:
                return _through_thread(thread, pid, keep)
            kind = "a zombie" if status.state in {"Z", "X"} else "a kernel thread"
            raise UnsupportedError(source, f"{status.name} is {kind}: it has no memory of its own")
        try:
            memory = parse_maps(_kept(folder, "smaps", source, keep), source, cache)
        except FileNotFoundError:
            memory = parse_maps(_kept(folder, "maps", source, keep), source)
        rollup = _rollup(folder, source, keep)
        pages, page_notes = _pages(folder, memory, source)
        has_swap = rollup is None or rollup.get("Swap")
        shared_swap = _shared_swap(folder, memory) if has_swap else frozenset()
        stacks = NO_STACKS
        if status.thread_count != 1:
            from footprint.process.thread_stacks import read_thread_stacks  # noqa: PLC0415 # most have one thread

            stacks = read_thread_stacks(folder, pid, memory.mappings, os.sysconf("SC_PAGE_SIZE"))
        allocated_bytes = read_allocated_bytes(folder, memory.mappings)
        kernel_holdings = read_kernel_holdings(folder, pid, status)
        command = command_line(read_whole(folder, "cmdline", source))
        # The state stands in the third of its sixty lines.
        if parse_status(read_whole(folder, "status", source)[:256]).state in {"Z", "X"} or not memory.mappings:
            raise AccessError(source, "the process ended while it was read")
    system = os.uname()
    return Snapshot(
        source=source,
        pid=pid,
        is_live=True,
        command=command or status.name,
        memory=memory,
        rollup=rollup,
        status=status,
        thread_stacks=stacks,
        pages=pages,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        host={"kernel": system.release, "machine": system.machine},
        notes=(*memory.notes, *page_notes, *_changes(memory, rollup, source)),
        allocated_bytes=allocated_bytes,
        kernel_holdings=kernel_holdings,
        shared_swap=shared_swap,
    )


def with_held_files(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Read what live processes have open, and who else keeps their files in memory; leave all others as they are.

    An open file description that several of them have belongs to the first one.

    Args:
        snapshots: The processes, parents first.
    """
    open_files = read_own_open_files([s.pid for s in snapshots if s.is_live and s.pid is not None])
    filled = [s._replace(open_files=open_files[s.pid]) if s.pid in open_files else s for s in snapshots]
    filled = [s._replace(found_memory_files=s.memory_files) if s.is_live else s for s in filled]
    keepers = read_keepers({s.process_id or 0: s.memory_files for s in filled if s.is_live})
    return [s._replace(keepers=keepers) if s.is_live else s for s in filled] if keepers else filled


def with_address_spaces(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Find out which live processes have one address space."""
    firsts = first_of_address_spaces({s.pid: s.place for s in snapshots if s.is_live and s.pid is not None})
    return [s._replace(address_space_pid=firsts[s.pid]) if s.pid in firsts else s for s in snapshots]


def address_space_order(pid: int, other: int) -> int:
    """Compare the address spaces of two processes: 0 where they have the same, else an order.

    Raises:
        OSError: Where the kernel refuses, or one of them is gone.
    """
    from footprint.system.c_library import kcmp  # noqa: PLC0415 # ctypes

    return kcmp(_KCMP_VM, pid, other)


def first_of_address_spaces(places: AbstractMapping[int, object]) -> dict[int, int | None]:
    """Return for each of some processes the first one with the same address space; None where the kernel refuses.

    Only processes of one place are compared. The kernel's order finds one among n others by log n comparisons.

    Args:
        places: By process, where its program lies.

    Source: clone(2): two processes have one address space after clone(CLONE_VM), and after vfork(2) until the child
    executes a program.
    """
    by_place: dict[object, list[int]] = {}
    first_by_pid: dict[int, int | None] = {}
    for pid, place in places.items():
        ordered = by_place.setdefault(place, [])
        try:
            low, high = 0, len(ordered)
            first: int | None = pid
            while low < high and first == pid:
                middle = (low + high) // 2
                order = address_space_order(pid, ordered[middle])
                if order == 0:
                    first = ordered[middle]
                low, high = (low, middle) if order < 0 else (middle + 1, high)
        except OSError:
            first = None
        if first == pid:
            ordered.insert(low, pid)
        first_by_pid[pid] = first
    return first_by_pid


def _live_thread(folder: int, pid: int) -> int | None:
    """Return a thread that has the memory of a process whose main thread has ended (pthread_exit), or None."""
    with suppress(OSError):
        task = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            for thread in sorted(map(int, os.listdir(task))):
                if thread != pid and parse_status(read_whole(task, f"{thread}/status", f"pid {pid}")).has_memory:
                    return thread
        except AccessError:
            return None
        finally:
            os.close(task)
    return None


def _through_thread(thread: int, pid: int, keep: Keep | None) -> Snapshot:
    """Read a process through one of its threads, which the kernel shows in /proc like a process."""
    detail = f"its main thread has ended (pthread_exit), and others live: it was read through thread {thread}"
    snapshot = read_process(thread, keep)
    return snapshot._replace(main_pid=pid, notes=(Note("main-thread-ended", f"pid {pid}", detail), *snapshot.notes))


@contextmanager
def process_folder(pid: int) -> Iterator[int]:
    """Open the directory of a process in /proc. Reads through it fail where a later process has the same PID.

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
    """Read a file of the process in pieces, and pass each piece to `keep`."""
    for piece in _stream(folder, name, source):
        if keep is not None:
            keep(name, piece)
        yield piece


def _stream(folder: int, name: str, source: str) -> Iterator[bytes]:
    """Read a file of the process in pieces of about 1 MiB; the kernel returns one page per call."""
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
        AccessError: Where the process has ended, or we may not read it.
    """
    return b"".join(_stream(folder, name, source))


def _access_error(error: OSError, source: str) -> AccessError:
    if isinstance(error, PermissionError):
        cause = "permission denied: only its own user or root (CAP_SYS_PTRACE) may read its memory"
        return AccessError(source, cause)
    if isinstance(error, ProcessLookupError | FileNotFoundError):
        return AccessError(source, "the process ended while it was read")
    return AccessError(source, cause_of(error))


def _rollup(folder: int, source: str, keep: Keep | None) -> Counters | None:
    try:
        return parse_rollup(b"".join(_kept(folder, "smaps_rollup", source, keep)), source)
    except (AccessError, InputError):
        # Linux before 4.14 has none. It only serves as a cross-check.
        return None


def _pages(folder: int, memory: MemoryMap, source: str) -> tuple[Pages | None, tuple[Note, ...]]:
    """Read the page bits of all mappings with anonymous memory."""
    if memory.dialect != "smaps":
        return None, ()
    if not has_exclusive_bit():
        detail = "the page bits of this host do not show which pages are private: private memory is known per mapping"
        return None, (Note("page-bits-denied", source, detail),)
    wanted = [mapping for mapping in memory.mappings if _has_own_pages(mapping)]
    try:
        with PageReader(folder, os.sysconf("SC_PAGE_SIZE")) as reader:
            pages = {mapping.start_addr: ranges for mapping, ranges in reader.read_all(wanted)}
    except PermissionError:
        detail = "its page bits cannot be read: private memory is known per mapping, not per symbol"
        return None, (Note("page-bits-denied", source, detail),)
    except FileNotFoundError:
        return None, (Note("page-bits-denied", source, "this kernel has no page bits (CONFIG_PROC_PAGE_MONITOR)"),)
    except OSError as error:
        raise _access_error(error, source) from error
    kept, notes = _without_wrong_bits(folder, memory, pages, source)
    return kept, (*notes, *_huge_page_notes(folder, memory, pages, source))


def _huge_page_notes(folder: int, memory: MemoryMap, pages: Pages, source: str) -> list[Note]:
    """Return a note where the kernel keeps huge pages of which the process has released parts."""
    if not any(map(has_parts_of_huge_pages, memory.mappings)):
        return []
    from footprint.process.huge_pages import read_released_bytes  # noqa: PLC0415 # few programs have them

    size_bytes = read_released_bytes(folder, memory, pages, os.sysconf("SC_PAGE_SIZE"))
    detail = (
        f"{format_bytes(size_bytes)} of its huge pages that it has released stay charged to its control group until "
        "the kernel needs memory and splits these pages: they are in no figure"
    )
    return [Note("huge-pages-released", source, detail)] if size_bytes else []


def _shared_swap(folder: int, memory: MemoryMap) -> frozenset[int]:
    """Read the swap entries of mappings whose swapped pages others have, too; none where only root may read them."""
    shared = [m for m in memory.mappings if m.counters.swap_share_bytes() is not None and not m.is_shared]
    if not shared:
        return frozenset()
    try:
        with PageReader(folder, os.sysconf("SC_PAGE_SIZE")) as reader:
            entries = chain.from_iterable(map(reader.read_swap_entries, shared))
            numbers = frozenset(islice(entries, MOST_SWAP_ENTRIES + 1))
    except OSError:
        return frozenset()
    return frozenset() if 0 in numbers or len(numbers) > MOST_SWAP_ENTRIES else numbers


def _without_wrong_bits(
    folder: int, memory: MemoryMap, pages: Pages, source: str
) -> tuple[Pages | None, tuple[Note, ...]]:
    """Drop the page bits of mappings whose counters say otherwise, unless the memory changed meanwhile.

    For a huge page that is mapped whole, the state of its first page decides all of its page bits. After a fork the
    other process may have split it and copied only this page: the bits then call all 2 MiB private.
    """
    doubtful = {m.start_addr: pages[m.start_addr] for m in contradicted(pages, memory)}
    if not doubtful:
        return pages, ()
    wrong = contradicted(doubtful, memory, parse_maps(_stream(folder, "smaps", source), source))
    if not wrong:
        return pages, ()
    bits_bytes = sum(_resident_bytes(pages[mapping.start_addr]) for mapping in wrong)
    counted_bytes = sum(mapping.counters.private_bounds()[1] for mapping in wrong)
    mappings = f"{len(wrong)} mapping{'s' if len(wrong) > 1 else ''}"
    detail = (
        f"the page bits of {mappings} show {format_bytes(bits_bytes)} of private memory, the counters "
        f"{format_bytes(counted_bytes)}, as after a fork that split huge pages: the counters are used"
    )
    told_by_counters = {mapping.start_addr for mapping in wrong}
    kept = {addr: ranges for addr, ranges in pages.items() if addr not in told_by_counters}
    return kept, (Note("page-bits-differ", source, detail),)


def contradicted(pages: Pages, before: MemoryMap, after: MemoryMap | None = None) -> list[Mapping]:
    """Return the mappings whose counters exclude what their page bits show.

    Args:
        pages: The page bits, by the start of each mapping.
        before: The counters, which were read before the page bits.
        after: The counters after them; what lies between both is what changed meanwhile. None for the same.
    """
    bounds_before = _bounds(before, pages)
    bounds_after = bounds_before if after is None else _bounds(after, pages)
    odd = []
    for mapping in (after or before).mappings:
        start_addr = mapping.start_addr
        if start_addr not in bounds_after:
            continue
        least, most = bounds_after[start_addr]
        least_before, most_before = bounds_before.get(start_addr, (least, most))
        if not min(least, least_before) <= _resident_bytes(pages[start_addr]) <= max(most, most_before):
            odd.append(mapping)
    return odd


def _bounds(memory: MemoryMap, pages: Pages) -> dict[int, tuple[int, int]]:
    """Compute for each mapping with page bits how many bytes its counters allow to be private."""
    # Thousands of mappings have the same counters, which the memory map keeps once.
    by_counters: dict[int, tuple[int, int]] = {}
    bounds_of = {}
    for mapping in memory.mappings:
        if mapping.start_addr in pages:
            counters = mapping.counters
            bounds = by_counters.get(id(counters))
            if bounds is None:
                bounds = by_counters[id(counters)] = counters.private_bounds()
            bounds_of[mapping.start_addr] = bounds
    return bounds_of


def _resident_bytes(ranges: Sequence[PageRange]) -> int:
    size_bytes = 0
    for start_addr, end_addr, is_swapped in ranges:
        if not is_swapped:
            size_bytes += end_addr - start_addr
    return size_bytes


def _has_own_pages(mapping: Mapping) -> bool:
    count = mapping.counters.get
    # Pages of the hugetlb pool look anonymous in the page bits. They have counters of their own.
    return (count("Anonymous") != 0 or bool(count("Swap"))) and " ht" not in f" {mapping.vm_flags}"


def _changes(memory: MemoryMap, rollup: Counters | None, source: str) -> list[Note]:
    """Compare the sums over the mappings with the sums of the kernel, which were read directly after."""
    if rollup is None or memory.dialect != "smaps":
        return []
    differing = []
    keys = "Rss", "Anonymous", "Swap"
    for key, then in zip(keys, memory.sums(*keys), strict=True):
        now = rollup.get(key)
        if now is not None and then != now:
            differing.append(f"{key} {then} to {now} bytes")
    if not differing:
        return []
    detail = f"its memory changed while it was read: {', '.join(differing)}; stop it for an exact picture"
    return [Note("changed-while-read", source, detail)]
