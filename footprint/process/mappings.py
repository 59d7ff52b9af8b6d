"""The memory map of one process: its mappings, the kernel's counters of each, and the files behind them.

The file behind a mapping is the one with the same inode, not a newer file at the same path.

Source: proc_pid_maps(5), proc_pid_smaps(5).
"""

import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from collections.abc import Mapping as AbstractMapping
from types import MappingProxyType
from typing import Final

from footprint.errors import FootprintError, Note, cause_of
from footprint.members import NamedTuple
from footprint.model.row import DELETED
from footprint.system.files import map_descriptor
from footprint.system.roots import open_path, stat_path, tree_of

StackBlock = tuple[int, int]
"""The first address of the block of a stack, and the first behind it."""
FileOpener = Callable[[str, int | None], bytes | memoryview | str]
"""Opens a regular file, as `open_regular` does."""
# Names with an inode of a file system inside the kernel: their bytes are memory, not a file on a disk.
MEMORY_FILES: Final = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", "/dev/shm/", "/dev/ashmem/")  # noqa: S108 # only compared
# A map holds a descriptor, and a process may have a thousand of them.
_MOST_FILES: Final = 256
_FIRST_64_BIT_ADDR: Final = 1 << 32
_NO_FILES: Final = (*MEMORY_FILES, "[", "anon_inode:", "socket:")


class Counters(NamedTuple):
    """The counters of one mapping, in bytes, under the kernel's own names (`Rss`, `Private_Dirty`, ...).

    The mappings of a text share one `keys`, so a counter costs one slot. A missing counter is None, never 0.

    Attributes:
        keys: The index of each counter in `values`, in the order of the text.
        values: Bytes; for a key without unit (`THPeligible`, `ProtectionKey`) the plain number.
    """

    keys: dict[str, int]
    values: tuple[int, ...]

    def get(self, key: str) -> int | None:
        """Return one counter, or None where the text lacks it."""
        place = self.keys.get(key)
        return None if place is None else self.values[place]

    def private_bounds(self) -> tuple[int, int]:
        """Compute the least and the most anonymous resident bytes that these counters allow to be private."""
        resident_bytes, anonymous_bytes = self.get("Rss"), self.get("Anonymous") or 0
        if resident_bytes is not None:
            # A text may contain any figures. Anonymous bytes are part of the resident bytes.
            anonymous_bytes = min(anonymous_bytes, resident_bytes)
        many_times_bytes = (self.get("Shared_Clean") or 0) + (self.get("Shared_Dirty") or 0)
        once_bytes = (self.get("Private_Clean") or 0) + (self.get("Private_Dirty") or 0)
        return max(0, anonymous_bytes - many_times_bytes), min(anonymous_bytes, once_bytes)

    def swap_share_bytes(self) -> int | None:
        """Return the share of swapped pages (`SwapPss`), where others have some of these as well; else None."""
        share_bytes = self.get("SwapPss")
        return share_bytes if share_bytes is not None and share_bytes < (self.get("Swap") or 0) else None


NO_COUNTERS: Final = Counters({}, ())


class Mapping(NamedTuple):
    """One mapping (VMA) of a process. The address range is half-open.

    Attributes:
        start_addr: First address of the mapping.
        end_addr: First address behind it.
        permissions: Four letters as in maps: `rw-p`; the last one is `s` for a shared mapping.
        offset: The offset of the mapping in its file, in bytes; None where the text lacks it.
        device: `major:minor` in hexadecimal as printed; None where the text lacks it.
        inode: The inode number; 0 for anonymous memory, None where the text lacks it.
        name: The name column as printed (bytes that are not UTF-8 as surrogates); "" for a mapping without a name.
        counters: The counters of the kernel.
        vm_flags: The two-letter codes of `VmFlags`, separated by spaces; None where the text lacks them.
        unknown_lines: Lines of the block that have no known form, as printed.
    """

    start_addr: int
    end_addr: int
    permissions: str
    offset: int | None = None
    device: str | None = None
    inode: int | None = None
    name: str = ""
    counters: Counters = NO_COUNTERS
    vm_flags: str | None = None
    unknown_lines: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Return the virtual size."""
        return self.end_addr - self.start_addr

    @property
    def is_shared(self) -> bool:
        """Return whether other processes see writes to it (MAP_SHARED)."""
        return self.permissions[3] == "s"

    @property
    def is_mapped_writable(self) -> bool:
        """Return whether it is writable and private, as counted in `writeable/private` of pmap."""
        return self.permissions[1] == "w" and self.permissions[3] == "p"


class MemoryMap(NamedTuple):
    """All mappings of one process at one moment, from one text.

    Attributes:
        dialect: The kind of text: `maps`, `smaps`, `pmap`, `pmap -d`, `pmap -x`, `pmap -X`, `toybox pmap`, ...
        mappings: In the order of the text, which is the order of addresses.
        pid: The process ID, where the text has it.
        command: Its command line or name as printed, where the text has it.
        footer: The totals at the end of the text, in bytes, under the names of its columns; empty without totals.
        notes: Oddities of the text.
    """

    dialect: str
    mappings: tuple[Mapping, ...]
    pid: int | None = None
    command: str | None = None
    footer: AbstractMapping[str, int] = MappingProxyType({})
    notes: tuple[Note, ...] = ()

    def sum(self, key: str) -> int:
        """Add up one counter over all mappings that have it."""
        return self.sums(key)[0]

    def sums(self, *keys: str) -> list[int]:
        """Add up some counters, each over all mappings that have it."""
        # The mappings of a text have one set of keys, or a few.
        alike: dict[int, tuple[dict[str, int], list[tuple[int, ...]]]] = {}
        for places, values in [mapping.counters for mapping in self.mappings]:
            alike.setdefault(id(places), (places, []))[1].append(values)
        totals = [0] * len(keys)
        for places, rows in alike.values():
            for at, key in enumerate(keys):
                if (place := places.get(key)) is not None:
                    totals[at] += sum([values[place] for values in rows])
        return totals


def word_bytes_of(mappings: Iterable[Mapping]) -> int:
    """Return the size of a pointer of a process, by where its memory is."""
    is_64 = any(mapping.start_addr >= _FIRST_64_BIT_ADDR and mapping.name != "[vsyscall]" for mapping in mappings)
    return 8 if is_64 else 4


class ThreadStacks(NamedTuple):
    """What the threads other than the first say.

    Attributes:
        pointers: The stack pointers of those that wait in the kernel; a running thread has none to read.
        blocks: The blocks that are known, ascending.
    """

    pointers: tuple[int, ...] = ()
    blocks: tuple[StackBlock, ...] = ()


NO_STACKS: Final = ThreadStacks()
"""Of a process with one thread, and of one that is not known."""


class FileState(NamedTuple):
    """The identity of a file and its contents at one moment."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int

    @classmethod
    def of(cls, facts: os.stat_result) -> "FileState":
        """Return the state that `stat` found."""
        return cls(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)


