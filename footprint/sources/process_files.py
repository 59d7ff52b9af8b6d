"""The ELF files of a process: of a live one those that it has mapped, of a saved one those proven the same."""

import os
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Final

from footprint.elf import Buffer, Image, read_image, starts_like_elf
from footprint.elf.notes import build_id
from footprint.errors import InputError, Note, UsageError
from footprint.model.owner import DELETED
from footprint.process import MappedFile, Mapping, Snapshot, open_mapped_file
from footprint.process.mapped_files import FileKey, FileOpener, file_key, open_regular
from footprint.process.snapshot import FileFacts
from footprint.roots import path_inside, reach_of, stat_path

if TYPE_CHECKING:
    from footprint.attribution.private_bytes import PrivateBytes

__all__ = ("ProcessFiles", "build_id_of", "check_root", "images_of", "open_saved_file")

# A report of a hundred missing files helps nobody: the first ones are named, the rest is counted.
_MOST_FILE_NOTES: Final = 3
# A file was found below the root, and only its path says that it is the right one.
_BY_PATH: Final = "path below root"
_UNKNOWN: Final = FileFacts(None, None)


class ProcessFiles:
    """The files of a live process.

    Args:
        snapshot: The process.

    Attributes:
        paths: The files with its code, as its mappings name them.
        reached: Returns the path that reaches a file of its mappings from here.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        mappings = snapshot.memory.mappings
        names = [one.name for one in mappings if one.inode and one.permissions[2] == "x" and one.name.startswith("/")]
        self.paths = list(dict.fromkeys(names))
        self.reached = reach_of(snapshot.pid or 0)

    def private_bytes(self, images: Sequence[Image]) -> "PrivateBytes":
        """Return what counts the private bytes of some files; it counts none of a file that was replaced."""
        by_path = {image.file: image for image in images}
        found = {}
        for mapping in self._snapshot.memory.mappings:
            key, image = file_key(mapping), by_path.get(mapping.name)
            if key is not None and key not in found and image and _inode(self.reached(image.file)) == mapping.inode:
                found[key] = image
        from footprint.attribution.private_bytes import PrivateBytes  # noqa: PLC0415 # for findings only

        return PrivateBytes(self._snapshot, found)


def _inode(path: str) -> int | None:
    try:
        return stat_path(path).st_ino
    except OSError:
        return None


def images_of(
    snapshot: Snapshot,
    root: str | None = None,
    open_file: FileOpener | None = None,
    known: MutableMapping[tuple[int, str], tuple[Buffer, Image]] | None = None,
) -> tuple[dict[FileKey, Image], tuple[Note, ...]]:
    """Read the headers of the ELF files of a process, and write notes on those that are not available.

    Args:
        snapshot: The process.
        root: The folder that has the files of the other machine under their paths; None for this machine's.
        open_file: Opens a file; None for `open_regular`.
        known: The headers that other processes needed, by their contents and name; those of this process are added.

    Raises:
        UsageError: If `root` is not a folder, or the process is live.
    """
    known = {} if known is None else known
    check_root(root, snapshot)
    images: dict[FileKey, Image] = {}
    missing: list[Note] = []
    unverified: list[str] = []
    mappings = snapshot.memory.mappings
    executable = {(m.device, m.inode, m.name) for m in mappings if m.permissions[2] == "x"}
    for key, index in _mapped_files(snapshot).items():
        if key.inode is None:
            # pmap shows no inode: another file may have this name here.
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
        place = id(found.data), key.name
        try:
            # Contents that are kept here keep their number, which no others get.
            if place not in known:
                known[place] = found.data, read_image(found.data, key.name)
            images[key] = known[place][1]
        except InputError as error:
            missing.append(Note("file-unreadable", key.name, f"{error.detail}, its sections and symbols are unknown"))
            continue
        if found.found_by == _BY_PATH:
            unverified.append(key.name)
    return images, (*_file_notes(missing), *_unverified_note(unverified), *_adjacency_note(snapshot, images))


def _mapped_files(snapshot: Snapshot) -> dict[FileKey, int]:
    """Return the mapped files of a process, each with the place of its first mapping."""
    found: dict[FileKey, int] = {}
    for index, mapping in enumerate(snapshot.memory.mappings):
        key = file_key(mapping)
        if key is not None and not mapping.is_shared:
            found.setdefault(key, index)
    return found


def _file_notes(missing: Sequence[Note]) -> list[Note]:
    if len(missing) <= _MOST_FILE_NOTES:
        return list(missing)
    rest = len(missing) - _MOST_FILE_NOTES
    detail = f"{rest} more files are not available either: their .bss is known by adjacency, nothing by symbol"
    return [*missing[:_MOST_FILE_NOTES], Note("file-not-found", f"{rest} files", detail)]


def _adjacency_note(snapshot: Snapshot, images: dict[FileKey, Image]) -> list[Note]:
    if images or snapshot.is_live or not _mapped_files(snapshot):
        return []
    detail = "no ELF file was read: memory without a name right behind a file's writable data counts as its .bss"
    return [Note("owners-by-adjacency", snapshot.source, detail)]


def check_root(root: str | None, snapshot: Snapshot) -> None:
    """Check that a root directory is a folder, and is needed.

    Raises:
        UsageError: If it is not a folder, or the process is live, whose own files are available.
    """
    if root is None:
        return
    if snapshot.is_live:
        raise UsageError("--root is for captures and saved texts: the files of a live process are its own")
    if not os.path.isdir(root):
        raise UsageError(f"{root} is not a folder")


def open_saved_file(
    mapping: Mapping, facts: FileFacts | None, root: str | None, open_file: FileOpener | None = None
) -> MappedFile | Note:
    """Open the file of a mapping of a capture or a saved text; return a note with the cause if it is not available.

    It is the file below `root`, or at its path on this machine, that has the build-id of the capture. If there is no
    build-id to compare, it is the file at the path below `root`; without `root`, the file with its path and inode on
    this machine.

    Args:
        mapping: A mapping with an inode.
        facts: What a capture says about the file.
        root: The folder that has the files of the other machine under their paths.
        open_file: Opens a file; None for `open_regular`.
    """
    if not mapping.name.startswith("/"):
        detail = "its file is not available (pmap shows only the last part of its path): its symbols are unknown"
        return Note("file-not-found", mapping.name, detail)
    facts = facts or _UNKNOWN
    other, missing = "", ""
    for found_by, path, inode in _candidates(mapping, facts, root):
        data = (open_file or open_regular)(path, inode)
        if isinstance(data, str):
            missing = missing or data
        elif facts.build_id is None:
            if facts.size_bytes in {None, len(data)}:
                return MappedFile(data, found_by)
            missing = missing or f"{path} has {len(data)} bytes, the process mapped one with {facts.size_bytes}"
        else:
            found_id = build_id_of(data, path)
            if found_id == facts.build_id:
                return MappedFile(data, "build-id")
            other = other or f"{path} has {f'the build-id {found_id}' if found_id else 'no build-id'}"
    if other:
        detail = f"{other}, the process mapped one with {facts.build_id}: it is another file, and is not used"
        return Note("build-id-differs", mapping.name, detail)
    detail = f"its file is not available ({missing}): its symbols and sections are unknown"
    return Note("file-not-found", mapping.name, detail)


def _candidates(mapping: Mapping, facts: FileFacts, root: str | None) -> Iterator[tuple[str, str, int | None]]:
    """Return the places where the file may be: how it is found there, the path, and the inode that it must have."""
    path = mapping.name
    if facts.build_id is not None:
        # It was deleted then, but may be there on this machine; the build-id shows it.
        path = path.removesuffix(DELETED)
    if root is not None:
        yield _BY_PATH, path_inside(root, path), None
    if facts.build_id is not None:
        yield "build-id", path, None
    elif root is None:
        yield "inode", path, mapping.inode


def build_id_of(data: Buffer, name: str) -> str | None:
    """Return the build-id of a file; None if it has none, is no ELF file, or is damaged."""
    if not starts_like_elf(data):
        return None
    try:
        return build_id(read_image(data, name, with_sections=False))
    except InputError:
        return None


def _unverified_note(names: Sequence[str]) -> list[Note]:
    """Write a note on the files of which only the path says that they are the right ones."""
    if not names:
        return []
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    detail = f"this file{others} below the given folder was found by its path; no build-id confirms it"
    return [Note("file-unverified", names[0], detail)]
