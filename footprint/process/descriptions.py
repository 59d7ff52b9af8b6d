"""The open files of processes: what each one is, how much kernel memory its own content takes, and which are the same.

The kernel makes one open file description for each open(2), socket(2) and the like. Fork and descriptor passing share
it: then many descriptors of many processes refer to one description, which costs once.

Sources: proc_pid_fd(5), proc_pid_fdinfo(5), kcmp(2), pidfd_getfd(2), socket(7), unix(7) and SO_MEMINFO of Linux 6.18.

Which files lie in memory: those of tmpfs, ramfs, and the file system of the kernel for memfd and shared memory.

Source: proc_pid_mountinfo(5), tmpfs(5), memfd_create(2); shmem_init and hugetlbfs_statfs of Linux 6.18.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache
from typing import Annotated, Final, Self

from footprint.members import Address, ContentBytes, KernelCount, Later, NamedTuple
from footprint.model.row import DELETED
from footprint.process.status import read_stat
from footprint.text.units import decimal

_MEMORY_TYPES: Final = (b"tmpfs ", b"ramfs ")
_BLOCK_BYTES: Final = 512  # st_blocks, whatever the file system


def device_name(number: int) -> str:
    """Return a device number as maps prints it: `major:minor` in hexadecimal."""
    return f"{os.major(number):02x}:{os.minor(number):02x}"


def mounted_memory_devices(mountinfo: bytes) -> frozenset[str]:
    """Read the devices of the file systems in memory from a text of mountinfo, as maps prints them."""
    devices = set()
    for line in mountinfo.split(b"\n"):
        mount, _, source = line.partition(b" - ")
        words = mount.split(b" ", 3)
        if source.startswith(_MEMORY_TYPES) and len(words) > 2 and words[2].startswith(b"0:"):
            devices.add(f"00:{int(words[2][2:]):02x}")
    return frozenset(devices)


@cache
def _kernel_device() -> str | None:
    """Return the device of memfd, SysV segments and shared anonymous memory, which no mount shows."""
    try:
        descriptor = os.memfd_create("footprint")
    except (AttributeError, OSError):
        return None
    try:
        return device_name(os.fstat(descriptor).st_dev)
    finally:
        os.close(descriptor)


class MemoryDevices:
    """The devices of the file systems in memory that one process sees; its mounts are read at the first question.

    Args:
        folder: Its directory in /proc, as a path or as an open descriptor.
    """

    def __init__(self, folder: str | int) -> None:
        self._folder = folder
        self._devices: frozenset[str | None] | None = None

    def has(self, device: str | None) -> bool:
        """Return whether files of a device lie in memory."""
        if device is None or not device.startswith("00:"):
            return False
        if self._devices is None:
            self._devices = frozenset({_kernel_device(), *self._mounted()})
        return device in self._devices

    def _mounted(self) -> frozenset[str]:
        by_path = isinstance(self._folder, str)
        path = f"{self._folder}/mountinfo" if by_path else "mountinfo"
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=None if by_path else int(self._folder))
            with open(descriptor, "rb") as file:
                return mounted_memory_devices(file.read())
        return frozenset()


def held_bytes(path: str, status: os.stat_result, folder: int | None = None) -> int | None:
    """Return what a file in memory holds, swapped pages included; None for what is no regular file.

    Huge pages of the reserved pool are 0: they were paid for when the pool was made.

    Args:
        path: The file, or a link to it in /proc.
        status: What stat returned for it.
        folder: The open directory that the path is relative to.
    """
    if not stat.S_ISREG(status.st_mode):
        return None
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    # tmpfs with huge pages has blocks of this size, too. Its file system has not.
    if status.st_blksize > page_bytes:
        with suppress(OSError):
            if os.statvfs(path if folder is None else f"/proc/self/fd/{folder}/{path}").f_bsize > page_bytes:
                return 0
    return status.st_blocks * _BLOCK_BYTES


# Standard input, output and error belong to the one who started the process: opened once for many.
GIVEN_COUNT: Final = 3
_MOST_FDINFO_BYTES: Final = 1 << 24


class OpenFileKind(StrEnum):
    """What stands behind a descriptor, as far as it decides about cost."""

    FILE = "file"
    """A file, folder or device."""
    TEXT = "text of the kernel"
    """A file of /proc or /sys: it keeps a page of text once it was read."""
    MEMORY = "memory file"
    """A memfd, or a file of tmpfs that is deleted or open for writing."""
    PIPE = "pipe"
    TERMINAL = "pseudo-terminal"
    EVENT = "event"
    """eventfd, timerfd, signalfd and other small ones."""
    PROCESS = "process"
    """pidfd."""
    EPOLL = "epoll"
    INOTIFY = "inotify"
    FANOTIFY = "fanotify"
    RING = "io_uring"
    BPF = "BPF map or program"
    UNIX = "UNIX socket"
    TCP = "TCP socket"
    UDP = "UDP socket"
    SOCKET = "other socket"


class OpenFile(NamedTuple):
    """One descriptor of a process.

    Attributes:
        descriptor: Its number.
        kind: What it is.
        device: The device of its inode.
        inode: The inode. All small files of the kernel (`anon_inode`) have the same one.
        is_write_only: Whether it is the end of a pipe that is written to.
        content_bytes: Memory of what stands behind it: unread data, rings, pages of a memory file.
        watch_count: How many files it watches: of epoll and inotify.
        is_unread: Whether the kernel refused a look at it: the kind of a socket and unread data are not known.
        holder_count: How many processes of a group have this socket or pipe; 1 for all else.
        name: The name of a memory file, as the kernel shows it; empty for all else.
    """

    descriptor: KernelCount
    kind: OpenFileKind
    device: Address
    inode: Address
    is_write_only: bool = False
    content_bytes: ContentBytes = 0
    watch_count: KernelCount = 0
    is_unread: bool = False
    holder_count: KernelCount = 1
    name: Annotated[str, Later("")] = ""


_SMALL: Final = {
    "anon_inode:[eventpoll]": OpenFileKind.EPOLL,
    "anon_inode:inotify": OpenFileKind.INOTIFY,
    "anon_inode:[fanotify]": OpenFileKind.FANOTIFY,
    "anon_inode:[io_uring]": OpenFileKind.RING,
    "anon_inode:[pidfd]": OpenFileKind.PROCESS,
    "anon_inode:bpf-map": OpenFileKind.BPF,
    "anon_inode:bpf-prog": OpenFileKind.BPF,
}
_WITH_CONTENT: Final = frozenset({OpenFileKind.EPOLL, OpenFileKind.INOTIFY, OpenFileKind.RING, OpenFileKind.BPF})
# Kinds whose inode tells their descriptions apart; of a pipe it tells the two ends together.
_OWN_INODES: Final = frozenset(
    {OpenFileKind.UNIX, OpenFileKind.TCP, OpenFileKind.UDP, OpenFileKind.SOCKET, OpenFileKind.PIPE}
)


def classify(link: str) -> OpenFileKind:
    """Find the kind of an open file by the text of its link in /proc/PID/fd. The family of a socket is not in it."""
    if link.startswith("socket:"):
        return OpenFileKind.SOCKET
    if link.startswith("pipe:"):
        return OpenFileKind.PIPE
    if link.startswith("anon_inode:"):
        return _SMALL.get(link, OpenFileKind.EVENT)
    if link.startswith("/memfd:"):
        return OpenFileKind.MEMORY
    if link.startswith(("/dev/pts/", "/dev/ptmx")):
        return OpenFileKind.TERMINAL
    return OpenFileKind.TEXT if link.startswith(("/proc/", "/sys/")) else OpenFileKind.FILE


_WATCH_LINES: Final = {OpenFileKind.EPOLL: b"\ntfd:", OpenFileKind.INOTIFY: b"\ninotify wd:"}
# struct io_uring_sqe and io_uring_cqe, and the index of an entry.
_SUBMISSION_BYTES, _COMPLETION_BYTES, _INDEX_BYTES, _RING_HEAD_BYTES, _LIST_BYTES = 64, 16, 4, 64, 64


def watches_of_fdinfo(kind: OpenFileKind, text: bytes) -> int:
    """Count the watches that a file of /proc/PID/fdinfo lists."""
    return text.count(_WATCH_LINES[kind]) if kind in _WATCH_LINES else 0


def content_of_fdinfo(text: bytes) -> int:
    """Compute the kernel memory of the rings, or of the BPF map, that a file of /proc/PID/fdinfo describes."""
    masks = {}
    for line in text.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"memlock":
            return decimal(value.strip()) or 0
        if key in {b"SqMask", b"CqMask"}:
            with suppress(ValueError):
                masks[key] = int(value, 16) + 1
    submissions, completions = masks.get(b"SqMask", 0), masks.get(b"CqMask", 0)
    if not submissions:
        return 0
    entries_bytes = _whole_pages(submissions * _SUBMISSION_BYTES)
    rings_bytes = _whole_pages(_RING_HEAD_BYTES + completions * _COMPLETION_BYTES + submissions * _INDEX_BYTES)
    # io_uring_create: lists of requests that can be cancelled, one for 32 completions, from 2 to 256.
    lists_count = min(max(completions // 32, 2), 256)
    return entries_bytes + rings_bytes + lists_count * _LIST_BYTES


def _whole_pages(size_bytes: int) -> int:
    """Round up to what the kernel allocates for a ring: a power of two, a page at least."""
    return max(4096, 1 << (max(size_bytes, 1) - 1).bit_length())


def read_open_files(pid: int) -> tuple[OpenFile, ...]:
    """Read what a live process has open but its standard streams; nothing where that may not be read."""
    folder = f"/proc/{pid}/fd"
    files = []
    with suppress(OSError):
        numbers = sorted(int(number) for number in os.listdir(folder))
        with _Visitor(pid) as visitor:
            for number in numbers:
                if number >= GIVEN_COUNT:
                    try:
                        link = os.readlink(f"{folder}/{number}")
                    except PermissionError:
                        break  # of this process the kernel refuses all of them
                    except OSError:
                        continue  # closed meanwhile
                    with suppress(OSError):  # the same
                        files.append(_read_one(folder, number, link, visitor))
    return tuple(files)


def _read_one(folder: str, number: int, link: str, visitor: "_Visitor") -> OpenFile:
    path = f"{folder}/{number}"
    kind = classify(link)
    status = os.stat(path)
    content_bytes = watch_count = 0
    if kind is OpenFileKind.TEXT:
        with open(f"{folder}info/{number}", "rb") as file:
            # Only reading makes the kernel allocate the text.
            kind = OpenFileKind.FILE if file.read().startswith(b"pos:\t0\n") else kind
    if kind in _WITH_CONTENT:
        with open(f"{folder}info/{number}", "rb") as file:
            text = file.read(_MOST_FDINFO_BYTES)
        content_bytes, watch_count = content_of_fdinfo(text), watches_of_fdinfo(kind, text)
    elif kind is OpenFileKind.SOCKET:
        kind, content_bytes = visitor.socket(number)
    elif kind is OpenFileKind.PIPE:
        content_bytes = visitor.pipe(number)
    elif kind is OpenFileKind.MEMORY or (kind is OpenFileKind.FILE and visitor.keeps_memory(path, link, status)):
        kind, content_bytes = OpenFileKind.MEMORY, held_bytes(path, status) or 0
    is_unread = visitor.is_refused and kind in {OpenFileKind.SOCKET, OpenFileKind.PIPE}
    is_write_only = kind is OpenFileKind.PIPE and not os.lstat(path).st_mode & stat.S_IRUSR
    name = link if kind is OpenFileKind.MEMORY else ""
    return OpenFile(
        number, kind, status.st_dev, status.st_ino, is_write_only, content_bytes, watch_count, is_unread, name=name
    )


# --- what only a copy of the descriptor shows -------------------------------------------------------------------------

_SYS_PIDFD_GETFD: Final = 438
_SO_MEMINFO: Final = 55
# The places of SO_MEMINFO: received, sent and not read by the other side, queued for sending, options.
_MEMINFO_PLACES: Final = (0, 2, 5, 6)
_MEMINFO_COUNT: Final = 9
_F_GETPIPE_SZ: Final = 1032
_KCMP_FILE: Final = 0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# A pipe without its two ends: inode, pipe_inode_info and 16 slots (struct pipe_buffer), by a thousand of them.
_PIPE_BYTES, _PIPE_SLOT_BYTES, _USUAL_PIPE_SLOTS = 2_064, 40, 16


class _Visitor:
    """Looks at copies of the descriptors of a process; a context manager. It reads nothing out of them."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pidfd: int | None = None
        self._memory_devices = MemoryDevices(f"/proc/{pid}")
        self.is_refused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)

    def keeps_memory(self, path: str, link: str, status: os.stat_result) -> bool:
        """Return whether an open file lies in memory, and is deleted or written to."""
        if os.major(status.st_dev) or not stat.S_ISREG(status.st_mode):
            return False
        if not self._memory_devices.has(device_name(status.st_dev)):
            return False
        return link.endswith(DELETED) or bool(os.lstat(path).st_mode & stat.S_IWUSR)

    def socket(self, number: int) -> tuple[OpenFileKind, int]:
        """Find the kind of a socket and the memory of its unread and unsent data."""
        import socket  # noqa: PLC0415 # only sockets and pipes need it
        import struct  # noqa: PLC0415 # the same

        copy = self._copy(number)
        if copy is None:
            return OpenFileKind.SOCKET, 0
        with socket.socket(fileno=copy) as copied:
            kind = _socket_kind(copied.family, copied.type)
            try:
                answer = copied.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 4 * _MEMINFO_COUNT)
            except OSError:
                return kind, 0
        figures = struct.unpack(f"={len(answer) // 4}I", answer)
        return kind, sum(figures[place] for place in _MEMINFO_PLACES if place < len(figures))

    def pipe(self, number: int) -> int:
        """Compute the memory of a pipe: its slots, and its unread data in whole pages."""
        import array  # noqa: PLC0415 # only sockets and pipes need it
        import fcntl  # noqa: PLC0415 # the same
        import termios  # noqa: PLC0415 # the same

        copy = self._copy(number)
        if copy is None:
            return _PIPE_BYTES
        try:
            unread = array.array("i", [0])
            fcntl.ioctl(copy, termios.FIONREAD, unread)
            slots = fcntl.fcntl(copy, _F_GETPIPE_SZ) // _PAGE_BYTES
        except OSError:
            return _PIPE_BYTES
        finally:
            os.close(copy)
        slots_bytes = (slots - _USUAL_PIPE_SLOTS) * _PIPE_SLOT_BYTES
        return _PIPE_BYTES + slots_bytes + -(-unread[0] // _PAGE_BYTES) * _PAGE_BYTES

    def _copy(self, number: int) -> int | None:
        if self.is_refused:
            return None
        from footprint.system.c_library import system_call  # noqa: PLC0415 # ctypes: few have pipes or sockets

        try:
            if self._pidfd is None:
                self._pidfd = os.pidfd_open(self._pid)
            return system_call(_SYS_PIDFD_GETFD, self._pidfd, number, 0)
        except OSError as error:
            # A descriptor that was closed meanwhile is EBADF; all else holds for the other ones as well.
            self.is_refused = error.errno != errno.EBADF
            return None


def _socket_kind(family: int, type_: int) -> OpenFileKind:
    import socket  # noqa: PLC0415 # only sockets and pipes need it

    if family == socket.AF_UNIX:
        return OpenFileKind.UNIX
    if family in {socket.AF_INET, socket.AF_INET6}:
        return {int(socket.SOCK_STREAM): OpenFileKind.TCP, int(socket.SOCK_DGRAM): OpenFileKind.UDP}.get(
            type_, OpenFileKind.SOCKET
        )
    return OpenFileKind.SOCKET


# --- which are the same -----------------------------------------------------------------------------------------------


def description_order(first: tuple[int, int], other: tuple[int, int]) -> int:
    """Compare two descriptors, each a process and a number: 0 where both are one description, else an order.

    Raises:
        OSError: Where the kernel refuses, or one of them is gone.
    """
    from footprint.system.c_library import kcmp  # noqa: PLC0415 # ctypes

    return kcmp(_KCMP_FILE, first[0], other[0], first[1], other[1])


class DescriptionOwners:
    """Charges each open file description to the first process that shows it.

    The inode tells the descriptions of sockets apart, the inode and the direction those of pipes. The kernel compares
    all others (kcmp(2)); it also puts them into an order, so one is found among n others by log n comparisons. Where it
    refuses, descriptors of the same number and inode count as one description.
    """

    def __init__(self, compare: "CompareDescriptions | None" = None) -> None:
        self._compare = compare or description_order
        self._seen: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        self._contents: set[tuple[int, int]] = set()

    def charged_to(self, pid: int, files: Iterable[OpenFile]) -> tuple[OpenFile, ...]:
        """Return the descriptions that no process showed before, the content of each inode with the first of them."""
        return tuple(self._with_own_content(file) for file in files if self._is_new(pid, file))

    def _with_own_content(self, file: OpenFile) -> OpenFile:
        """Leave the content of a pipe or memory file to the first description that showed it."""
        if file.kind not in {OpenFileKind.PIPE, OpenFileKind.MEMORY}:
            return file
        inode = (file.device, file.inode)
        if inode in self._contents:
            return file._replace(content_bytes=0)
        self._contents.add(inode)
        return file

    def _is_new(self, pid: int, file: OpenFile) -> bool:
        seen_here = self._seen.setdefault((file.kind, file.device, file.inode, file.is_write_only), [])
        if seen_here and file.kind in _OWN_INODES:
            return False
        here = (pid, file.descriptor)
        low, high = 0, len(seen_here)
        while low < high:
            middle = (low + high) // 2
            try:
                order = self._compare(here, seen_here[middle])
            except OSError:
                if any(number == file.descriptor for _, number in seen_here):
                    return False
                break
            if order == 0:
                return False
            low, high = (low, middle) if order < 0 else (middle + 1, high)
        seen_here.insert(low, here)
        return True


CompareDescriptions = Callable[[tuple[int, int], tuple[int, int]], int]


def read_own_open_files(pids: Sequence[int]) -> dict[int, tuple[OpenFile, ...]]:
    """Read what each of some live processes has open: each description once, with the first process that has it.

    What a process inherited from a parent that is none of them is left out: it costs nothing more with this process.

    Args:
        pids: The processes, parents first.
    """
    owners = DescriptionOwners()
    for parent in dict.fromkeys(map(_parent_of, pids)):
        if parent and parent not in pids:
            owners.charged_to(parent, read_open_files(parent))
    return _charged({pid: read_open_files(pid) for pid in pids}, owners)


def own_open_files(files_by_pid: Mapping[int, Iterable[OpenFile]]) -> dict[int, tuple[OpenFile, ...]]:
    """Return what each of some saved processes has open, each description once.

    Nobody can compare them any more: descriptors of the same number and inode count as one description.
    """

    def compare(_first: tuple[int, int], _other: tuple[int, int]) -> int:
        raise OSError(errno.ESRCH, "the processes are saved")

    return _charged({pid: tuple(files) for pid, files in files_by_pid.items()}, DescriptionOwners(compare))


def _charged(
    files_by_pid: Mapping[int, tuple[OpenFile, ...]], owners: DescriptionOwners
) -> dict[int, tuple[OpenFile, ...]]:
    """Charge each description to the first process, and count the processes that hold each socket and pipe."""
    holders = Counter(
        inode
        for files in files_by_pid.values()
        for inode in {(file.kind, file.inode) for file in files if file.kind in _OWN_INODES}
    )
    return {
        pid: tuple([f._replace(holder_count=max(1, holders[f.kind, f.inode])) for f in owners.charged_to(pid, files)])
        for pid, files in files_by_pid.items()
    }


def _parent_of(pid: int) -> int:
    """Return the PID of the parent of a process; 0 if it has ended."""
    stat = read_stat(pid)
    return stat.parent_pid if stat else 0
