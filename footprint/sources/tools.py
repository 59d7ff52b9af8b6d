"""Finds the programs that footprint starts by itself, such as c++filt and valgrind."""

import os
import stat

__all__ = ("find_tool",)


def find_tool(name: str) -> str | None:
    """Return the path of a program in PATH, or None.

    Folders of PATH that depend on where we are (`.`, an empty entry) are left out, and so is what anybody may replace:
    a program, or a folder above it, that all users may write. A folder such as /tmp, in which nobody may replace what
    belongs to others, may lie above what belongs to us or to root.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        is_program = os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK)
        # The links on the way count, and what they lead to.
        if is_program and all(map(_is_ours, (os.path.normpath(path), os.path.realpath(path)))):
            return path
    return None


def _is_ours(path: str) -> bool:
    """Return whether nobody but its owners may replace a file, or a folder above it."""
    owner = None
    while True:
        facts = os.lstat(path)
        is_replaceable = facts.st_mode & stat.S_IWOTH and not stat.S_ISLNK(facts.st_mode)
        is_kept = facts.st_mode & stat.S_ISVTX and owner in {0, os.geteuid()}
        if is_replaceable and not is_kept:
            return False
        owner, above = facts.st_uid, os.path.dirname(path)
        if above == path:
            return True
        path = above
