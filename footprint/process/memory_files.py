"""The files in memory that a process maps or holds open, what each holds, and which processes keep it.

A file in memory is a memfd, shared anonymous memory, a SysV segment, or a file of tmpfs. What it costs is what it
holds, however many of its pages are mapped and how often. A buffer of the kernel that a process maps is one as well:
the ring of a packet socket, of io_uring, of aio or of perf, an array of BPF.

Source: memfd_create(2), shm_open(3), shmget(2), tmpfs(5), proc_pid_map_files(5), packet_mmap, io_uring_setup(2),
perf_event_open(2) and fs/proc/task_mmu.c of Linux 6.18.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from contextlib import suppress
from typing import Final

from footprint.members import NamedTuple
from footprint.model.row import DELETED
from footprint.process.descriptions import MemoryDevices, OpenFile, OpenFileKind, device_name, held_bytes
from footprint.process.mappings import Mapping
from footprint.process.status import read_stat

FileIdentity = tuple[str | None, int | None]
"""Device and inode of a file in memory. A SysV segment has its number in place of the inode, and `SYSV` as device."""

SHARED_ANONYMOUS: Final = "/dev/zero (deleted)"
"""The kernel's name for shared anonymous memory: the file that it made for it."""

_SYSV: Final = "/SYSV"
_SEGMENTS: Final = "SYSV"
KERNEL_BUFFERS: Final = ("socket:", "anon_inode:")
"""How the kernel's names of sockets and its other objects begin, whose buffers a process can map."""

_OWN_INODE: Final = ("socket:", "anon_inode:[io_uring]")
# The kernel allocates all of it at once. Of the ring of perf some versions count the pages as resident, of that of
# aio (io_setup(2)) only those count that the process has looked at.
_WHOLE_BUFFERS: Final = ("anon_inode:[perf_event]", "/[aio] (deleted)")
_PRICED: Final = {"anon_inode:[io_uring]": OpenFileKind.RING, "anon_inode:bpf-map": OpenFileKind.BPF}
_UNNAMED: Final = ("/memfd:", SHARED_ANONYMOUS, _SYSV, "[anon_shmem:", *KERNEL_BUFFERS)
_SHARED_FOLDERS: Final = ("/dev/shm/", "/run/shm/", "/dev/ashmem/")  # noqa: S108 # names are compared, nothing is opened
_IN_MEMORY: Final = (*_UNNAMED, *_SHARED_FOLDERS)
_ONLY_MAPPED: Final = (SHARED_ANONYMOUS, _SYSV)
_SHARE_UNIT_BYTES: Final = 1024  # the kernel rounds each share down to it
# Not compiled here: few processes have such files.
_MAPS_LINE: Final = rb"(?m)^\S+ \S+ \S+ (00:[0-9a-f]+) (\d+) +(/.*|\[anon_shmem:.*|socket:.*|anon_inode:\[io_uring\])$"
_DEEPEST_TREE: Final = 64
_KERNEL_THREAD: Final = 0x00200000  # PF_KTHREAD


