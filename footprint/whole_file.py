"""Writes files: an output of footprint is there whole or not at all.

| what the path names | what happens at the end |
|---|---|
| nothing | a new file is there; the umask decides who may read it |
| a file | a file with the same mode, owner and extended attributes takes its place |
| a file for which this is not possible | it is overwritten, after its space is reserved |
| a file that the same command has read | an error: nothing else may have its contents |
| a link | the same with what it leads to |
| an open file of this process, such as /dev/stdout | it is written to |
| a pipe, a terminal, another character device | it is written to |

Not possible: its folder takes no new file, its owner cannot be kept, something is mounted on it. The kernel follows the
links, so its rules about links of strangers hold (`fs.protected_symlinks`). Files, pipes and links of strangers in a
folder such as /tmp are refused. Other names (hard links) of a file that is replaced keep the old contents.

Source: open(2), linkat(2), rename(2), proc_sys_fs(5).
"""

import errno
import io
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Final

from footprint.errors import AccessError, UsageError
from footprint.files import StrPath, is_input

__all__ = ("whole_file", "write_file")

_MOST_LINKS: Final = 40
_FLAGS: Final = os.O_CLOEXEC | os.O_NOCTTY
_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# The kernel takes it from a file that is written to: it would give the new contents the rights of the old ones.
_NOT_KEPT: Final = "security.capability"


