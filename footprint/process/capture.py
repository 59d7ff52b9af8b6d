"""A capture: the kernel's data about processes in one file, to be audited on another machine.

A capture is a zip file without comment. `footprint-capture.json` names the format, `footprint-capture/1`, and holds:

    tool       name, version
    host       kernel, machine, page_bytes, pointer_bits, clock_ticks_per_second,
               thp (the text of /sys/kernel/mm/transparent_hugepage/enabled, or null)
    processes  for each one: pid, command, start_ticks (since boot), thread_stack_addrs, is_frozen,
               members  the names of its members in the zip file: PID/NAME
               notes    problems while reading: slug, subject, detail; the first process also has those that were
                        not readable
               open_files  the open file descriptions that it pays for, as `OpenFile` describes them
               allocated  what each memory that is mapped shared holds in all: device, inode, size_bytes
               files    each mapped file once: path, inode, device, size_bytes and build_id or null

Members of a process:

    status          the text of the kernel
    smaps, or maps  the text of the kernel
    smaps_rollup    the text of the kernel, since Linux 4.14
    pages           the pages that only this process holds, where readable, in the format of `page_lines`

Names that are not UTF-8 are lone surrogates in the JSON. Unknown members and keys are ignored: an addition keeps the
number of the format, a change of meaning raises it.
"""

import json
import os
import platform
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple

from footprint.command_line import shown_command
from footprint.errors import AccessError, FootprintError, InputError, Note, UnsupportedError, UsageError
from footprint.process.bounded_zip import MOST_TOTAL_BYTES, BoundedZip
from footprint.process.descriptions import OpenFile, OpenFileKind, read_own_open_files
from footprint.process.freezer import held
from footprint.process.mapped_files import open_mapped_file
from footprint.process.mappings import MemoryMap
from footprint.process.maps_text import parse_maps, saved_rollup
from footprint.process.page_lines import page_lines, read_page_lines
from footprint.process.snapshot import (
    FileFacts,
    FileIdentity,
    Snapshot,
    process_folder,
    read_process,
    read_whole,
)
from footprint.process.stat import parse_stat
from footprint.process.status import parse_status
from footprint.typed_json import Fields, parse_fields

__all__ = ("Captured", "Freeze", "capture_processes", "read_capture")

_MANIFEST: Final = "footprint-capture.json"
_FORMAT: Final = "footprint-capture/1"
_MOST_MANIFEST_BYTES: Final = 16 << 20
_MOST_SHORT_TEXT_BYTES: Final = 1 << 20
_MOST_ADDR: Final = (1 << 64) - 1
_MOST_PAGE_BYTES: Final = 1 << 24
_MOST_PID: Final = (1 << 31) - 1
_MOST_CONTENT_BYTES: Final = 1 << 48
_THP: Final = "/sys/kernel/mm/transparent_hugepage/enabled"

BuildIdOf = Callable[[bytes | memoryview, str], str | None]


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
    pids: Sequence[int], file: IO[bytes], *, freeze: Freeze | None, version: str, build_id_of: BuildIdOf
) -> Captured:
    """Write a capture of live processes. Where one of several is not readable, a note says so.

    Args:
        pids: The process IDs.
        file: The file to write; after an error its contents are not a capture.
        freeze: How processes are stopped while they are read; None to let them run. Stopped processes stay stopped.
        version: The version of footprint.
        build_id_of: Returns the build-id of a file from its bytes and name.

    Raises:
        AccessError: Where no process exists, or we may read none.
        UnsupportedError: Where no process has memory.
        UsageError: Where they need more space than a capture has, or one is footprint itself and is to be stopped.
    """
    pids = tuple(dict.fromkeys(pids))
    notes: list[Note] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        writer = _Writer(archive)
        open_files = read_own_open_files(pids)
        for together in [pids] if freeze is None or freeze.is_together else [(pid,) for pid in pids]:
            with held(together, freeze.longest_seconds) if freeze else nullcontext() as cause:
                for pid in together:
                    try:
                        recording = _record(pid, cause)
                    except (AccessError, UnsupportedError) as error:
                        _note_or_raise(error, pid, pids, notes)
                        continue
                    writer.store(recording, _file_entries(recording.snapshot, build_id_of), open_files.get(pid, ()))
                    notes += recording.notes
        if not writer.entries:
            raise AccessError(notes[0].subject, f"no process could be read: {notes[0].detail}")
        writer.entries[0]["notes"] += _told([one for one in notes if one.slug == "process-not-read"])
        writer.finish(version)
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


