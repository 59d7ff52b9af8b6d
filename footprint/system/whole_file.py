"""Opens every output of footprint. A file is there whole or not at all.

| what the path names | what happens at the end |
|---|---|
| nothing | a new file is there; the umask decides who may read it |
| a file | a file with the same mode, owner and extended attributes takes its place |
| a file for which this is not possible | it is overwritten, after its space is reserved |
| a file that the same command has read | an error: nothing else may have its contents |
| a link | the same with what it leads to |
| an open file of this process, such as /dev/stdout | it is written to |
| one of another process, such as /proc/1/fd/1 | it is written to, at its end |
| a pipe, a terminal, another character device | it is written to |

Not possible: its folder takes no new file, its owner cannot be kept, something is mounted on it. Other names (hard
links) of a file that is replaced keep the old contents. `open_kept` opens what is written bit by bit.

The rules about strangers hold whatever `fs.protected_symlinks` and its like are set to. Strangers are all but this
user, root, and the owner of `/`. A link of a stranger is refused anywhere on the way. A file or pipe of a stranger is
refused in a folder such as /tmp, where everybody may put one. What is checked is held open, so that nobody can exchange
it meanwhile.

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

from footprint.errors import AccessError, UsageError, cause_of
from footprint.system.files import StrPath, is_input

_MOST_LINKS: Final = 40
_FLAGS: Final = os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
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
        raise AccessError(name, cause_of(error)) from error


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
    with ExitStack() as stack:
        descriptor, stream = _own_descriptor(path), -1
        if descriptor is None:
            folder, name = stack.enter_context(_place(path))
            facts = _facts(folder, name)
            if facts is not None and stat.S_ISREG(facts.st_mode) and is_input(facts) and not replaces_input:
                problem = "is what this answer was made from, and would be replaced by it: name another file"
                raise UsageError(f"{path} {problem}")
            if facts is None or stat.S_ISREG(facts.st_mode):
                yield stack.enter_context(_regular_file(folder, name, mode, keeps_mode=keeps_mode))
                return
            stream = _checked_stream(folder, name)
            stack.callback(os.close, stream)
        contents = io.BytesIO()
        yield contents
        link, flags = f"/proc/self/fd/{stream}", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC
        opened = os.open(link, flags) if descriptor is None else os.dup(descriptor)
        with open(opened, "wb", buffering=0) as file:
            contents.seek(0)
            shutil.copyfileobj(contents, file)


def open_kept(path: str, *, mode: int = 0o600) -> int:
    """Open a regular file to read it and to write to it bit by bit, and create it where it is not there.

    Args:
        path: Where it is.
        mode: The permissions of a new file, less those that the umask takes.

    Raises:
        OSError: Where it cannot be opened, is no regular file, or is a stranger's.
    """
    with _place(path) as (folder, name):
        # A pipe is opened without waiting for its reader, and then refused.
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | _FLAGS, mode, dir_fd=folder)
        return _checked(descriptor, folder, is_stream=False)


def refuse_shared_place(path: str) -> None:
    """Refuse a file that is opened by its path, with files beside it, where a stranger may have put one of them.

    Raises:
        OSError: Where its folder is open to all, it or a link on the way is a stranger's, or there is no such folder.
    """
    with _place(path) as (folder, name):
        facts, folder_facts = _facts(folder, name), os.fstat(folder)
        if folder_facts.st_mode & stat.S_IWOTH:
            raise PermissionError(
                errno.EACCES, "everybody may write to its folder: keep it in another one, or chmod o-w"
            )
        if facts is not None:
            _refuse_strangers(facts, folder_facts)


def own_folder(path: str, *, mode: int = 0o775) -> None:
    """Make a folder, and those on the way to it, and refuse one in which strangers may put files.

    Raises:
        OSError: Where it cannot be made, is a stranger's, or is open to all.
    """
    with _place(f"{path.rstrip('/') or '/'}/.", mode) as (folder, _):
        facts = os.fstat(folder)
        if facts.st_uid not in _trusted_owners():
            raise PermissionError(errno.EACCES, "it belongs to another user: name a folder of your own")
        if facts.st_mode & stat.S_IWOTH:
            raise PermissionError(errno.EACCES, "everybody may write to it: name another folder")


# --- where an output is -----------------------------------------------------------------------------------------------


@contextmanager
def _place(path: str, mode: int | None = None) -> Iterator[tuple[int, str]]:
    """Open the folder that a path leads to, and yield it with the last name, which is no link.

    Args:
        path: A path of a file, or of `.` in a folder.
        mode: The permissions of folders that are made on the way; None where all must be there.

    Raises:
        OSError: Where a name on the way is not there, or is a link of a stranger.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "there is a NUL in the path")
    with ExitStack() as folders:

        def enter(name: str, folder: int | None = None) -> int:
            if mode is not None and folder is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=folder)
            # What is a folder now may have been exchanged for a link; the links of /proc lead to what is open.
            nofollow = 0 if folder is None or _is_proc(folder) else os.O_NOFOLLOW
            descriptor = os.open(name, _FOLDER | nofollow, dir_fd=folder)
            folders.callback(os.close, descriptor)
            return descriptor

        folder = enter("/" if path.startswith("/") else ".")
        names = [name for name in path.split("/")[:-1] if name][::-1]
        # What ends in a slash is a folder.
        names.insert(0, path.rpartition("/")[2] or (path and "."))
        link_count = 0
        while names:
            name = names.pop()
            target = _link_target(folder, name)
            if target is not None:
                link_count += 1
                if link_count > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names += [part for part in target.split("/") if part][::-1] or ["."]
                folder = enter("/") if target.startswith("/") else folder
            elif names:
                folder = enter(name, folder)
        yield folder, name