class MemoryFile(NamedTuple):
    """A file in memory, as one process has it.

    Attributes:
        identity: What tells it from others.
        name: Its name as the kernel shows it.
        size_bytes: What it holds in all, swapped pages included; None where that may not be read.
        mappings: The mappings of it.
        descriptors: The descriptors that hold it open.
        priced_bytes: What the prices of open descriptors have of it: of a ring of io_uring, and of an array of BPF.
    """

    identity: FileIdentity
    name: str
    size_bytes: int | None
    mappings: tuple[Mapping, ...]
    descriptors: tuple[int, ...]
    priced_bytes: int = 0

    @property
    def is_kernel_buffer(self) -> bool:
        """Whether it is memory of a socket or another object of the kernel that the process maps."""
        return self.name.startswith(KERNEL_BUFFERS)

    @property
    def is_segment(self) -> bool:
        """Whether it is a SysV segment."""
        return self.identity[0] == _SEGMENTS

    @property
    def has_name(self) -> bool:
        """Whether others can open it by its name."""
        return not self.name.startswith(_UNNAMED) and not self.name.endswith(DELETED)

    @property
    def is_only_mapped(self) -> bool:
        """Whether nobody can hold it open: who keeps it has mapped it, and only who has mapped it writes to it."""
        return self.name.startswith(_ONLY_MAPPED)

    @property
    def is_written(self) -> bool:
        """Whether the process has what it takes to write to the file: then it is more than a reader of it."""
        return (
            bool(self.descriptors)
            or self.name.startswith(_SHARED_FOLDERS)
            or any(mapping.is_shared and mapping.permissions[1] == "w" for mapping in self.mappings)
        )

    @property
    def proportional_bytes(self) -> int:
        """The shares of its pages (`Pss`): of a page that is mapped n times by anybody, each mapping has 1/n."""
        return sum([_pages_of_file(mapping, mapping.counters.get("Pss")) for mapping in self.mappings])

    @property
    def sole_bytes(self) -> int:
        """Its pages that are mapped once."""
        return sum(
            [
                _pages_of_file(m, (m.counters.get("Private_Clean") or 0) + (m.counters.get("Private_Dirty") or 0))
                for m in self.mappings
            ]
        )

    @property
    def resident_bytes(self) -> int:
        """Its pages that are mapped: at least, as two mappings of one part of the file may show the same pages."""
        return sum([most_bytes for _, most_bytes in self._parts()])

    @property
    def huge_bytes(self) -> int:
        """The part of it that is mapped by huge pages, as the mapping with the most of them has it."""
        return max([mapping.counters.get("ShmemPmdMapped") or 0 for mapping in self.mappings], default=0)

    @property
    def extent_bytes(self) -> int:
        """The size of the parts of it that are mapped."""
        return sum([size_bytes for size_bytes, _ in self._parts()])

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Yield the size of each part of the file that is mapped, and the most resident bytes of a mapping of it."""
        spans = sorted([(m.offset or 0, m.size_bytes, _pages_of_file(m, m.counters.get("Rss"))) for m in self.mappings])
        if not spans:
            return
        first, reached, most_bytes = spans[0][0], spans[0][0], 0
        for start, size_bytes, pages_bytes in spans:
            if start >= reached > first:
                yield reached - first, most_bytes
                first, most_bytes = start, 0
            most_bytes, reached = max(most_bytes, pages_bytes), max(reached, start + size_bytes)
        yield reached - first, most_bytes

    @property
    def swapped_bytes(self) -> int:
        """Its pages that are swapped out, in the part of it that is mapped."""
        return max([mapping.counters.get("Swap") or 0 for mapping in self.mappings if mapping.is_shared], default=0)

    @property
    def is_mapped_elsewhere(self) -> bool:
        """Whether the shares show that others have mapped some of the pages as well."""
        resident_bytes = self.resident_bytes
        return 0 < resident_bytes >= self.proportional_bytes + len(self.mappings) * _SHARE_UNIT_BYTES


def _pages_of_file(mapping: Mapping, counted_bytes: int | None) -> int:
    """Return which part of a counter is pages of the file: a private mapping has copies of some."""
    copied_bytes = 0 if mapping.is_shared else mapping.counters.get("Anonymous") or 0
    return max(0, (counted_bytes or 0) - copied_bytes)


def file_identity(device: str | None, inode: int | None, name: str) -> FileIdentity:
    """Return what tells a file in memory from others."""
    if name.startswith(_SYSV):
        return _SEGMENTS, inode
    if name.startswith(KERNEL_BUFFERS):
        return name, inode  # objects of several kinds have the same inode
    # The text of pmap has no inodes.
    return (name, None) if inode is None else (device, inode)


def memory_files(
    mappings: Iterable[Mapping], allocated_bytes: Dict[FileIdentity, int], open_files: Iterable[OpenFile] = ()
) -> tuple[MemoryFile, ...]:
    """Find the files in memory that a process maps or holds open.

    A program or library in tmpfs is none of them: it is a file that all its processes use.

    Args:
        mappings: The mappings of the process.
        allocated_bytes: What each file holds, where that was read: these are files in memory, whatever their name.
        open_files: The open file descriptions that the process pays for.
    """
    mapped: dict[FileIdentity, list[Mapping]] = {}
    for mapping in mappings:
        if mapping.name and _is_in_memory(mapping, allocated_bytes):
            mapped.setdefault(file_identity(mapping.device, mapping.inode, mapping.name), []).append(mapping)
    opened: dict[FileIdentity, list[OpenFile]] = {}
    # A capture as text has no devices of descriptors.
    by_inode = {identity[1]: identity for identity in mapped if identity[0] != _SEGMENTS}
    priced: dict[tuple[OpenFileKind, int | None], int] = {}
    for file in open_files:
        if file.kind is OpenFileKind.MEMORY:
            identity = (device_name(file.device), file.inode) if file.device else by_inode.get(file.inode)
            opened.setdefault(identity or (None, file.inode), []).append(file)
        else:
            key = (file.kind, file.inode)
            priced[key] = priced.get(key, 0) + file.content_bytes
    files = []
    for identity in {**mapped, **opened}:
        of_file, holds = mapped.get(identity, []), opened.get(identity, [])
        name = of_file[0].name if of_file else holds[0].name or "[memory file]"
        if not name.endswith(DELETED) and any(mapping.permissions[2] == "x" for mapping in of_file):
            continue
        sizes = [allocated_bytes.get(identity), *(hold.content_bytes for hold in holds)]
        if name in _WHOLE_BUFFERS:
            sizes.append(sum(mapping.size_bytes for mapping in of_file))
        present = [size for size in sizes if size is not None]
        numbers = tuple([hold.descriptor for hold in holds])
        priced_bytes = priced.get((_PRICED[name], identity[1]), 0) if name in _PRICED else 0
        files.append(MemoryFile(identity, name, max(present, default=None), tuple(of_file), numbers, priced_bytes))
    return tuple(files)


def _is_in_memory(mapping: Mapping, allocated_bytes: Dict[FileIdentity, int]) -> bool:
    name = mapping.name
    if name.startswith(KERNEL_BUFFERS):
        return mapping.is_shared and (bool(mapping.counters.get("Rss")) or name in _WHOLE_BUFFERS)
    if not name.startswith(_IN_MEMORY) and not (mapping.is_shared and name.endswith(DELETED)):
        return bool(allocated_bytes) and (mapping.device, mapping.inode) in allocated_bytes
    # Huge pages of the reserved pool have counters of their own, and are in no total.
    return "ht" not in (mapping.vm_flags or "").split()


# --- what they hold ---------------------------------------------------------------------------------------------------


def read_allocated_bytes(folder: int, mappings: Iterable[Mapping]) -> dict[FileIdentity, int]:
    """Read what the mapped files in memory of a live process hold: also what was only allocated, or touched by others.

    Args:
        folder: The open directory of the process in /proc.
        mappings: Its mappings.
    """
    devices = MemoryDevices(folder)
    held_by_file: dict[FileIdentity, int] = {}
    seen = set()
    for mapping in mappings:
        if not mapping.name or mapping.device is None or not mapping.device.startswith("00:"):
            continue
        identity = file_identity(mapping.device, mapping.inode, mapping.name)
        if identity in seen:
            continue
        # `[heap]` and `[stack]` have no inode: for them the mounts need not be read.
        if mapping.name.startswith(_IN_MEMORY) or (mapping.inode and devices.has(mapping.device)):
            size_bytes = _read_held_bytes(folder, mapping)
            if size_bytes is not None:
                held_by_file[identity] = size_bytes
        seen.add(identity)
    return held_by_file


def _read_held_bytes(folder: int, mapping: Mapping) -> int | None:
    """Read what the file of a mapping holds; only root may follow the links of map_files."""
    if "ht" in (mapping.vm_flags or "").split():
        return 0
    paths = [f"map_files/{mapping.start_addr:x}-{mapping.end_addr:x}"]
    if mapping.name.startswith("/") and not mapping.name.endswith(DELETED) and not mapping.name.startswith(_UNNAMED):
        paths.append(f"root{mapping.name}")
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path, dir_fd=folder)
            if mapping.name.startswith(_SYSV) or status.st_ino == mapping.inode:
                return held_bytes(path, status, folder)
    return _segment_bytes(folder, mapping.inode or 0) if mapping.name.startswith(_SYSV) else None


def _segment_bytes(folder: int, number: int) -> int | None:
    """Read what a SysV segment holds from the list of our own segments, if the process sees the same."""
    with suppress(OSError), open("/proc/sysvipc/shm", "rb") as file:
        if os.stat("ns/ipc", dir_fd=folder).st_ino == os.stat("/proc/self/ns/ipc").st_ino:
            # The second column is the number, the last two are what it holds in memory and in swap.
            rows = [line.split() for line in file.read().split(b"\n")[1:]]
            return next(
                (int(row[-2]) + int(row[-1]) for row in rows if len(row) > 3 and row[1] == b"%d" % number), None
            )
    return None


# --- who keeps them ---------------------------------------------------------------------------------------------------


class FileKeepers(NamedTuple):
    """Which processes map or hold open some files in memory.

    Attributes:
        pids: The processes that keep each file.
        parents: The parents of these, of their parents, and so on.
        unread_count: How many processes may not be looked at: they may keep files, too.
    """

    pids: Dict[FileIdentity, frozenset[int]]
    parents: Dict[int, int]
    unread_count: int

    def others(self, identity: FileIdentity, pids: Collection[int]) -> tuple[int, ...]:
        """Return who keeps a file beside some processes and their descendants: a copy of these brings its own."""
        return tuple([pid for pid in sorted(self.pids.get(identity, ())) if not self._descends(pid, pids)])

    def _descends(self, pid: int, pids: Collection[int]) -> bool:
        # A forged capture may have circles, and chains of any length.
        for _ in range(_DEEPEST_TREE):
            if pid in pids:
                return True
            pid = self.parents.get(pid, 0)
        return False


def read_keepers(files: Dict[int, Sequence[MemoryFile]]) -> FileKeepers | None:
    """Find who else keeps the files in memory of some live processes; None where they have none.

    Where the shares of these processes show that nobody else can keep a file, no other process is looked at.

    Args:
        files: The files of each process.
    """
    keepers: dict[FileIdentity, set[int]] = {}
    by_identity: dict[FileIdentity, list[MemoryFile]] = {}
    for pid, of_process in files.items():
        for file in of_process:
            keepers.setdefault(file.identity, set()).add(pid)
            by_identity.setdefault(file.identity, []).append(file)
    if not keepers:
        return None
    wanted = {identity for identity, some in by_identity.items() if not _are_all_mappings_known(some)}
    unread_count = 0
    if wanted:
        ours = {*files, os.getpid()}
        names = {_last_name(some[0].name) for identity, some in by_identity.items() if identity in wanted}
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
            if pid in ours:
                continue
            kept = _kept_by(pid, wanted, names)
            unread_count += kept is None
            for identity in kept or ():
                keepers[identity].add(pid)
    return _with_parents(keepers, unread_count)


def read_all_keepers(open_files: Dict[int, Iterable[OpenFile]]) -> FileKeepers:
    """Find who keeps which file in memory, of all processes.

    Args:
        open_files: The open file descriptions that each process pays for.
    """
    keepers: dict[FileIdentity, set[int]] = {}
    unread_count = 0
    for pid, opened in open_files.items():
        mapped = _mapped_by(pid)
        unread_count += mapped is None
        opened_files = [(device_name(file.device), file.inode) for file in opened if file.kind is OpenFileKind.MEMORY]
        for identity in (*(mapped or ()), *opened_files):
            keepers.setdefault(identity, set()).add(pid)
    return _with_parents(keepers, unread_count)


def _with_parents(keepers: Dict[FileIdentity, set[int]], unread_count: int) -> FileKeepers:
    parents: dict[int, int] = {}
    for pid in {pid for some in keepers.values() for pid in some}:
        at = pid
        while at and at not in parents:
            stat = read_stat(at)
            parents[at] = at = stat.parent_pid if stat else 0
    return FileKeepers({identity: frozenset(some) for identity, some in keepers.items()}, parents, unread_count)


def _are_all_mappings_known(files: Sequence[MemoryFile]) -> bool:
    """Return whether the mappings of a file that are known have all of its pages, so that it has no others."""
    size_bytes = files[0].size_bytes
    if files[0].is_kernel_buffer:
        # Others are looked for where the shares show some, and an inode tells the object from all others.
        return not (any(file.is_mapped_elsewhere for file in files) and files[0].name.startswith(_OWN_INODE))
    if size_bytes is None or not files[0].is_only_mapped:
        return False
    mapping_count = sum(len(file.mappings) for file in files)
    share_bytes = sum(file.proportional_bytes + file.swapped_bytes for file in files)
    return share_bytes + mapping_count * _SHARE_UNIT_BYTES > size_bytes


def _kept_by(pid: int, wanted: Collection[FileIdentity], names: Collection[str]) -> set[FileIdentity] | None:
    """Return which of some files a process keeps; None where it may not be looked at."""
    mapped = _mapped_by(pid)
    if mapped is None:
        return None
    opened: list[FileIdentity] = []
    try:
        opened.extend(_held_open(pid, names))
    except PermissionError:
        return None
    except OSError:  # it has ended
        pass
    return {*mapped, *opened} & set(wanted)


def _mapped_by(pid: int) -> set[FileIdentity] | None:
    """Return the files on devices without a disk that a process maps; None where it may not be looked at."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = re.findall(_MAPS_LINE, file.read())
    except PermissionError:
        stat = read_stat(pid)
        return set() if stat is None or stat.flags & _KERNEL_THREAD or stat.is_dead else None
    except OSError:  # it has ended
        return set()
    return {file_identity(device.decode(), int(inode), os.fsdecode(name)) for device, inode, name in lines}


def _last_name(name: str) -> str:
    """Return what a process in another root directory, or with other mounts, sees of a name."""
    return name.removesuffix(DELETED).rpartition("/")[2]


def _held_open(pid: int, names: Collection[str]) -> Iterator[FileIdentity]:
    """Yield the files that a process holds open among those with some names."""
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        with suppress(FileNotFoundError):
            if _last_name(os.readlink(f"{folder}/{number}")) in names:
                status = os.stat(f"{folder}/{number}")
                yield device_name(status.st_dev), status.st_ino
