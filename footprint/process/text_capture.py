"""A capture as text, as `footprint capture --script` writes it where footprint is not installed.

    footprint-text-capture/1 TOKEN
    kernel 6.1.0-37-amd64
    machine x86_64

    TOKEN 4711 status
    ...

An empty line and a line that begins with the token separate the texts. The token is random, so that no text of a
process holds it. Each text is named by the process and a file of /proc/PID. Besides these there are:

    fd N                            the target of a descriptor, and its fdinfo
    file DEVICE INODE SIZE PATH     the first bytes of a mapped file in hexadecimal digits
    allocated DEVICE INODE BLOCKS   no text: what a mapped file in memory holds, in blocks of 512 bytes
    held N BLOCKS                   no text: the same for the file in memory that a descriptor refers to

A process without maps ended before it was read. The last text is named `end`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.process.descriptions import (
    GIVEN_COUNT,
    OpenFile,
    OpenFileKind,
    classify,
    content_of_fdinfo,
    own_open_files,
    watches_of_fdinfo,
)
from footprint.process.mappings import ThreadStacks
from footprint.process.maps_text import parse_maps, saved_rollup
from footprint.process.origin import CaptureHost, memory_in, placement_in
from footprint.process.snapshot import BLOCK_BYTES, CapturedHeap, FileFacts, MappedIdentity, Snapshot, page_bytes_of
from footprint.process.status import parse_status
from footprint.text.command_line import command_line
from footprint.text.units import decimal

_FIRST_LINE: Final = re.compile(rb"footprint-text-capture/(\d{1,9}) ([0-9A-Za-z-]{3,64})")
_NAME: Final = re.compile(rb"(\d{1,10}) (\S.*)")
_FILE: Final = re.compile(rb"file (\S+) (\d{1,20}) (\d{1,20}|\?) (.*)")
_ALLOCATED: Final = re.compile(rb"allocated (\S+) (\d{1,20}) (\d{1,12})")
_HELD: Final = re.compile(rb"held (\d{1,9}) (\d{1,12})")
_DESCRIPTOR: Final = re.compile(rb"fd (\d{1,9})")
_LINK_INODE: Final = re.compile(rb"^[a-z]+:\[(\d{1,19})\]")
_INFO_INODE: Final = re.compile(rb"\nino:\s*(\d{1,19})")
_INFO_FLAGS: Final = re.compile(rb"\nflags:\s*([0-7]{1,12})")
_NET_TEXTS: Final = {
    b"net/tcp": OpenFileKind.TCP,
    b"net/tcp6": OpenFileKind.TCP,
    b"net/udp": OpenFileKind.UDP,
    b"net/udp6": OpenFileKind.UDP,
}
# Number, two addresses, state, queues to send and to receive, two timers, retransmits, user, timeout, inode.
_NET_ROW: Final = re.compile(
    rb"\s*\d+: \S+ \S+ \S+ ([0-9A-Fa-f]{1,8}):([0-9A-Fa-f]{1,8}) \S+ \S+\s+\d+\s+\d+ (\d{1,19}) "
)
_MEMORY_NAMES: Final = (b"smaps", b"maps")

Texts = dict[bytes, bytes]
"""The texts of one process by their name."""
BuildIdOfStart = Callable[[bytes], str | None]


def read_text_capture(text: bytes, source: str, build_id_of_start: BuildIdOfStart) -> tuple[Snapshot, ...]:
    """Read the processes of a capture as text.

    Args:
        text: The whole file.
        source: The name of the file, for messages.
        build_id_of_start: Returns the build-id of an ELF file by its first bytes.

    Raises:
        InputError: If it is cut or damaged.
        UnsupportedError: If its format is newer.
    """
    first = _FIRST_LINE.match(text)
    if first is None:
        raise InputError(source, "a capture as text whose first line is damaged", 0)
    if first[1] != b"1":
        raise UnsupportedError(source, f"a capture as text of format {int(first[1])}: this version reads 1")
    head, *parts = text.split(b"\n" + first[2] + b" ")
    if not parts or parts[-1].rstrip() != b"end":
        raise InputError(source, "the capture is cut: its last line is missing", len(text))
    facts = dict(line.decode("utf-8", "replace").split(" ", 1) for line in head.split(b"\n")[1:] if b" " in line)
    if missing := {"kernel", "machine"} - facts.keys():
        raise InputError(source, f"the capture is damaged: its first lines have no {min(missing)}", 0)
    host = {key: facts[key] for key in ("kernel", "machine")}
    capture_host = host_of_text(head)
    by_pid: dict[int, Texts] = {}
    for part in parts[:-1]:
        title, _, body = part.partition(b"\n")
        name = _NAME.fullmatch(title)
        if name is None:
            raise InputError(source, f"a text without the number of its process: {title[:80]!r}")
        texts = by_pid.setdefault(int(name[1]), {})
        if name[2] in texts:
            raise InputError(source, f"the text {title[:80]!r} is there twice")
        texts[name[2]] = body
    sockets = {inode: socket for texts in by_pid.values() for inode, socket in _sockets(texts)}
    open_files = own_open_files({pid: _open_files(texts, sockets) for pid, texts in by_pid.items()})
    ended = [pid for pid, texts in by_pid.items() if not _has_memory(texts)]
    # Where none has maps, the first one is an error with its cause.
    left_out = {pid for pid in ended if len(ended) < len(by_pid) or b"absent" in by_pid[pid]}
    snapshots = [
        _snapshot(pid, texts, source, host, build_id_of_start)._replace(
            open_files=open_files[pid], capture_host=capture_host
        )
        for pid, texts in by_pid.items()
        if pid not in left_out
    ]
    detail = "it ended while it was captured, or could not be read; it is left out"
    notes = [Note("process-not-read", f"pid {pid}", detail) for pid in ended if pid in left_out]
    return (snapshots[0]._replace(notes=(*snapshots[0].notes, *notes)), *snapshots[1:]) if snapshots else ()


def host_of_text(head: bytes) -> CaptureHost:
    """Return what the first lines of a capture as text say of its host."""
    text = head.decode("utf-8", "replace")
    facts = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)
    return CaptureHost(facts.get("captured_at"), facts.get("name") or None, None, *memory_in(text))


def _has_memory(texts: Texts) -> bool:
    return any(texts.get(name, b"").strip() for name in _MEMORY_NAMES)


def _snapshot(pid: int, texts: Texts, source: str, host: dict[str, str], build_id_of_start: BuildIdOfStart) -> Snapshot:
    """Read the texts of one process with the readers of a live one."""
    process = f"pid {pid}"
    memory_name = next((name for name in _MEMORY_NAMES if name in texts), None)
    if memory_name is None:
        raise InputError(source, f"{process}: neither smaps nor maps is in the capture")
    try:
        memory = parse_maps(texts[memory_name], process)
    except InputError as error:
        raise InputError(source, f"{process}, {memory_name.decode()}: {error.detail}") from error
    status = parse_status(texts.get(b"status", b""))
    command = command_line(texts.get(b"cmdline", b""))
    note = Note("page-bits-denied", process, "a capture as text has no page bits: private memory is known per mapping")
    detail = "a capture as text has no account of the allocator: how much of its heap is free is unknown"
    return Snapshot(
        source=source,
        pid=pid,
        is_live=False,
        command=command or status.name,
        memory=memory,
        rollup=saved_rollup(texts.get(b"smaps_rollup"), source),
        status=status,
        thread_stacks=ThreadStacks(_stack_addrs(texts)),
        pages=None,
        page_bytes=page_bytes_of(memory),
        host=host,
        notes=(*memory.notes, note),
        files=_files(texts, build_id_of_start),
        placement=placement_in(texts.get(b"cgroup", b"").decode("utf-8", "replace")),
        captured_heap=CapturedHeap(None, (Note("allocator-unread", process, detail),)),
        allocated_bytes={
            (match[1].decode("ascii", "replace"), int(match[2])): int(match[3]) * BLOCK_BYTES
            for name in texts
            if (match := _ALLOCATED.fullmatch(name))
        },
    )


def _sockets(texts: Texts) -> Iterator[tuple[int, tuple[OpenFileKind, int]]]:
    """Read the sockets of a network namespace: the inode, the kind, and the bytes that are not read or not sent yet.

    Source: unix_seq_show, get_tcp4_sock and udp4_format_sock of Linux 6.18.
    """
    for line in texts.get(b"net/unix", b"").split(b"\n")[1:]:
        words = line.split()
        inode = decimal(words[6]) if len(words) > 6 else None
        if inode is not None:
            yield inode, (OpenFileKind.UNIX, 0)
    for name, kind in _NET_TEXTS.items():
        for line in texts.get(name, b"").split(b"\n")[1:]:
            if row := _NET_ROW.match(line):
                yield int(row[3]), (kind, int(row[1], 16) + int(row[2], 16))


def _open_files(texts: Texts, sockets: Mapping[int, tuple[OpenFileKind, int]]) -> Iterator[OpenFile]:
    """Read the descriptors but the standard streams: the link of each, and its fdinfo.

    The inode of a file that is no socket or pipe is in its fdinfo since Linux 5.14. What pipes and UNIX sockets hold is
    not known.
    """
    held_bytes = {match[1]: int(match[2]) * BLOCK_BYTES for name in texts if (match := _HELD.fullmatch(name))}
    for name, body in texts.items():
        number = _DESCRIPTOR.fullmatch(name)
        link, _, info = body.partition(b"\n")
        if number is None or not link or int(number[1]) < GIVEN_COUNT:
            continue
        kind = OpenFileKind.MEMORY if number[1] in held_bytes else classify(link.decode("utf-8", "replace"))
        told_inode = _LINK_INODE.search(link) or _INFO_INODE.search(b"\n" + info)
        inode = int(told_inode[1]) if told_inode else 0
        content_bytes = content_of_fdinfo(info) if kind is OpenFileKind.RING else held_bytes.get(number[1], 0)
        if kind is OpenFileKind.SOCKET:
            kind, content_bytes = sockets.get(inode, (kind, 0))
        flags = _INFO_FLAGS.search(b"\n" + info)
        yield OpenFile(
            int(number[1]),
            kind,
            0,
            inode,
            is_write_only=kind is OpenFileKind.PIPE and flags is not None and int(flags[1], 8) & 3 == 1,
            content_bytes=content_bytes,
            watch_count=watches_of_fdinfo(kind, b"\n" + info),
            is_unread=kind in {OpenFileKind.SOCKET, OpenFileKind.UNIX, OpenFileKind.PIPE},
            name=link.decode("utf-8", "surrogateescape") if kind is OpenFileKind.MEMORY else "",
        )


def _stack_addrs(texts: Texts) -> tuple[int, ...]:
    """Read the stack pointer of each thread that waited in the kernel, from `syscall`: the last but one word."""
    rows = [body.split() for name, body in texts.items() if name.endswith(b"/syscall")]
    return tuple(int(words[-2], 16) for words in rows if len(words) > 2 and _is_address(words))


def _is_address(words: Sequence[bytes]) -> bool:
    return re.fullmatch(rb"0x[0-9a-f]{1,16}", words[-2]) is not None


def _files(texts: Texts, build_id_of_start: BuildIdOfStart) -> dict[MappedIdentity, FileFacts]:
    """Collect what identifies each mapped file: its size, and the build-id that its first bytes hold."""
    facts_by_file: dict[MappedIdentity, FileFacts] = {}
    for name, body in texts.items():
        if (file := _FILE.fullmatch(name)) is None:
            continue
        device, inode, size, path = file.groups()
        identity = (device.decode("ascii", "replace"), int(inode), path.decode("utf-8", "surrogateescape"))
        try:
            start = bytes.fromhex(body.decode("ascii"))
        except ValueError:
            start = b""
        facts_by_file[identity] = FileFacts(int(size) if size != b"?" else None, build_id_of_start(start))
    return facts_by_file
