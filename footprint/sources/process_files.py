"""The ELF files that a live process runs: where they are reached from here, and what of them is private in it."""

import os
from collections.abc import Callable, Sequence

from footprint.attribution.private_bytes import PrivateBytes
from footprint.elf import Image
from footprint.process import Snapshot
from footprint.process.mapped_files import file_key

__all__ = ("ProcessFiles", "path_below", "reach_of")


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