class MappedFile(NamedTuple):
    """The bytes of a mapped file.

    Attributes:
        data: The whole file.
        found_by: `path`, `exe` (`/proc/PID/exe`) or `map_files` (`/proc/PID/map_files`, for files without a path).
    """

    data: bytes | memoryview
    found_by: str


def open_mapped_file(mapping: Mapping, pid: int | None, open_file: FileOpener | None = None) -> MappedFile | Note:
    """Open the file of a mapping; return a note with the cause where it is not available.

    Args:
        mapping: A mapping with an inode.
        pid: The live process of the mapping, to search its root directory and its deleted files; None for a saved
            text, whose paths count only where the inode on this machine is the same.
        open_file: Opens a file; None for `open_regular`.
    """
    path = mapping.name
    candidates = [("path", f"/proc/{pid}/root{path}" if pid else path)]
    if pid:
        candidates.append(("exe", f"/proc/{pid}/exe"))
        candidates.append(("map_files", f"/proc/{pid}/map_files/{mapping.start_addr:x}-{mapping.end_addr:x}"))
    causes = []
    for found_by, candidate in candidates:
        if found_by == "path" and path.endswith(DELETED) and pid:
            causes.append("it was deleted")
            continue
        data = (open_file or open_regular)(candidate, mapping.inode)
        if isinstance(data, str):
            causes.append(data)
        else:
            return MappedFile(data, found_by)
    detail = f"its file is not available ({causes[0]}): its symbols and sections are unknown"
    return Note("file-not-found", path, detail)


def open_regular(
    path: str, inode: int | None, kept: MutableMapping[FileState, bytes | memoryview] | None = None
) -> bytes | memoryview | str:
    """Open a regular file, and check its inode where one is given; return the cause where that fails.

    Args:
        path: The file.
        inode: The inode that it must have; None for any.
        kept: The files that are open already, which are returned again; the file is added.
    """
    if inode is not None and not path.startswith("/"):
        # A saved text can hold bare file names; a file of that name in the working directory is another one.
        return "pmap shows only the last part of its path"
    try:
        # Check before opening: to open a device or a pipe may block or have an effect.
        facts = stat_path(path)
        if not stat.S_ISREG(facts.st_mode):
            return "it is not a regular file"
        if kept and inode in {None, facts.st_ino} and (data := kept.get(FileState.of(facts))) is not None:
            return data
        if tree := tree_of(path):
            return tree[0].data(tree[1])
        descriptor = open_path(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        return cause_of(error)
    try:
        # Do not compare the device: on btrfs and overlayfs the one in maps differs from that of stat.
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or inode not in {None, facts.st_ino}:
            return "another file has its path now"
        data = map_descriptor(descriptor, path)
    except FootprintError as error:
        return error.detail
    except OSError as error:
        return cause_of(error)
    finally:
        os.close(descriptor)
    if kept is not None:
        kept[FileState.of(facts)] = data
    return data


class OpenFiles:
    """Opens regular files, and keeps the latest ones open.

    A file is known by device, inode, size and time of change, so that it is opened once by whatever path it is reached,
    and once more if it is replaced. The same file is the same object each time.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[FileState, bytes | memoryview] = OrderedDict()

    def __call__(self, path: str, inode: int | None = None) -> bytes | memoryview | str:
        """Open a file, and check its inode if one is given; return the cause if that fails."""
        data = open_regular(path, inode, self._contents)
        while len(self._contents) > _MOST_FILES:
            self._contents.popitem(last=False)
        return data


class FileKey(NamedTuple):
    """The identity of a mapped file; a saved pmap text has only the name."""

    device: str | None
    inode: int | None
    name: str


def file_key(mapping: Mapping) -> FileKey | None:
    """Return the identity of the file of a mapping; None for memory that is in no file system."""
    name = mapping.name
    if not name or mapping.inode == 0 or name.startswith(_NO_FILES):
        return None
    return FileKey(mapping.device, mapping.inode, name)
