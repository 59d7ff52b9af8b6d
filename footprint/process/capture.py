"""A capture: the kernel's data about processes in one file, to be audited on another machine.

A capture is a zip file without comment. `footprint-capture.json` names the format, `footprint-capture/1`, and holds:

    tool       name, version
    host       kernel, machine, page_bytes, pointer_bits, clock_ticks_per_second,
               thp (the text of /sys/kernel/mm/transparent_hugepage/enabled, or null)
    capture_host  where and when it was made, as `CaptureHost` describes it
    memory_files  who keeps the files in memory of the processes, where they have any: keepers (device, inode, pids),
               parents (of each of these pids, and of theirs), unread_count
    processes  for each one: pid, command, start_ticks (since boot), thread_stack_addrs, thread_stack_blocks, is_frozen,
               members  the names of its members in the zip file: PID/NAME
               address_space_pid  the first process that has the same address space, or null where nobody compared them
               notes    problems while reading: slug, subject, detail; the first process also has those that were
                        not readable
               open_files  the open file descriptions that it pays for, as `OpenFile` describes them
               kernel_holdings  what it has in the kernel besides, as `KernelHoldings` describes it
               captured_at  when its memory was read, in UTC: 2026-11-27T19:40:00Z
               allocator_accounts  none, or one: its heap as its allocator has it, as `AllocatorAccount` describes it
               placement  who runs it, as `Placement` describes it
               allocator_notes  why that was not read, or not whole
               allocated  what each file in memory holds that it maps: device, inode, size_bytes
               files    each mapped file once: path, inode, device, size_bytes and build_id or null

`findings.json` is there where the programs and libraries were searched: a list, each with `pids` and the `findings`
that these processes have in common, as `Finding` describes them.

Members of a process:

    status          the text of the kernel
    smaps, or maps  the text of the kernel
    smaps_rollup    the text of the kernel, since Linux 4.14
    pages           the pages that only this process holds, where readable, in the format of `page_lines`
    shared_swap     the swap entries of mappings whose swapped pages others have, too, where readable: in each line a
                    first one and how many follow each other, in hexadecimal

Names that are not UTF-8 are lone surrogates in the JSON. Unknown members and keys are ignored: an addition keeps the
number of the format, a change of meaning raises it.
"""

import json
import os
import platform
import re
import struct
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Dict
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO, Annotated, Any, Final, NamedTuple, Protocol

from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, UsageError
from footprint.json.codec import decode, encode
from footprint.json.stream import parsed, parsed_object
from footprint.members import LATER, Address, Bounds, ContentBytes, KernelCount, Later
from footprint.model.finding import Finding
from footprint.model.heap_account import AllocatorAccount
from footprint.process.bounded_zip import MOST_TOTAL_BYTES, BoundedZip
from footprint.process.descriptions import OpenFile, read_own_open_files
from footprint.process.freezer import frozen
from footprint.process.mappings import MemoryMap, ThreadStacks, open_mapped_file
from footprint.process.maps_text import parse_maps, saved_rollup
from footprint.process.memory_files import FileKeepers, MemoryFile, read_keepers
from footprint.process.origin import CaptureHost, Placement, read_capture_host, read_placement
from footprint.process.pages import page_lines, read_page_lines
from footprint.process.snapshot import (
    MOST_SWAP_ENTRIES,
    CapturedHeap,
    FileFacts,
    MappedIdentity,
    Snapshot,
    first_of_address_spaces,
    process_folder,
    read_process,
    read_whole,
)
from footprint.process.status import NO_HOLDINGS, KernelHoldings, parse_stat, parse_status
from footprint.system.limits import draw_bytes
from footprint.text.command_line import shown_command
from footprint.text.units import decimal

