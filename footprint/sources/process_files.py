"""The ELF files of a process: of a live one those that it has mapped, of a saved one those proven the same."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, MutableMapping, Sequence
from collections.abc import Mapping as Dict
from contextlib import suppress
from operator import attrgetter
from typing import Final

from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import by_mapping, clip, count_each, private_pages
from footprint.elf.image import Buffer, Image, read_image, starts_like_elf
from footprint.elf.notes import build_id
from footprint.errors import InputError, Note, UsageError
from footprint.members import NamedTuple
from footprint.model.row import DELETED
from footprint.process.mappings import (
    FileKey,
    FileOpener,
    MappedFile,
    Mapping,
    file_key,
    open_mapped_file,
    open_regular,
)
from footprint.process.pages import PageRange, ranges_bytes
from footprint.process.snapshot import FileFacts, Snapshot
from footprint.system.roots import path_inside, reach_of, stat_path


class _Placed(NamedTuple):
    """A range of vaddrs of a file that is loaded at one place; its private pages, or None where these are not known."""

    start_vaddr: int
    end_vaddr: int
    bias_addr: int
    private: Sequence[PageRange] | None


class PrivateBytes:
    """Counts private bytes by the vaddrs of files of a process; `images` are the files that will be asked for."""

    def __init__(self, snapshot: Snapshot, images: Dict[FileKey, Image]) -> None:
        self._placed: Final[dict[int, list[_Placed]]] = {}
        # As long as these are kept, no other image has the id of one of them.
        self._images = tuple(images.values())
        counts = count_each(snapshot.memory.mappings, snapshot.pages)
        parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stacks)
        for within, counted in by_mapping(parts, counts):
            of_objects = [(one, one.loaded, one.loaded.image) for one in within if one.loaded and one.loaded.image]
            private = private_pages(within[0].mapping, counted, snapshot.pages) if of_objects else ()
            for part, loaded, image in of_objects:
                start, end = part.start_addr - loaded.bias_addr, part.end_addr - loaded.bias_addr
                self._placed.setdefault(id(image), []).append(_Placed(start, end, loaded.bias_addr, private))

    def of(self, image: Image, spans: Iterable[tuple[int, int]]) -> int | None:
        """Count the private bytes in some half-open ranges of vaddrs, at all places where the file is loaded.

        Returns:
            The bytes; None where the file is not loaded, or where nothing says which of its pages are private.
        """
        placed = self._placed.get(id(image), ())
        total_bytes = 0
        for start, end in spans:
            is_met = False
            for p in placed:
                first, past = max(start, p.start_vaddr), min(end, p.end_vaddr)
                if first < past:
                    if p.private is None:
                        return None
                    is_met = True
                    total_bytes += _bytes_between(p.private, first + p.bias_addr, past + p.bias_addr)
            if not is_met:
                return None
        return total_bytes


def _bytes_between(private: Sequence[PageRange], start_addr: int, end_addr: int) -> int:
    first = bisect_right(private, start_addr, key=attrgetter("end_addr"))
    past = bisect_left(private, end_addr, first, key=attrgetter("start_addr"))
    return ranges_bytes(clip(private[first:past], start_addr, end_addr))


# A report of a hundred missing files helps nobody: the first ones are named, the rest is counted.
_MOST_FILE_NOTES: Final = 3
# A file was found below the root, and only its path says that it is the right one.
_BY_PATH: Final = "path below root"
_UNKNOWN: Final = FileFacts(None, None)
ImageSets = MutableMapping[Hashable, dict[FileKey, Image]]
"""The files of live processes, by what leads to them: of many processes of a program they are the same."""


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
        names = [m.name for m in mappings if m.inode and m.permissions[2] == "x" and m.name.startswith("/")]
        self.paths = list(dict.fromkeys(names))
        self.reached = reach_of(snapshot.pid or 0)

    def private_bytes(self, images: Sequence[Image]) -> "PrivateBytes":
        """Return what counts the private bytes of some files; it counts none of a file that was replaced."""
        by_path = {image.file: image for image in images}
        kept = {}
        for mapping in self._snapshot.memory.mappings:
            key, image = file_key(mapping), by_path.get(mapping.name)
            if key is not None and key not in kept and image and _inode(self.reached(image.file)) == mapping.inode:
                kept[key] = image

        return PrivateBytes(self._snapshot, kept)


def _inode(path: str) -> int | None:
    try:
        return stat_path(path).st_ino
    except OSError:
        return None


def images_of(
    snapshot: Snapshot,
    root: str | None = None,
    open_file: FileOpener | None = None,
    headers: MutableMapping[tuple[int, str], tuple[Buffer, Image]] | None = None,
) -> tuple[dict[FileKey, Image], tuple[Note, ...]]:
    """Read the headers of the ELF files of a process, and write notes on those that are not available.

    Args:
        snapshot: The process.
        root: The folder that has the files of the other machine under their paths; None for this machine's.
        open_file: Opens a file; None for `open_regular`.
        headers: The headers that other processes needed, by their contents and name; those of this process are added.

    Raises:
        UsageError: If `root` is not a folder, or the process is live.
    """
    headers = {} if headers is None else headers
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
            opened = open_mapped_file(mappings[index], snapshot.pid, open_file)
        else:
            opened = open_saved_file(mappings[index], snapshot.files.get(key), root, open_file)
        if isinstance(opened, Note):
            if key in executable or ".so" in key.name:
                missing.append(opened)
            continue
        if not starts_like_elf(opened.data):
            continue
        place = id(opened.data), key.name
        try:
            # Contents that are kept here keep their number, which no others get.
            if place not in headers:
                headers[place] = opened.data, read_image(opened.data, key.name)
            images[key] = headers[place][1]
        except InputError as error:
            missing.append(Note("file-unreadable", key.name, f"{error.detail}, its sections and symbols are unknown"))
            continue
        if opened.found_by == _BY_PATH:
            unverified.append(key.name)
    return images, (*_file_notes(missing), *_unverified_note(unverified), *_adjacency_note(snapshot, images))


def images_of_many(
    snapshot: Snapshot,
    image_sets: ImageSets | None,
    root: str | None,
    open_file: FileOpener,
    headers: MutableMapping[tuple[int, str], tuple[Buffer, Image]],
) -> tuple[dict[FileKey, Image], tuple[Note, ...]]:
    """Return what `images_of` does: once for the live processes that have the same files, mounts and root directory.

    Args:
        snapshot: The process.
        image_sets: The files of others that were read at about the same time; those of this process are added. None
            for a process by itself.
        root: As for `images_of`.
        open_file: The same.
        headers: The same.
    """
    if image_sets is None:
        return images_of(snapshot, root, open_file, headers)
    view: tuple[int, ...] = ()
    if snapshot.is_live:
        with suppress(OSError):
            mounts, top = (os.stat(f"/proc/{snapshot.pid}/{name}") for name in ("ns/mnt", "root"))
            view = mounts.st_ino, top.st_dev, top.st_ino
    alike = (view, *_mapped_files(snapshot))
    if view and alike in image_sets:
        return image_sets[alike], ()
    images, notes = images_of(snapshot, root, open_file, headers)
    if view and not notes:
        image_sets[alike] = images
    return images, notes


def _mapped_files(snapshot: Snapshot) -> dict[FileKey, int]:
    """Return the mapped files of a process, each with the place of its first mapping."""
    first_of_file: dict[FileKey, int] = {}
    for index, mapping in enumerate(snapshot.memory.mappings):
        key = file_key(mapping)
        if key is not None and not mapping.is_shared:
            first_of_file.setdefault(key, index)
    return first_of_file


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
    """Return a note on the files of which only the path says that they are the right ones."""
    if not names:
        return []
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    detail = f"this file{others} below the given folder was found by its path; no build-id confirms it"
    return [Note("file-unverified", names[0], detail)]