def write_file(
    path: StrPath, data: bytes | Iterable[bytes], *, mode: int = 0o666, replaces_input: bool = False
) -> None:
    """Write a whole file.

    Args:
        path: Where to write.
        data: The contents.
        mode: The permissions of a new file, less those that the umask takes.
        replaces_input: Whether it may take the place of a file that the command has read.

    Raises:
        AccessError: If it cannot be written.
        UsageError: If it would replace an input.
    """
    name = os.fspath(path)
    try:
        with whole_file(name, mode=mode, replaces_input=replaces_input) as file:
            file.writelines([data] if isinstance(data, bytes) else data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AccessError(name, error.strerror or str(error)) from error


@contextmanager
def whole_file(
    path: str, *, mode: int = 0o666, keeps_mode: bool = True, replaces_input: bool = False
) -> Iterator[IO[bytes]]:
    """Open a file for writing. What is written to it reaches `path` if all went well; otherwise nothing changes there.

    Args:
        path: Where to write.
        mode: The permissions of a new file, less those that the umask takes.
        keeps_mode: Whether a file that is replaced keeps its permissions; else it gets these, at once.
        replaces_input: Whether it may take the place of a file that the command has read.

    Raises:
        OSError: Where it cannot be written.
        UsageError: Where it would replace an input.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "there is a NUL in the path")
    if os.path.islink(path):
        _check_owner(os.lstat(path), os.stat(os.path.dirname(path) or "."))
    own = _own_descriptor(path)
    if own is None and _is_regular_or_new(path, replaces_input=replaces_input):
        with _regular_file(path, mode, keeps_mode=keeps_mode) as file:
            yield file
        return
    held = io.BytesIO()
    yield held
    with open(_open_stream(path) if own is None else os.dup(own), "wb", buffering=0) as stream:
        held.seek(0)
        shutil.copyfileobj(held, stream)


def _own_descriptor(path: str) -> int | None:
    """Return the descriptor that a path such as /dev/stdout leads to.

    To open such a path again would begin another file position at 0, or replace the file that the shell has opened.
    """
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        if name.isdecimal() and os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError:
            break
    return None


def _is_regular_or_new(path: str, *, replaces_input: bool) -> bool:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return True
    kind = facts.st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISBLK(kind):
        raise OSError(errno.EINVAL, "it is a disk")
    if stat.S_ISREG(kind) and is_input(facts) and not replaces_input:
        raise UsageError(f"{path} is what this answer was made from, and would be replaced by it: name another file")
    return stat.S_ISREG(kind)


def _open_stream(path: str) -> int:
    """Open a pipe or device; without O_CREAT, so that no file appears in /dev where the device has gone."""
    descriptor = os.open(path, os.O_WRONLY | _FLAGS)
    try:
        _check_owner(os.fstat(descriptor), os.stat(os.path.dirname(os.path.realpath(path))))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(file: os.stat_result, folder: os.stat_result) -> None:
    """Refuse what a stranger has put where everybody may: as the `fs.protected_*` settings do."""
    is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_shared and not stat.S_ISCHR(file.st_mode) and file.st_uid not in {os.geteuid(), folder.st_uid}:
        raise PermissionError(errno.EACCES, "it belongs to another user, in a folder that others may write to")


@contextmanager
def _regular_file(path: str, mode: int, *, keeps_mode: bool) -> Iterator[IO[bytes]]:
    with ExitStack() as stack:
        is_dangling = os.path.islink(path) and not os.path.exists(path)
        old = _open_old(path, mode if is_dangling else None)
        if old is not None:
            stack.callback(os.close, old)
        folder_path, name = os.path.split(path if old is None else os.path.realpath(path))
        folder = os.open(folder_path or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, folder)
        temporary = f".footprint-{os.urandom(8).hex()}"
        try:
            if old is not None:
                _check_owner(os.fstat(old), os.fstat(folder))
                if not keeps_mode:
                    os.fchmod(old, mode)
            with _begin(folder, name, temporary, old, mode) as file:
                yield file
                file.flush()
                _finish(folder, name, temporary, old, file)
        except BaseException:
            for made in (temporary, name) if is_dangling else (temporary,):
                with suppress(OSError):
                    os.unlink(made, dir_fd=folder)
            raise


def _open_old(path: str, mode: int | None) -> int | None:
    """Open what stands there. With a mode, the target of a link is made first: by the kernel, which checks the link."""
    try:
        return os.open(path, os.O_WRONLY | _FLAGS | (0 if mode is None else os.O_CREAT), mode or 0)
    except FileNotFoundError:
        if mode is not None:
            raise
        return None


def _begin(folder: int, name: str, temporary: str, old: int | None, mode: int) -> IO[bytes]:
    """Open the file that takes the place of the old one; where none can, hold in memory what overwrites it."""
    try:
        file = open(_create(folder, temporary, mode), "w+b")  # noqa: SIM115 # closed by the caller
    except OSError:
        if old is None:
            raise
        return io.BytesIO()
    if old is None:
        return file
    try:
        # Another file may stand at the path by now, or, where it is seen from another place, have stood there always.
        if os.path.samestat(os.fstat(old), os.stat(name, dir_fd=folder, follow_symlinks=False)):
            _keep_facts(old, file.fileno())
            return file
    except OSError:
        pass
    file.close()
    with suppress(OSError):
        os.unlink(temporary, dir_fd=folder)
    return io.BytesIO()


def _create(folder: int, temporary: str, mode: int) -> int:
    """Create a file without name, of which nothing is left if footprint is killed; not each file system has such."""
    try:
        return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError:
        return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)


def _keep_facts(old: int, new: int) -> None:
    """Copy owner, extended attributes (with them access lists) and mode.

    Raises:
        OSError: Where the owner cannot be kept.
    """
    before, now = os.fstat(old), os.fstat(new)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        os.fchown(new, before.st_uid, before.st_gid)
    with suppress(OSError):
        for name in os.listxattr(old):
            if name != _NOT_KEPT:
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))
    # Without setuid, for the same reason as _NOT_KEPT.
    os.fchmod(new, before.st_mode & 0o777)


def _finish(folder: int, name: str, temporary: str, old: int | None, file: IO[bytes]) -> None:
    try:
        _replace(folder, name, temporary, file)
    except OSError:
        if old is None:
            raise
        _overwrite(old, file)
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _replace(folder: int, name: str, temporary: str, file: IO[bytes]) -> None:
    # Memory has no descriptor: that is an OSError, too.
    descriptor = file.fileno()
    if os.fstat(descriptor).st_nlink == 0:
        # With a folder, Python follows the link to the file.
        os.link(f"/proc/self/fd/{descriptor}", temporary, dst_dir_fd=folder)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _overwrite(old: int, file: IO[bytes]) -> None:
    """Overwrite a file. On a full disk it stays as it was: space is reserved first."""
    old_bytes, new_bytes = os.fstat(old).st_size, file.seek(0, io.SEEK_END)
    file.seek(0)
    if new_bytes > old_bytes:
        try:
            os.posix_fallocate(old, old_bytes, new_bytes - old_bytes)
        except OSError as error:
            if error.errno in _NO_SPACE:
                os.ftruncate(old, old_bytes)
                raise
    with open(os.dup(old), "wb") as target:
        shutil.copyfileobj(file, target)
    os.ftruncate(old, new_bytes)