def _record(pid: int, cause: Callable[[int], str | None] | None) -> _Recording:
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
    texts = {name: b"".join(parts) for name, parts in pieces.items()}
    notes = [*snapshot.notes, *_differences(before, after, source)]
    told = cause(pid) if cause else None
    if told is not None:
        notes.append(Note("not-frozen", source, f"{told}: it was read while it ran"))
    return _Recording(
        snapshot, texts, stat.start_ticks if stat else 0, cause is not None and told is None, tuple(notes)
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
        self.mapping_count = 0

    def store(self, recording: _Recording, files: list[dict[str, Any]], open_files: Sequence[OpenFile]) -> None:
        """Write the members of a process, and keep its entry for the JSON."""
        snapshot = recording.snapshot
        members = dict(recording.texts)
        if snapshot.pages is not None:
            members["pages"] = b"".join(page_lines(snapshot.pages))
        for name, text in members.items():
            self._write(f"{snapshot.process_id}/{name}", text)
        self.mapping_count += len(snapshot.memory.mappings)
        self.entries.append(
            {
                "pid": snapshot.process_id,
                "command": snapshot.command,
                "start_ticks": recording.start_ticks,
                "thread_stack_addrs": list(snapshot.thread_stack_addrs),
                "is_frozen": recording.is_frozen,
                "members": list(members),
                "notes": _told(recording.notes),
                "files": files,
                "allocated": [
                    {"device": device, "inode": inode, "size_bytes": size_bytes}
                    for (device, inode), size_bytes in snapshot.allocated_bytes.items()
                ],
                "open_files": [one._asdict() for one in open_files],
            }
        )

    def finish(self, version: str) -> None:
        tool = {"name": "footprint", "version": version}
        manifest = {"format": _FORMAT, "tool": tool, "host": _host(), "processes": self.entries}
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


def _told(notes: Sequence[Note]) -> list[dict[str, str]]:
    return [{"slug": one.slug, "subject": one.subject, "detail": one.detail} for one in notes]


def _file_entries(snapshot: Snapshot, build_id_of: BuildIdOf) -> list[dict[str, Any]]:
    """Collect the facts that identify each mapped file on another machine."""
    found: dict[FileIdentity, FileFacts] = {}
    for mapping in snapshot.memory.mappings:
        identity = (mapping.device, mapping.inode, mapping.name)
        if not mapping.inode or identity in found:
            continue
        found[identity] = FileFacts(None, None)
        file = open_mapped_file(mapping, snapshot.pid)
        if not isinstance(file, Note):
            found[identity] = FileFacts(len(file.data), build_id_of(file.data, mapping.name))
    return [
        {"path": path, "inode": inode, "device": device, "size_bytes": facts.size_bytes, "build_id": facts.build_id}
        for (device, inode, path), facts in found.items()
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


def read_capture(data: bytes | memoryview, source: str) -> tuple[Snapshot, ...]:
    """Read the processes of a capture, with the same facts as `read_process`.

    Args:
        data: The whole file.
        source: The name of the file, for messages.

    Raises:
        InputError: Where it is not a capture, or is cut, damaged or contradictory.
        UnsupportedError: Where its format is newer.
    """
    archive = BoundedZip(data, source)
    if _MANIFEST not in archive:
        raise InputError(source, f"a zip file, but not a capture: it has no {_MANIFEST}")
    manifest = parse_fields(archive.read(_MANIFEST, _MOST_MANIFEST_BYTES), source, _MANIFEST)
    _check_format(manifest.text("format"), source)
    host = manifest.fields("host")
    page_bytes = host.number("page_bytes", _MOST_PAGE_BYTES)
    if page_bytes < 512 or page_bytes & (page_bytes - 1):
        raise InputError(source, f"{_MANIFEST}: pages of {page_bytes} bytes")
    names = {"kernel": host.text("kernel"), "machine": host.text("machine")}
    snapshots: dict[int, Snapshot] = {}
    for process in manifest.each("processes"):
        pid = process.number("pid", _MOST_PID)
        # Check before reading: a thousand entries of one process would be read a thousand times.
        if pid in snapshots:
            raise InputError(source, f"{_MANIFEST}: process {pid} is listed twice")
        snapshots[pid] = _snapshot(process, pid, archive, source, names, page_bytes)
    return tuple(snapshots.values())


def _check_format(name: str, source: str) -> None:
    if name == _FORMAT:
        return
    if re.fullmatch(r"footprint-capture/[0-9]{1,9}", name):
        raise UnsupportedError(source, f"a capture of format {name}: this version reads {_FORMAT}")
    raise InputError(source, f"{_MANIFEST}: not a format of captures: {name[:80]!r}")


def _snapshot(
    process: Fields, pid: int, archive: BoundedZip, source: str, host: dict[str, str], page_bytes: int
) -> Snapshot:
    """Read one process, with the functions that read a live one."""
    stored = process.texts("members")
    name = "smaps" if "smaps" in stored else "maps"
    memory = _memory(archive, f"{pid}/{name}", pid, source)
    pages = None
    if "pages" in stored:
        pages = read_page_lines(archive.pieces(f"{pid}/pages"), memory, page_bytes, source, f"{pid}/pages")
    rollup = archive.read(f"{pid}/smaps_rollup", _MOST_SHORT_TEXT_BYTES) if "smaps_rollup" in stored else None
    notes = [Note(one.text("slug"), one.text("subject"), one.text("detail")) for one in process.each("notes")]
    return Snapshot(
        source=source,
        pid=pid,
        is_live=False,
        command=shown_command(process.text("command")),
        memory=memory,
        rollup=saved_rollup(rollup, source),
        status=parse_status(archive.read(f"{pid}/status", _MOST_SHORT_TEXT_BYTES)),
        thread_stack_addrs=process.numbers("thread_stack_addrs", _MOST_ADDR),
        pages=pages,
        page_bytes=page_bytes,
        host=dict(host),
        # A newer version of footprint may find more in the texts than the version that wrote the capture.
        notes=(*notes, *(note for note in memory.notes if note not in notes)),
        files={
            (one.text("device"), one.number("inode", _MOST_ADDR), one.text("path")): FileFacts(
                one.optional_number("size_bytes", _MOST_ADDR), one.optional_text("build_id")
            )
            for one in process.each("files")
        },
        allocated_bytes={
            (one.text("device"), one.number("inode", _MOST_ADDR)): one.number("size_bytes", _MOST_CONTENT_BYTES)
            for one in process.each("allocated", is_optional=True)
        },
        open_files=tuple(_open_file(one, source) for one in process.each("open_files", is_optional=True)),
    )


def _open_file(told: Fields, source: str) -> OpenFile:
    try:
        kind = OpenFileKind(told.text("kind"))
    except ValueError as error:
        raise InputError(source, f"{_MANIFEST}: not a kind of open files: {error}") from error
    return OpenFile(
        told.number("descriptor", _MOST_PID),
        kind,
        told.number("device", _MOST_ADDR),
        told.number("inode", _MOST_ADDR),
        is_write_only=told.truth("is_write_only"),
        content_bytes=told.number("content_bytes", _MOST_CONTENT_BYTES),
        watch_count=told.number("watch_count", _MOST_PID),
        is_unread=told.truth("is_unread"),
        holder_count=max(1, told.number("holder_count", _MOST_PID)),
    )


def _memory(archive: BoundedZip, member: str, pid: int, source: str) -> MemoryMap:
    pieces = archive.pieces(member)
    try:
        # With the source name of the live process, so that its notes are equal.
        return parse_maps(pieces, f"pid {pid}")
    except InputError as error:
        if error.file == source:
            raise
        raise InputError(source, f"{member}: {error.detail}") from error
