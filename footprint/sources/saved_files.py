"""The files of a process that was saved: below a folder, or on this machine, and known again by their build-id."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from footprint.elf import Buffer, read_image, starts_like_elf
from footprint.elf.notes import build_id
from footprint.errors import InputError, Note, UsageError
from footprint.model.owner import DELETED
from footprint.process import MappedFile, Mapping, Snapshot
from footprint.process.mapped_files import FileOpener, open_regular
from footprint.process.snapshot import FileFacts

__all__ = ("BY_PATH", "build_id_of", "check_root", "open_saved_file", "path_inside", "unverified_note")

BY_PATH: Final = "path below root"
"""How a file was found that nothing but its path speaks for."""

_MOST_LINKS: Final = 40
_UNKNOWN: Final = FileFacts(None, None)


def build_id_of(data: Buffer, name: str) -> str | None:
    """Give the build-id of a file; None for one that has none, is no ELF file, or is damaged."""
    if not starts_like_elf(data):
        return None
    try:
        return build_id(read_image(data, name))
    except InputError:
        return None


def check_root(root: str | None, snapshot: Snapshot) -> None:
    """Refuse a folder of files that is none, or that nobody needs.

    Raises:
        UsageError: Where it is no folder, or the process is live, whose own files can be had.
    """
    if root is None:
        return
    if snapshot.is_live:
        raise UsageError("--root is for captures and saved texts: the files of a live process are its own")
    if not os.path.isdir(root):
        raise UsageError(f"{root} is no folder")


def open_saved_file(
    mapping: Mapping, facts: FileFacts | None, root: str | None, open_file: FileOpener | None = None
) -> MappedFile | Note:
    """Open the file of a mapping of a capture or a saved text; a note says why it cannot be had.

    It is the file below `root` or at its path on this machine that has the build-id of the capture. Where there is no
    build-id to compare, it is what stands below `root` (`found_by` is `BY_PATH`), or, without `root`, what has its path
    and inode on this machine.

    Args:
        mapping: A mapping with an inode.
        facts: What a capture tells of its file.
        root: A folder that has the files of the other machine under their paths.
        open_file: Opens a file; None for `open_regular`.
    """
    if not mapping.name.startswith("/"):
        detail = "its file cannot be had (pmap shows only the last part of its path): its symbols are not told apart"
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
            missing = missing or f"{path} has {len(data)} bytes, the process had one of {facts.size_bytes}"
        else:
            found_id = build_id_of(data, path)
            if found_id == facts.build_id:
                return MappedFile(data, "build-id")
            other = other or f"{path} has {f'the build-id {found_id}' if found_id else 'no build-id'}"
    if other:
        detail = f"{other}, the process had one of {facts.build_id}: it is another file, and not used"
        return Note("build-id-differs", mapping.name, detail)
    detail = f"its file cannot be had ({missing}): symbols and sections are not told apart"
    return Note("file-not-found", mapping.name, detail)


def unverified_note(names: Sequence[str]) -> list[Note]:
    """Say of which files nothing but the path speaks for them."""
    if not names:
        return []
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    detail = f"nothing tells whether this file{others} below the given folder had these contents: taken by path"
    return [Note("file-unverified", names[0], detail)]


def _candidates(mapping: Mapping, facts: FileFacts, root: str | None) -> Iterator[tuple[str, str, int | None]]:
    """Give where the file may stand: how it is found there, the path, and the inode it must have there."""
    path = mapping.name
    if facts.build_id is not None:
        # Deleted by then, it may stand there again elsewhere; its build-id will tell.
        path = path.removesuffix(DELETED)
    if root is not None:
        yield BY_PATH, path_inside(root, path), None
    if facts.build_id is not None:
        yield "build-id", path, None
    elif root is None:
        yield "inode", path, mapping.inode


def path_inside(root: str, path: str) -> str:
    """Give where a path leads for a process whose `/` is `root`: neither `..` nor a symbolic link leads out of it.

    It is empty, which no file is called, where there are more symbolic links than the kernel would follow.
    """
    waiting = path.split("/")[::-1]
    parts: list[str] = []
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            target = _link_target("/".join((root, *parts, part)))
            if target is None:
                parts.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                return ""
            if target.startswith("/"):
                parts.clear()
            waiting += target.split("/")[::-1]
    return "/".join((root, *parts))


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        # No symbolic link, or nothing at all; opening it will tell.
        return None
