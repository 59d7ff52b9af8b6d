"""Paths as a process with another root directory sees them, and as they are reached from here."""

import os
from collections.abc import Callable
from typing import Final

__all__ = ("path_below", "path_inside", "reach_of")

_MOST_LINKS: Final = 40


def reach_of(pid: int) -> Callable[[str], str]:
    """Return a function from a path in the mappings of a live process to a path that reaches the file from here."""
    root = f"/proc/{pid}/root"
    try:
        own_folder = os.readlink(root)
    except OSError:
        own_folder = "/"
    return lambda path: f"{root}{path_below(path, own_folder)}"


def path_below(path: str, folder: str) -> str:
    """Return a path as a process sees it whose root directory is `folder`."""
    prefix = folder.rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(f"{prefix}/") else path


def path_inside(root: str, path: str) -> str:
    """Follow a path for a process whose root directory is `root`: neither `..` nor a symbolic link leads out of it.

    The result is empty, which is the path of no file, if there are more symbolic links than the kernel follows.
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
        # It is no symbolic link, or nothing at all: opening it shows which.
        return None
