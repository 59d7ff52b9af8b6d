"""The ELF files that a live process runs, as they are reached from here, and what of them is private in it."""

import os
from collections.abc import Sequence

from footprint.audit.layout import file_key
from footprint.audit.private_bytes import PrivateBytes
from footprint.elf import Image
from footprint.process import Snapshot

__all__ = ("ProcessFiles",)


class ProcessFiles:
    """The files of a process.

    Args:
        snapshot: The process, read live.

    Attributes:
        paths: Of the files that it runs, as they are reached from here.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._folder = f"/proc/{snapshot.pid}/root"
        self._snapshot = snapshot
        mappings = snapshot.memory.mappings
        names = [one.name for one in mappings if one.inode and one.permissions[2] == "x" and one.name.startswith("/")]
        self.paths = [f"{self._folder}{name}" for name in dict.fromkeys(names)]

    def private_bytes(self, images: Sequence[Image]) -> PrivateBytes:
        """Give what counts the private bytes of these files; of one that has the path of another by now, none."""
        by_path = {image.file: image for image in images}
        found = {}
        for mapping in self._snapshot.memory.mappings:
            key, path = file_key(mapping), f"{self._folder}{mapping.name}"
            if key is not None and key not in found and path in by_path and _inode(path) == mapping.inode:
                found[key] = by_path[path]
        return PrivateBytes(self._snapshot, found)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
