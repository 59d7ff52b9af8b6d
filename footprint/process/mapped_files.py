"""The file behind a mapping: the same inode, not a newer file at the same path."""

import os
import stat
from collections.abc import Callable, MutableMapping
from typing import Final

from footprint.errors import FootprintError, Note, cause_of
from footprint.members import NamedTuple
from footprint.model.row import DELETED
from footprint.process.mappings import Mapping
from footprint.system.files import map_descriptor
from footprint.system.roots import open_path, stat_path, tree_of

FileOpener = Callable[[str, int | None], bytes | memoryview | str]
"""Opens a regular file, as `open_regular` does."""


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


# Names with an inode of a file system inside the kernel: their bytes are memory, not a file on a disk.
MEMORY_FILES: Final = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", "/dev/shm/", "/dev/ashmem/")  # noqa: S108 # only compared


_NO_FILES: Final = (*MEMORY_FILES, "[", "anon_inode:", "socket:")
