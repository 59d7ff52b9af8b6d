"""The files of one answer, each opened once."""

from collections import OrderedDict
from typing import Final

from footprint.process.mapped_files import FileState, open_regular

__all__ = ("OpenFiles",)

# A map holds a descriptor, and a process may have a thousand of them.
_MOST_FILES: Final = 256


class OpenFiles:
    """Opens regular files, and keeps the latest ones open.

    A file is known by device, inode, size and time of change, so that it is opened once by whatever path it is reached,
    and once more if it is replaced. The same file is the same object each time.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[FileState, bytes | memoryview] = OrderedDict()

    def __call__(self, path: str, inode: int | None = None) -> bytes | memoryview | str:
        """Open a file, and check its inode if one is given; return the cause if that fails."""
        data = open_regular(path, inode, self._known)
        while len(self._known) > _MOST_FILES:
            self._known.popitem(last=False)
        return data
