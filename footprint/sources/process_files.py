"""The ELF files that a live process runs: where they are reached from here, and what of them is private in it."""

import os
from collections.abc import Callable, Sequence
from typing import Final

from footprint.attribution.private_bytes import PrivateBytes
from footprint.attribution.process_audit import mapped_files
from footprint.elf import Image, read_image, starts_like_elf
from footprint.errors import InputError, Note
from footprint.process import Snapshot, open_mapped_file
from footprint.process.mapped_files import FileKey, FileOpener, file_key
from footprint.sources.saved_files import BY_PATH, check_root, open_saved_file, unverified_note

__all__ = ("ProcessFiles", "images_of", "path_below", "reach_of")


# A report of a hundred files that are not there helps nobody: the first ones are named, the rest counted.
_MOST_FILE_NOTES: Final = 3


class ProcessFiles:
    """The files of a process.

    Args:
        snapshot: The process, read live.

    Attributes:
        paths: Of the files that it runs, as its mappings name them.
        reached: Gives where a file that they name is reached from here.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        mappings = snapshot.memory.mappings
        names = [one.name for one in mappings if one.inode and one.permissions[2] == "x" and one.name.startswith("/")]
        self.paths = list(dict.fromkeys(names))
        self.reached = reach_of(snapshot.pid or 0)

    def private_bytes(self, images: Sequence[Image]) -> PrivateBytes:
        """Give what counts the private bytes of these files; of one that has the path of another by now, none."""
        by_path = {image.file: image for image in images}
        found = {}
        for mapping in self._snapshot.memory.mappings:
            key, image = file_key(mapping), by_path.get(mapping.name)
            if key is not None and key not in found and image and _inode(self.reached(image.file)) == mapping.inode:
                found[key] = image
        return PrivateBytes(self._snapshot, found)


def reach_of(pid: int) -> Callable[[str], str]:
    """Give what tells where a file is reached from here that the mappings of a live process name."""
    root = f"/proc/{pid}/root"
    try:
        own_folder = os.readlink(root)
    except OSError:
        own_folder = "/"
    return lambda path: f"{root}{path_below(path, own_folder)}"


def path_below(path: str, folder: str) -> str:
    """Give a path as a process sees it that takes a folder for `/`."""
    prefix = folder.rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(f"{prefix}/") else path


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def images_of(
    snapshot: Snapshot, root: str | None = None, open_file: FileOpener | None = None
) -> tuple[dict[FileKey, Image], tuple[Note, ...]]:
    """Read the headers of the ELF files of a process, below `root` where given; those not to be had become notes."""
    check_root(root, snapshot)
    images: dict[FileKey, Image] = {}
    missing: list[Note] = []
    unverified: list[str] = []
    mappings = snapshot.memory.mappings
    executable = {(m.device, m.inode, m.name) for m in mappings if m.permissions[2] == "x"}
    for key, index in mapped_files(snapshot).items():
        if key.inode is None:
            # pmap does not say which file it was: another one may have this name here.
            continue
        if snapshot.is_live:
            found = open_mapped_file(mappings[index], snapshot.pid, open_file)
        else:
            found = open_saved_file(mappings[index], snapshot.files.get(key), root, open_file)
        if isinstance(found, Note):
            if key in executable or ".so" in key.name:
                missing.append(found)
            continue
        if not starts_like_elf(found.data):
            continue
        try:
            images[key] = read_image(found.data, key.name)
        except InputError as error:
            missing.append(
                Note("file-unreadable", key.name, f"{error.detail}, its sections and symbols are not told apart")
            )
            continue
        if found.found_by == BY_PATH:
            unverified.append(key.name)
    return images, (*_file_notes(missing), *unverified_note(unverified), *_adjacency_note(snapshot, images))


def _file_notes(missing: Sequence[Note]) -> list[Note]:
    if len(missing) <= _MOST_FILE_NOTES:
        return list(missing)
    rest = len(missing) - _MOST_FILE_NOTES
    detail = f"{rest} more files cannot be had either: their .bss is told by adjacency, nothing by symbol"
    return [*missing[:_MOST_FILE_NOTES], Note("file-not-found", f"{rest} files", detail)]


def _adjacency_note(snapshot: Snapshot, images: dict[FileKey, Image]) -> list[Note]:
    if images or snapshot.is_live or not mapped_files(snapshot):
        return []
    detail = "no ELF file was read: nameless memory right behind a file's writable data is taken for its .bss"
    return [Note("owners-by-adjacency", snapshot.source, detail)]
