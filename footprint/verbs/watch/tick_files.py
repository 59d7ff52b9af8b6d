"""What the files in memory hold that some processes keep, at each tick.

A whole reading finds the files and decides whose they are. A tick asks each of them for its size again, which costs a
microsecond or two. Shared memory that is none of them is only known to grow: by the counter of a process.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from footprint.attribution.memory_files import charge_files
from footprint.model.process_counters import ProcessCounters
from footprint.process.descriptions import OpenFile, OpenFileKind, device_name, held_bytes
from footprint.process.memory_files import FileIdentity
from footprint.process.snapshot import Snapshot

# The largest ones are asked at each tick, the others at each whole reading.
_MOST_ASKED: Final = 100


class HeldFile(NamedTuple):
    """A file in memory that processes keep.

    Attributes:
        identity: What tells it from others.
        pid: The process that pays for it.
        paths: Where it can be looked at.
        size_bytes: What it holds.
        own_bytes: What of it the processes pay for.
    """

    identity: FileIdentity
    pid: int
    paths: tuple[str, ...]
    size_bytes: int
    own_bytes: int

    def grown_to(self, size_bytes: int) -> "HeldFile":
        """Return it with another size, of which the processes pay for the same part."""
        own_bytes = self.own_bytes * size_bytes // self.size_bytes if self.size_bytes else 0
        if self.own_bytes >= self.size_bytes:
            own_bytes = size_bytes
        return self._replace(size_bytes=size_bytes, own_bytes=own_bytes)


def held_files(snapshots: Sequence[Snapshot]) -> list[HeldFile]:
    """Return the files in memory that some processes keep, as an audit charges them."""
    places: dict[FileIdentity, tuple[int, tuple[str, ...]]] = {}
    for snapshot in snapshots:
        for file in snapshot.memory_files:
            folder = f"/proc/{snapshot.pid}"
            ranges = [f"{folder}/map_files/{mapping.start_addr:x}-{mapping.end_addr:x}" for mapping in file.mappings]
            paths = (*(f"{folder}/fd/{number}" for number in file.descriptors[:1]), *ranges[:1])
            places.setdefault(file.identity, (snapshot.process_id or 0, paths))
    return [
        HeldFile(charged.file.identity, *places[charged.file.identity], charged.cost.size_bytes, charged.cost.own_bytes)
        for charged in charge_files(snapshots)
        # What others keep may be theirs however much it grows.
        if charged.cost.own_bytes or not charged.cost.keeper_pids
    ]


class TickFiles:
    """Follows the files in memory of the processes of a watch."""

    def __init__(self) -> None:
        self._files: dict[FileIdentity, HeldFile] = {}
        # What was known at the last whole reading.
        self._sizes: dict[FileIdentity, int] = {}
        self._touched: dict[int, int] = {}
        self._is_just_read = False

    def learn(self, files: Iterable[HeldFile]) -> None:
        """Take over the files of a whole reading of all processes."""
        self._files = {file.identity: file for file in files}
        self._sizes = {file.identity: file.size_bytes for file in self._files.values()}
        self._touched = {}
        self._is_just_read = True

    def add_open(self, pid: int, open_files: Iterable[OpenFile]) -> None:
        """Add files in memory that a process has opened since: they are its own as far as is known."""
        for file in open_files:
            identity = (device_name(file.device), file.inode)
            if file.kind is OpenFileKind.MEMORY and identity not in self._files:
                path = f"/proc/{pid}/fd/{file.descriptor}"
                self._files[identity] = HeldFile(identity, pid, (path,), file.content_bytes, file.content_bytes)
                self._sizes[identity] = 0

    def drop(self, pid: int) -> None:
        """Forget what a process pays for that has ended."""
        self._files = {identity: file for identity, file in self._files.items() if file.pid != pid}

    def own_bytes(self, counters: Mapping[int, ProcessCounters]) -> dict[int, int]:
        """Return what each process pays for files in memory now."""
        largest = sorted(self._files.values(), key=lambda file: -file.size_bytes)[:_MOST_ASKED]
        for f in () if self._is_just_read else largest:
            size_bytes = _size_now(f)
            if size_bytes is not None and size_bytes != f.size_bytes:
                self._files[f.identity] = f.grown_to(size_bytes)
        self._is_just_read = False
        sizes = dict.fromkeys(counters, 0)
        for file in self._files.values():
            if file.pid in sizes:
                sizes[file.pid] += file.own_bytes
        self._add_unknown(sizes, counters)
        return sizes

    def _add_unknown(self, sizes: dict[int, int], counters: Mapping[int, ProcessCounters]) -> None:
        """Add shared memory that was touched since the last whole reading, and is in none of the files."""
        known_bytes = sum(max(0, file.size_bytes - self._sizes[file.identity]) for file in self._files.values())
        touched = {
            pid: counter.shared_bytes - self._touched.setdefault(pid, counter.shared_bytes) - known_bytes
            for pid, counter in counters.items()
        }
        # Relatives may have touched the same.
        pid = max(touched, key=touched.__getitem__, default=None)
        if pid is not None and touched[pid] > 0:
            sizes[pid] += touched[pid]


def _size_now(file: HeldFile) -> int | None:
    """Ask a file for its size: 0 where its process has let go of it, None where it may not be looked at."""
    is_gone = bool(file.paths)
    for path in file.paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            is_gone = False
            continue
        # A SysV segment is none of a device.
        is_same = (device_name(status.st_dev), status.st_ino) == file.identity
        if is_same or not (file.identity[0] or "").startswith("00:"):
            return held_bytes(path, status)
    return 0 if is_gone else None