_MANIFEST: Final = "footprint-capture.json"
_FINDINGS: Final = "findings.json"
_FORMAT: Final = "footprint-capture/1"
_MOST_MANIFEST_BYTES: Final = 16 << 20
_MOST_SHORT_TEXT_BYTES: Final = 1 << 20
_MOST_FINDINGS_BYTES: Final = 32 << 20
_ROW_BYTES: Final = 1 << 10
_MOST_PAGE_BYTES: Final = 1 << 24
_RUN: Final = re.compile(rb"([0-9a-f]{1,16}) ([0-9a-f]{1,6})")
_THP: Final = "/sys/kernel/mm/transparent_hugepage/enabled"

_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")

BuildIdOf = Callable[[bytes | memoryview, str], str | None]


class HeapOf(Protocol):
    """Reads the heap of a live process as its allocator has it."""

    def __call__(self, snapshot: Snapshot, /, process_count: int) -> CapturedHeap:
        """Return what its allocator says; `process_count` processes share the time for it."""


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Captured:
    """The contents of a capture that was written.

    Attributes:
        pids: The processes in it.
        mapping_count: The number of their mappings.
        size_bytes: The size of the file.
        notes: Problems while reading, and the processes that were not readable.
    """

    pids: tuple[int, ...]
    mapping_count: int
    size_bytes: int
    notes: tuple[Note, ...]


class Freeze(NamedTuple):
    """How processes are stopped while they are read.

    Attributes:
        is_together: Whether all stand still at one moment; else one after the other.
        longest_seconds: How long each may be stopped, or all together.
    """

    is_together: bool
    longest_seconds: float


def capture_processes(
    pids: Sequence[int],
    file: IO[bytes],
    *,
    freeze: Freeze | None,
    version: str,
    build_id_of: BuildIdOf,
    heap_of: HeapOf,
    is_anonymous: bool = False,
    find: Callable[[Snapshot], tuple[Finding, ...]] | None = None,
) -> Captured:
    """Write a capture of live processes. Where one of several is not readable, a note says so.

    Args:
        pids: The process IDs.
        file: The file to write; after an error its contents are not a capture.
        freeze: How processes are stopped while they are read; None to let them run. Stopped processes stay stopped.
        version: The version of footprint.
        build_id_of: Returns the build-id of a file from its bytes and name.
        heap_of: Reads the heap of a live process as its allocator has it.
        is_anonymous: Whether the name of the host is left out.
        find: Searches the program and the libraries of a process, after all of them were read and run on; None for no
            search.

    Raises:
        AccessError: Where no process exists, or we may read none.
        UnsupportedError: Where no process has memory.
        UsageError: Where they need more space than a capture has, or one is footprint itself and is to be stopped.
    """
    pids = tuple(dict.fromkeys(pids))
    notes: list[Note] = []
    searched: list[_Recording] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        writer = _Writer(archive)
        open_files = read_own_open_files(pids)
        for together in [pids] if freeze is None or freeze.is_together else [(pid,) for pid in pids]:
            with frozen(together, freeze.longest_seconds) if freeze else nullcontext() as cause:
                for pid in together:
                    try:
                        recording = _record(pid, cause, partial(heap_of, process_count=len(together)))
                    except (AccessError, UnsupportedError) as error:
                        _note_or_raise(error, pid, pids, notes)
                        continue
                    writer.store(recording, _file_entries(recording.snapshot, build_id_of), open_files.get(pid, ()))
                    notes += recording.notes
                    if find is not None:
                        searched.append(recording)
        if not writer.entries:
            raise AccessError(notes[0].subject, f"no process could be read: {notes[0].detail}")
        writer.entries[0]["notes"] += _note_entries([note for note in notes if note.slug == "process-not-read"])
        firsts = first_of_address_spaces(writer.places)
        for entry in writer.entries:
            entry["address_space_pid"] = firsts[entry["pid"]]
            entry["placement"] = read_placement(entry["pid"])._asdict()
        if find is not None:
            notes += writer.store_findings(searched, find)
        host = read_capture_host(is_anonymous=is_anonymous)
        writer.finish(version, read_keepers(writer.memory_files), host)
    written = tuple(entry["pid"] for entry in writer.entries)
    return Captured(written, writer.mapping_count, file.tell(), tuple(notes))


