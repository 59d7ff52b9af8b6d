"""The files of one answer, each opened once."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from footprint.errors import Note
from footprint.process.mapped_files import FileState, open_regular
from footprint.system.roots import stat_path

# A map holds a descriptor, and a process may have a thousand of them.
_MOST_FILES: Final = 256


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


def each_once(paths: Iterable[str], notes: list[Note], reached: Callable[[str], str] = str) -> Iterator[str]:
    """Return the paths of different files; a path that leads to a file that was there before becomes a note.

    Args:
        paths: The names of the files.
        notes: Where notes on repeated files are added.
        reached: Returns where a file is, if it is not at its path.
    """
    seen: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        place = _place(reached(path))
        if place not in seen:
            seen[place] = path
            yield path
        elif path == seen[place]:
            notes.append(Note("file-repeated", path, "it is named several times, and counted once"))
        else:
            notes.append(Note("file-repeated", path, f"it is {seen[place]} by another name, and counted once"))


def _place(path: str) -> tuple[int, int] | str:
    """Return what tells files apart; the path, if there is none."""
    try:
        facts = stat_path(path)
    except (OSError, ValueError):
        return path
    return facts.st_dev, facts.st_ino