def _link_target(folder: int, name: str) -> str | None:
    """Return what a link leads to; None for what is no link, is not there, or is a link of /proc to no path.

    Raises:
        PermissionError: Where the link is a stranger's.
    """
    try:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISLNK(facts.st_mode):
            return None
        if facts.st_uid not in _trusted_owners():
            raise PermissionError(errno.EACCES, "a link on the way to it belongs to another user")
        return None if _is_proc(folder) else os.readlink("", dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _is_proc(folder: int) -> bool:
    return os.fstat(folder).st_dev == os.stat("/proc").st_dev


def _trusted_owners() -> set[int]:
    return {os.geteuid(), 0, os.stat("/").st_uid}


def _facts(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _refuse_strangers(file: os.stat_result, folder: os.stat_result) -> None:
    """Refuse what a stranger has put where everybody may, as the `fs.protected_*` settings do."""
    writers = stat.S_IWOTH | (stat.S_IWGRP if folder.st_mode & stat.S_ISVTX else 0)
    is_shared = folder.st_mode & writers
    if is_shared and not stat.S_ISCHR(file.st_mode) and file.st_uid not in {os.geteuid(), folder.st_uid}:
        raise PermissionError(errno.EACCES, "it belongs to another user, in a folder that others may write to")


def _refuse_kind(mode: int, *, is_stream: bool) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "it is a disk")
    if not is_stream and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a file")


def _own_descriptor(path: str) -> int | None:
    """Return the descriptor that a path such as /dev/stdout leads to.

    To open such a path again would begin another file position at 0, or replace the file that the shell has opened.
    """
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        if name.isdecimal() and os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
            return int(name)
        try:
            if os.lstat(path).st_uid not in _trusted_owners():
                break
            path = os.path.join(folder, os.readlink(path))
        except (OSError, ValueError):
            break
    return None


# --- pipes and devices ------------------------------------------------------------------------------------------------


def _checked_stream(folder: int, name: str) -> int:
    """Return a descriptor of a pipe or device that cannot be written to yet: a pipe waits for its reader only then."""
    nofollow = 0 if _is_proc(folder) else os.O_NOFOLLOW
    descriptor = os.open(name, os.O_PATH | nofollow | os.O_CLOEXEC, dir_fd=folder)
    return _checked(descriptor, folder, is_stream=True)


def _checked(descriptor: int, folder: int, *, is_stream: bool) -> int:
    """Return a descriptor if it may be written to; else close it."""
    try:
        facts = os.fstat(descriptor)
        _refuse_kind(facts.st_mode, is_stream=is_stream)
        _refuse_strangers(facts, os.fstat(folder))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def _regular_file(folder: int, name: str, mode: int, *, keeps_mode: bool) -> Iterator[IO[bytes]]:
    temporary = f".footprint-{os.urandom(8).hex()}"
    with ExitStack() as stack:
        old = _open_old(folder, name)
        try:
            if old is not None:
                stack.callback(os.close, old)
                _refuse_strangers(os.fstat(old), os.fstat(folder))
                if not keeps_mode:
                    os.fchmod(old, mode)
            with _begin(folder, name, temporary, old, mode) as file:
                yield file
                file.flush()
                _finish(folder, name, temporary, old, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _open_old(folder: int, name: str) -> int | None:
    try:
        return os.open(name, os.O_WRONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if not name:
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
