"""The file behind a mapping: the very one, not another that has its path by now."""

import os
import stat
from typing import Final, NamedTuple

from footprint.errors import FootprintError, Note
from footprint.files import map_descriptor
from footprint.model.owner import DELETED
from footprint.process.mappings import Mapping

__all__ = ("FileKey", "MappedFile", "file_key", "open_mapped_file", "open_regular")


class MappedFile(NamedTuple):
    """The bytes of a mapped file.

    Attributes:
        data: A view of the whole file.
        found_by: `path`, `exe` (`/proc/PID/exe`) or `map_files` (`/proc/PID/map_files`, for files without a path).
    """

    data: bytes | memoryview
    found_by: str


def open_mapped_file(mapping: Mapping, pid: int | None) -> MappedFile | Note:
    """Open the file of a mapping; a note says why it cannot be had.

    Args:
        mapping: A mapping with an inode.
        pid: The live process that it belongs to, whose root and whose deleted files are looked into; None for a saved
            text, whose paths are believed only where the inode on this machine is the same.
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
        data = open_regular(candidate, mapping.inode)
        if isinstance(data, str):
            causes.append(data)
        else:
            return MappedFile(data, found_by)
    detail = f"its file cannot be had ({causes[0]}): symbols and sections are not told apart"
    return Note("file-not-found", path, detail)


def open_regular(path: str, inode: int | None) -> bytes | memoryview | str:
    """Open a regular file, of this inode where one is given; else say what is in the way."""
    if inode is not None and not path.startswith("/"):
        # The name that a saved text gives; a file of this name in the current directory would be another one.
        return "pmap shows only the last part of its path"
    try:
        # Asked before it is opened: opening a device or a pipe may block, or do something.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is no regular file"
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    try:
        # The device is not compared: on btrfs and overlayfs the kernel's differs from what stat tells.
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or inode not in {None, facts.st_ino}:
            return "another file has its path now"
        return map_descriptor(descriptor, path)
    except FootprintError as error:
        return error.detail
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(descriptor)


class FileKey(NamedTuple):
    """What tells mapped files apart; a saved pmap text has only the name."""

    device: str | None
    inode: int | None
    name: str


def file_key(mapping: Mapping) -> FileKey | None:
    """Give the file of a mapping; None for memory that no file system holds."""
    name = mapping.name
    if not name or mapping.inode == 0 or name.startswith(_NO_FILES):
        return None
    return FileKey(mapping.device, mapping.inode, name)


# What has an inode of a file system that the kernel keeps for itself: its bytes are memory, not a file on a disk.
MEMORY_FILES: Final = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", "/dev/shm/", "/dev/ashmem/")  # noqa: S108 # read


_NO_FILES: Final = (*MEMORY_FILES, "[", "anon_inode:", "socket:")