def _note_or_raise(error: FootprintError, pid: int, pids: Sequence[int], notes: list[Note]) -> None:
    if len(pids) == 1:
        raise error
    notes.append(Note("process-not-read", f"pid {pid}", error.detail))


@dataclass(frozen=True, slots=True)
class _Recording:
    """A live process with the texts of the kernel about it."""

    snapshot: Snapshot
    texts: dict[str, bytes]
    start_ticks: int
    is_frozen: bool
    notes: tuple[Note, ...]
    captured_at: str


def _record(
    pid: int, cause: Callable[[int], str | None] | None, heap_of: Callable[[Snapshot], CapturedHeap]
) -> _Recording:
    """Read a process; `cause` says why it does not stand still, and is None where we did not stop it."""
    source = f"pid {pid}"
    pieces: dict[str, list[bytes]] = {}
    is_moving = cause is None or cause(pid) is not None
    with process_folder(pid) as folder:
        before = read_whole(folder, "maps", source) if is_moving else b""
        snapshot = read_process(pid, lambda name, piece: pieces.setdefault(name, []).append(piece))
        after = read_whole(folder, "maps", source) if is_moving else b""
        # The directory is still readable, so the PID was that of this process all the time.
        stat = parse_stat(read_whole(folder, "stat", source))
    snapshot = snapshot._replace(captured_heap=heap_of(snapshot))
    texts = {name: b"".join(parts) for name, parts in pieces.items()}
    notes = [*snapshot.notes, *_differences(before, after, source)]
    why_moving = cause(pid) if cause else None
    if why_moving is not None:
        notes.append(Note("not-frozen", source, f"{why_moving}: it was read while it ran"))
    return _Recording(
        snapshot,
        texts,
        stat.start_ticks if stat else 0,
        cause is not None and why_moving is None,
        tuple(notes),
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _differences(before: bytes, after: bytes, source: str) -> list[Note]:
    """Compare the mappings before and after the read."""
    if before == after:
        return []
    then, now = set(before.splitlines()), set(after.splitlines())
    detail = (
        f"its mappings changed while it was read: of {len(then)} {len(then - now)} are gone or changed, "
        f"{len(now - then)} are new or changed; use --freeze for an exact picture"
    )
    return [Note("changed-while-read", source, detail)]


class _Writer:
    """Writes the members of a capture, up to the size that `read_capture` accepts."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._total_bytes = 0
        self.entries: list[dict[str, Any]] = []
        self.memory_files: dict[int, tuple[MemoryFile, ...]] = {}
        self.places: dict[int, object] = {}
        self.mapping_count = 0

    def store(self, recording: _Recording, files: list[dict[str, Any]], open_files: Sequence[OpenFile]) -> None:
        """Write the members of a process, and keep its entry for the JSON."""
        snapshot, heap = recording.snapshot, recording.snapshot.captured_heap
        members = dict(recording.texts)
        if snapshot.pages is not None:
            members["pages"] = b"".join(page_lines(snapshot.pages))
        if snapshot.shared_swap:
            members["shared_swap"] = b"".join([b"%x %x\n" % run for run in _runs(sorted(snapshot.shared_swap))])
        for name, text in members.items():
            self._write(f"{snapshot.process_id}/{name}", text)
        self.mapping_count += len(snapshot.memory.mappings)
        self.places[snapshot.process_id or 0] = snapshot.place
        self.memory_files[snapshot.process_id or 0] = snapshot._replace(open_files=tuple(open_files)).memory_files
        self.entries.append(
            {
                "pid": snapshot.process_id,
                "command": snapshot.command,
                "start_ticks": recording.start_ticks,
                "thread_stack_addrs": list(snapshot.thread_stacks.pointers),
                "thread_stack_blocks": [
                    {"start_addr": start, "end_addr": end} for start, end in snapshot.thread_stacks.blocks
                ],
                "is_frozen": recording.is_frozen,
                "members": list(members),
                "notes": _note_entries(recording.notes),
                "files": files,
                "allocated": [
                    {"device": device, "inode": inode, "size_bytes": size_bytes}
                    for (device, inode), size_bytes in snapshot.allocated_bytes.items()
                ],
                "open_files": [open_file._asdict() for open_file in open_files],
                "kernel_holdings": [snapshot.kernel_holdings._asdict()],
                "captured_at": recording.captured_at,
                "allocator_accounts": [heap.account._asdict()] if heap.account else [],
                "allocator_notes": _note_entries(heap.notes),
            }
        )

    def store_findings(
        self, recordings: Sequence[_Recording], find: Callable[[Snapshot], tuple[Finding, ...]]
    ) -> list[Note]:
        """Search processes and write the findings; those that map the same files have them in common."""
        groups: dict[frozenset[object], tuple[list[int], list[Any]]] = {}
        notes: list[Note] = []
        left_bytes = _MOST_FINDINGS_BYTES >> 1  # the other half is for the process IDs
        for recording in recordings:
            pid, source = recording.snapshot.process_id or 0, f"pid {recording.snapshot.process_id}"
            try:
                mappings = recording.snapshot.memory.mappings
                mapped = frozenset(
                    (mapping.device, mapping.inode, mapping.name) for mapping in mappings if mapping.inode
                )
                if mapped not in groups:
                    with process_folder(pid) as folder:
                        stat = parse_stat(read_whole(folder, "stat", source))
                    if stat is None or stat.start_ticks != recording.start_ticks:
                        raise AccessError(source, "it has ended")
                    findings = list(map(encode, find(recording.snapshot)))
                    left_bytes -= len(json.dumps(findings))
                    if left_bytes < 0:
                        raise UnsupportedError(source, "the capture has more findings than one file holds")
                    groups[mapped] = [], findings
                groups[mapped][0].append(pid)
            except FootprintError as error:
                notes.append(Note("process-not-searched", source, f"{error.detail}: it was captured without findings"))
        entries = [{"pids": pids, "findings": findings} for pids, findings in groups.values()]
        self._write(_FINDINGS, json.dumps(entries).encode("ascii"))
        return notes

    def finish(self, version: str, keepers: FileKeepers | None, capture_host: CaptureHost | None = None) -> None:
        tool = {"name": "footprint", "version": version}
        manifest = {"format": _FORMAT, "tool": tool, "host": _host(), "processes": self.entries}
        if capture_host is not None:
            manifest["capture_host"] = capture_host._asdict()
        if keepers is not None:
            kept = [
                {"device": device, "inode": inode, "pids": sorted(pids)}
                for (device, inode), pids in keepers.pids.items()
            ]
            manifest["memory_files"] = {
                "keepers": kept,
                "parents": {str(pid): parent for pid, parent in keepers.parents.items()},
                "unread_count": keepers.unread_count,
            }
        text = json.dumps(manifest, indent=1).encode("ascii")
        if len(text) > _MOST_MANIFEST_BYTES:
            raise UsageError("the processes map more files than one capture can list: capture fewer at once")
        self._write(_MANIFEST, text)

    def _write(self, name: str, text: bytes) -> None:
        self._total_bytes += len(text)
        if self._total_bytes > MOST_TOTAL_BYTES:
            raise UsageError("the processes have more mappings than one capture can hold: capture fewer at once")
        member = zipfile.ZipInfo(name)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = 0o600 << 16
        self._archive.writestr(member, text)


def _note_entries(notes: Sequence[Note]) -> list[dict[str, str]]:
    return [{"slug": note.slug, "subject": note.subject, "detail": note.detail} for note in notes]


def _file_entries(snapshot: Snapshot, build_id_of: BuildIdOf) -> list[dict[str, Any]]:
    """Collect the facts that identify each mapped file on another machine."""
    facts_by_file: dict[MappedIdentity, FileFacts] = {}
    for mapping in snapshot.memory.mappings:
        identity = (mapping.device, mapping.inode, mapping.name)
        if not mapping.inode or identity in facts_by_file:
            continue
        facts_by_file[identity] = FileFacts(None, None)
        file = open_mapped_file(mapping, snapshot.pid)
        if not isinstance(file, Note):
            facts_by_file[identity] = FileFacts(len(file.data), build_id_of(file.data, mapping.name))
    return [
        {"path": path, "inode": inode, "device": device, "size_bytes": facts.size_bytes, "build_id": facts.build_id}
        for (device, inode, path), facts in facts_by_file.items()
    ]


def _host() -> dict[str, Any]:
    try:
        with open(_THP, encoding="ascii", errors="replace") as setting:
            thp = setting.read().strip()
    except OSError:
        thp = None
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "pointer_bits": 8 * struct.calcsize("P"),
        "clock_ticks_per_second": os.sysconf("SC_CLK_TCK"),
        "thp": thp,
    }


# --- reading ----------------------------------------------------------------------------------------------------------


class _Host(NamedTuple):
    kernel: str
    machine: str
    page_bytes: Annotated[int, Bounds(0, _MOST_PAGE_BYTES + 1)]


class _Block(NamedTuple):
    start_addr: Address
    end_addr: Address


class _NoteEntry(NamedTuple):
    slug: str
    subject: str
    detail: str


class _FileEntry(NamedTuple):
    path: str
    inode: Address
    device: str
    size_bytes: Annotated[Address | None, LATER]
    build_id: Annotated[str | None, LATER]


class _AllocatedEntry(NamedTuple):
    device: str
    inode: Address
    size_bytes: ContentBytes


class _ProcessEntry(NamedTuple):
    pid: KernelCount
    command: str
    members: tuple[str, ...]
    thread_stack_addrs: tuple[Address, ...]
    thread_stack_blocks: Annotated[tuple[_Block, ...], Later(())]
    notes: tuple[_NoteEntry, ...]
    files: tuple[_FileEntry, ...]
    allocated: Annotated[tuple[_AllocatedEntry, ...], Later(())]
    address_space_pid: Annotated[KernelCount | None, LATER]
    open_files: Annotated[tuple[OpenFile, ...], Later(())]
    kernel_holdings: Annotated[tuple[KernelHoldings, ...], Later(())]
    captured_at: Annotated[str, Later("")]
    allocator_accounts: Annotated[tuple[AllocatorAccount, ...], Later(())]
    allocator_notes: Annotated[tuple[_NoteEntry, ...], Later(())]
    placement: Annotated[Placement, Later(Placement())]


class _SearchedProcesses(NamedTuple):
    pids: tuple[KernelCount, ...]
    findings: tuple[Finding, ...]


class _KeeperEntry(NamedTuple):
    device: Annotated[str | None, LATER]
    inode: Annotated[Address | None, LATER]
    pids: tuple[KernelCount, ...]


class _KeptFiles(NamedTuple):
    keepers: tuple[_KeeperEntry, ...]
    parents: Dict[str, KernelCount]
    unread_count: KernelCount


class _Manifest(NamedTuple):
    host: _Host
    processes: tuple[_ProcessEntry, ...]
    memory_files: Annotated[_KeptFiles | None, LATER]
    capture_host: Annotated[CaptureHost, Later(CaptureHost())]


def read_capture(data: bytes | memoryview, source: str) -> tuple[Snapshot, ...]:
    """Read the processes of a capture, with the same facts as `read_process`.

    Args:
        data: The whole file.
        source: The name of the file, for messages.

    Of several processes, one that is damaged is left out, and a note of the first one says so.

    Raises:
        InputError: Where it is not a capture, or is cut, damaged or contradictory.
        UnsupportedError: Where its format is newer.
    """
    archive = BoundedZip(data, source)
    if _MANIFEST not in archive:
        raise InputError(source, f"a zip file, but not a capture: it has no {_MANIFEST}")
    text = parsed_object(archive.read(_MANIFEST, _MOST_MANIFEST_BYTES), source, _MANIFEST)
    _check_format(text.get("format"), source)
    host, processes, kept, capture_host = decode(_Manifest, text, source, f"{_MANIFEST}: ")
    if host.page_bytes < 512 or host.page_bytes & (host.page_bytes - 1):
        raise InputError(source, f"{_MANIFEST}: pages of {host.page_bytes} bytes")
    keepers = None if kept is None else _keepers(kept, source)
    snapshots: dict[int, Snapshot] = {}
    lost: list[tuple[Note, InputError]] = []
    for process in processes:
        # Check before reading: a thousand entries of one process would be read a thousand times.
        if process.pid in snapshots:
            raise InputError(source, f"{_MANIFEST}: process {process.pid} is listed twice")
        try:
            snapshots[process.pid] = _snapshot(process, archive, source, host)._replace(
                keepers=keepers, capture_host=capture_host
            )
        except InputError as error:
            lost.append((Note("process-not-read", f"pid {process.pid}", f"{error.detail}; it is left out"), error))
    if lost and not snapshots:
        raise lost[0][1]
    first, *others = snapshots.values() or [None]
    return () if first is None else (first._replace(notes=(*first.notes, *(note for note, _ in lost))), *others)


def read_findings_of_capture(data: bytes | memoryview, source: str) -> Dict[int, tuple[Finding, ...]]:
    """Read what was found in the program and the libraries of each process of a capture that was searched.

    Raises:
        InputError: Where it is not a capture, or is damaged.
        LimitError: Where it makes more rows than the limits allow.
    """
    archive = BoundedZip(data, source)
    if _FINDINGS not in archive:
        return {}
    entries = parsed(archive.read(_FINDINGS, _MOST_FINDINGS_BYTES), source, _FINDINGS)
    groups = decode(tuple[_SearchedProcesses, ...], entries, source, f"{_FINDINGS}: ")
    for group in groups:
        # Each process has them as rows of its own.
        texts = (text for f in group.findings for text in (f.subject, f.message, f.remedy, f.object_path, *f.leaves))
        draw_bytes(len(group.pids) * (_ROW_BYTES * len(group.findings) + sum(map(len, texts))), source)
    return {pid: group.findings for group in groups for pid in group.pids}


def read_host_of_capture(data: bytes | memoryview, source: str) -> CaptureHost:
    """Read where and when a capture was made, without its processes; nothing is known of earlier captures.

    Raises:
        InputError: Where it is not a capture, or is damaged.
    """
    archive = BoundedZip(data, source)
    if _MANIFEST not in archive:
        return CaptureHost()
    text = parsed_object(archive.read(_MANIFEST, _MOST_MANIFEST_BYTES), source, _MANIFEST)
    return decode(CaptureHost, text.get("capture_host", {}), source, f"{_MANIFEST}: ")


def _check_format(name: object, source: str) -> None:
    if name == _FORMAT:
        return
    if not isinstance(name, str):
        raise InputError(source, f"{_MANIFEST}: `format` is {'missing' if name is None else 'not a text'}")
    if re.fullmatch(r"footprint-capture/[0-9]{1,9}", name):
        raise UnsupportedError(source, f"a capture of format {name}: this version reads {_FORMAT}")
    raise InputError(source, f"{_MANIFEST}: not a format of captures: {name[:80]!r}")


def _snapshot(process: _ProcessEntry, archive: BoundedZip, source: str, host: _Host) -> Snapshot:
    """Read one process, with the functions that read a live one."""
    pid, stored = process.pid, process.members
    name = "smaps" if "smaps" in stored else "maps"
    memory = _memory(archive, f"{pid}/{name}", pid, source)
    pages = None
    if "pages" in stored:
        pages = read_page_lines(archive.pieces(f"{pid}/pages"), memory, host.page_bytes, source, f"{pid}/pages")
    entries = archive.pieces(f"{pid}/shared_swap") if "shared_swap" in stored else ()
    rollup = archive.read(f"{pid}/smaps_rollup", _MOST_SHORT_TEXT_BYTES) if "smaps_rollup" in stored else None
    notes = [Note(*note) for note in process.notes]
    return Snapshot(
        source=source,
        pid=pid,
        is_live=False,
        command=shown_command(process.command),
        memory=memory,
        rollup=saved_rollup(rollup, source),
        status=parse_status(archive.read(f"{pid}/status", _MOST_SHORT_TEXT_BYTES)),
        thread_stacks=ThreadStacks(process.thread_stack_addrs, process.thread_stack_blocks),
        pages=pages,
        page_bytes=host.page_bytes,
        host={"kernel": host.kernel, "machine": host.machine},
        # A newer version of footprint may find more in the texts than the version that wrote the capture.
        notes=(*notes, *(note for note in memory.notes if note not in notes)),
        files={(f.device, f.inode, f.path): FileFacts(f.size_bytes, f.build_id) for f in process.files},
        allocated_bytes={(file.device, file.inode): file.size_bytes for file in process.allocated},
        shared_swap=_swap_entries(b"".join(entries), source),
        address_space_pid=process.address_space_pid,
        open_files=tuple([file._replace(holder_count=max(1, file.holder_count)) for file in process.open_files]),
        kernel_holdings=next(iter(process.kernel_holdings), NO_HOLDINGS),
        captured_heap=_captured_heap(process, source),
        placement=process.placement,
    )


def _captured_heap(process: _ProcessEntry, source: str) -> CapturedHeap:
    """Read the account of the allocator of a process, and check that it adds up."""
    notes = tuple([Note(*note) for note in process.allocator_notes])
    for account in process.allocator_accounts:
        moment = process.captured_at
        if not account.adds_up or not _MOMENT.fullmatch(moment):
            raise InputError(source, f"{_MANIFEST}: the account of an allocator contradicts itself")
        if len(process.allocator_accounts) > 1:
            raise InputError(source, f"{_MANIFEST}: process {process.pid} has several accounts of its allocator")
        return CapturedHeap(account._replace(captured_at=moment), notes)
    return CapturedHeap(None, notes)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first of numbers that follow each other, and how many these are."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], at - start
            start = at


def _swap_entries(text: bytes, source: str) -> frozenset[int]:
    """Read swap entries."""
    entries: set[int] = set()
    for line in text.split(b"\n")[:-1]:
        run = _RUN.fullmatch(line)
        count = int(run[2], 16) if run else 0
        if run is None or len(entries) + count > MOST_SWAP_ENTRIES:
            raise InputError(source, f"not a run of swap entries, or too many of them: {line[:80]!r}")
        entries.update(range(int(run[1], 16), int(run[1], 16) + count))
    return frozenset(entries)


def _keepers(kept: _KeptFiles, source: str) -> FileKeepers:
    """Read who kept which file in memory."""
    parents = {decimal(pid) or 0: parent for pid, parent in kept.parents.items()}
    if None in map(decimal, kept.parents):
        raise InputError(source, f"{_MANIFEST}: the parents of what is no process")
    pids = {(keeper.device, keeper.inode): frozenset(keeper.pids) for keeper in kept.keepers}
    return FileKeepers(pids, parents, kept.unread_count)


def _memory(archive: BoundedZip, member: str, pid: int, source: str) -> MemoryMap:
    pieces = archive.pieces(member)
    try:
        # With the source name of the live process, so that its notes are equal.
        return parse_maps(pieces, f"pid {pid}")
    except InputError as error:
        if error.file == source:
            raise
        raise InputError(source, f"{member}: {error.detail}") from error
