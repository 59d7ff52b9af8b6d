"""Opens paths below other root directories: no link, `..` or file of /proc leads out of them.

A path below `/proc/PID/root`, or below a root that was entered, is followed as a process with this root would follow
it, by openat2(2) with RESOLVE_IN_ROOT. Before Linux 5.6, and where a filter refuses the call, it is followed name by
name with O_NOFOLLOW. All other paths are opened as usual.

A root can also be a file tree that is no directory, such as a container image: then its own functions follow the paths.
"""

import errno
import os
import re
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Final, Protocol

_MOST_LINKS: Final = 40
_PROCESS_ROOT: Final = re.compile(r"(/proc/(?:\d+|self)/root)(?=/|\Z)")
_ROOT_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OPENAT2: Final = 437  # on all machines but Alpha
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_IN_ROOT: Final = 0x10
# The call is not there, or a filter of a container refuses it; or a folder was moved meanwhile.
_WALKED: Final = {errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EINVAL, errno.E2BIG}


class FileTree(Protocol):
    """The files of a root that is no directory. Paths are absolute, as seen from the root."""

    def stat(self, path: str) -> os.stat_result:
        """Return the facts of what a path leads to.

        Raises:
            OSError: Where it leads nowhere.
        """

    def target(self, path: str) -> str | None:
        """Return the target of a symbolic link; None for what is no link, or is not there."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory.

        Raises:
            OSError: Where it is no directory.
        """

    def data(self, path: str) -> memoryview:
        """Return what a regular file holds.

        Raises:
            OSError: Where it is no regular file, or was not kept.
        """


# The roots, and the length of the longest.
_entered: ContextVar[tuple[frozenset[str], int]] = ContextVar("entered roots", default=(frozenset(), 0))
_trees: ContextVar[dict[str, FileTree] | None] = ContextVar("trees of roots", default=None)


def enter_root(root: str, tree: FileTree | None = None) -> None:
    """Follow the paths that begin with a root in it, until the answer ends.

    Args:
        root: A directory, or the name of a file tree.
        tree: The file tree.
    """
    root = root.rstrip("/")
    roots, longest = _entered.get()
    if root and root not in roots:
        _entered.set((roots | {root}, max(longest, len(root))))
    if tree is not None:
        _trees.set({**(_trees.get() or {}), root: tree})


def leave_tree(root: str) -> None:
    """Forget the file tree of a root: of thousands of packages each is needed for a moment."""
    _trees.set({name: tree for name, tree in (_trees.get() or {}).items() if name != root.rstrip("/")})


def tree_of(path: str) -> tuple[FileTree, str] | None:
    """Return the file tree that a path lies in, and the path in it; None for paths of directories."""
    trees = _trees.get()
    if trees is None or (tree := trees.get(root := _root_of(path) or path)) is None:
        return None
    return tree, path[len(root) :] or "/"


def open_path(path: str, flags: int) -> int:
    """Open a path, below a root in it, and return the descriptor.

    Raises:
        OSError: Where it cannot be opened.
        ValueError: Where it has a null byte.
    """
    root = _root_of(path)
    if not root:
        return os.open(path, flags | os.O_CLOEXEC)
    if tree_of(path) is not None:
        raise OSError(errno.ENOTSUP, "it lies in an image")
    folder = os.open(root, _ROOT_FLAGS)
    try:
        try:
            return _open_in_root(folder, path[len(root) :] or "/", flags | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in _WALKED:
                raise
        return _walk(folder, path[len(root) :], flags | os.O_CLOEXEC)
    finally:
        os.close(folder)


def stat_path(path: str) -> os.stat_result:
    """Return the facts of what a path leads to, below a root in it.

    Raises:
        OSError: Where it leads nowhere.
        ValueError: Where it has a null byte.
    """
    if tree := tree_of(path):
        return tree[0].stat(tree[1])
    if not _root_of(path):
        return os.stat(path)
    descriptor = open_path(path, os.O_PATH)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def folder_names(path: str) -> list[str]:
    """Return the names in a directory, below a root in it.

    Raises:
        OSError: Where it is no directory.
        ValueError: Where it has a null byte.
    """
    if tree := tree_of(path):
        return tree[0].names(tree[1])
    descriptor = open_path(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _root_of(path: str) -> str:
    """Return the root that a path begins with; the longest, if there are several."""
    roots, longest = _entered.get()
    end = longest + 1
    while roots and (end := path.rfind("/", 0, end)) > 0:
        if path[:end] in roots:
            return path[:end]
    if path.startswith("/proc/") and (process := _PROCESS_ROOT.match(path)):
        return process[1]
    return ""


def _open_in_root(folder: int, path: str, flags: int) -> int:
    if "\0" in path:
        raise ValueError("embedded null byte")
    # struct open_how: flags, mode, resolve.
    how = struct.pack("=QQQ", flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    descriptor, cause = _system_call()(_OPENAT2, folder, os.fsencode(path), how, len(how))
    if descriptor < 0:
        raise OSError(cause, os.strerror(cause))
    return descriptor


@cache
def _system_call() -> Callable[[int, int, bytes, bytes, int], tuple[int, int]]:
    """Return what makes a system call, and returns its result and errno; an audit of a group makes ten thousands."""
    import ctypes  # noqa: PLC0415 # few answers have another root

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t
    return lambda *words: (call(*words), ctypes.get_errno())


def _walk(folder: int, path: str, flags: int) -> int:
    """Open a path name by name: each folder on the way is held open, and each link is read as text."""
    opened = [os.dup(folder)]
    waiting = [name for name in path.split("/")[::-1] if name not in {"", "."}]
    links = 0
    try:
        while waiting:
            name = waiting.pop()
            if name == "..":
                if len(opened) > 1:
                    os.close(opened.pop())
                continue
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened[-1])
            opened.append(descriptor)
            if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
                continue
            target = os.readlink("", dir_fd=descriptor)
            os.close(opened.pop())
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                while len(opened) > 1:
                    os.close(opened.pop())
            waiting += [part for part in target.split("/")[::-1] if part not in {"", "."}]
        # What is held is no link: opened again, it is the same file.
        return os.open(f"/proc/self/fd/{opened[-1]}", flags)
    finally:
        for fd in opened:
            os.close(fd)


# --- paths as text ----------------------------------------------------------------------------------------------------


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
    """Follow a path for a process whose root directory is `root`, and enter the root.

    The result is empty, which is the path of no file, if there are more symbolic links than the kernel follows.
    """
    enter_root(root)
    target = resolved(path, lambda inside: link_target(root + inside))
    return "" if target is None else root + target.rstrip("/")


def resolved(path: str, target_of: Callable[[str], str | None]) -> str | None:
    """Follow the links of an absolute path in a root; return None where there are more than the kernel follows.

    Args:
        path: The path in the root.
        target_of: Returns the target of a link in the root; None for what is no link, or is not there.
    """
    at = ""
    waiting = path.split("/")[::-1]
    links = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            at = at.rpartition("/")[0]
        elif name not in {"", "."}:
            target = target_of(f"{at}/{name}")
            if target is None:
                at = f"{at}/{name}"
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            if target.startswith("/"):
                at = ""
            waiting += target.split("/")[::-1]
    return at or "/"


def link_target(path: str) -> str | None:
    """Return the target of a symbolic link; None for what is no link, or is not there."""
    if tree := tree_of(path):
        return tree[0].target(tree[1])
    with suppress(OSError, ValueError):
        return os.readlink(path)
    return None
