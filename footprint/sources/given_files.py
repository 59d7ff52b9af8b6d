"""The files that a user names: each once, by whatever names."""

import os
from collections.abc import Callable, Iterable, Iterator

from footprint.errors import Note

__all__ = ("each_once",)


def each_once(paths: Iterable[str], notes: list[Note], reached: Callable[[str], str] = str) -> Iterator[str]:
    """Give the paths of different files; those that lead to one that was given before become notes.

    Args:
        paths: What they are called.
        notes: What is repeated, to which is added.
        reached: Gives where a file is, where it is not at its path.
    """
    seen: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        identity = _identity(reached(path))
        if identity not in seen:
            seen[identity] = path
            yield path
        elif path == seen[identity]:
            notes.append(Note("file-repeated", path, "it is named several times, counted once"))
        else:
            notes.append(Note("file-repeated", path, f"it is {seen[identity]} by another name, counted once"))


def _identity(path: str) -> tuple[int, int] | str:
    """Give what tells files apart; one that cannot be asked is its path."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return path
    return facts.st_dev, facts.st_ino
