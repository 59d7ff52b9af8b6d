"""A file system below a root directory, as its loader sees it. All I/O of the loader package is here.

The file system is assumed not to change: each path, link and directory is read once.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import Final

from footprint.elf import abi
from footprint.elf.dynamic import Linkage, read_linkage
from footprint.elf.image import Image, read_image
from footprint.errors import AccessError, InputError
from footprint.members import NamedTuple
from footprint.process.mappings import FileOpener, FileState, open_regular
from footprint.system.limits import draw_entries
from footprint.system.roots import enter_root, folder_names, link_target, resolved, stat_path

# Each mapped file holds a descriptor, and a process has about a thousand: the least recently used ones are closed.
_MOST_MAPPED_FILES: Final = 256
_LONGEST_TEXT_BYTES: Final = 16 << 20
_MOST_CPUINFO_BYTES: Final = 1 << 16
_PROCESS_ROOT: Final = re.compile(r"/proc/\d+/root")


KnownImages = Mapping[tuple[str, int], Image]
"""ELF files by path and inode."""


class Refusal(NamedTuple):
    """Why an existing file cannot be loaded: a loader that finds it fails."""

    cause: str


class FileKind(NamedTuple):
    """The machine of a file: ELF class, byte order, and e_machine."""

    is_64: bool
    is_little: bool
    machine: int


class Library:
    """One file that can be loaded: one object per file, whatever the path. It is equal to itself only.

    Attributes:
        real_path: The path by which it was opened, the root directory included.
        linkage: Its dynamic section.
        identity: The first 16 bytes of the file: class, byte order, ABI.
        type: e_type.
        kind: Its machine: a program needs libraries of the same one.
        mode: Its permission bits, with set-user-ID.
        state: How the file was when it was opened.
        owner_ids: The user and the group that own it.
    """

    def __init__(  # what the only caller knows of the file
        self,
        real_path: str,
        opened: Image,
        linkage: Linkage,
        mode: int,
        state: FileState,
        open_file: Callable[[str, FileState], Image],
        owner_ids: tuple[int, int] = (0, 0),
    ) -> None:
        self.real_path = real_path
        self.linkage = linkage
        self.mode = mode
        self.state = state
        self._open = open_file
        self.owner_ids = owner_ids
        self.identity = bytes(opened.data[:16])
        self.type = opened.type
        self.kind = FileKind(opened.is_64, opened.is_little, opened.machine)

    @property
    def image(self) -> Image:
        """The whole file, mapped again where necessary; without sections where these are damaged.

        Raises:
            AccessError: Where the file is gone or was replaced.
        """
        return self._open(self.real_path, self.state)

    @property
    def is_program(self) -> bool:
        """Whether it is a program, not a library."""
        linkage = self.linkage
        return self.type == abi.ET_EXEC or linkage.interpreter is not None or bool(linkage.flags_1 & abi.DF_1_PIE)

    def has_other_identity(self, caller: tuple[int, int] | None) -> bool:
        """Return whether a process of it has another identity than its caller: another user or group (execve(2)).

        Args:
            caller: The user and the group of the caller; None for any that do not own the file.
        """
        user, group = (None, None) if caller is None else caller
        is_other_user = bool(self.mode & stat.S_ISUID) and user != self.owner_ids[0]
        # Without the right to execute it, the set-group-ID bit means another thing: mandatory locking.
        has_group = self.mode & stat.S_ISGID and self.mode & stat.S_IXGRP
        return is_other_user or (bool(has_group) and group != self.owner_ids[1])

    def __repr__(self) -> str:
        return f"Library({self.real_path!r})"


class System:
    """A file system below a root directory. Paths are those of its own programs, and never lead out of it.

    Args:
        root: The directory that its programs see as `/`.
        moved_files: By path without links, the current paths of files that a live process has mapped, and that were
            deleted or replaced since.
        open_file: Opens a file.
        images: Files that were read already, by path and inode: these are not opened.
    """

    def __init__(
        self,
        root: str = "/",
        moved_files: Mapping[str, str] = MappingProxyType({}),
        open_file: FileOpener = open_regular,
        images: KnownImages = MappingProxyType({}),
    ) -> None:
        self._open_file = open_file
        self._images = images
        self._moved_files = moved_files
        # `/proc/PID/root` of a process in a container reads as a link to `/`, wherever it leads.
        self.root = root if _PROCESS_ROOT.fullmatch(root) else os.path.realpath(root)
        self.is_host = self.root == "/"
        enter_root(self.root)
        self._files: dict[str, Library | Refusal | None] = {}
        self._by_inode: dict[tuple[int, int], Library | Refusal] = {}
        self._is_directory: dict[str, bool] = {}
        self._links: dict[str, str | None] = {}
        # Keyed by path, not by library: a reference cycle would keep files open until the next garbage collection.
        self._open_image = lru_cache(_MOST_MAPPED_FILES)(partial(_map_again, open_file, images))

    def file(self, path: str) -> Library | Refusal | None:
        """Return the file at an absolute path as a loader finds it; None where it cannot be opened."""
        try:
            return self._files[path]
        except KeyError:
            library = self._files[path] = self._file(path)
            return library

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at an absolute path."""
        is_one = self._is_directory.get(path)
        if is_one is None:
            facts = _facts(self._host_path(path))
            is_one = self._is_directory[path] = facts is not None and stat.S_ISDIR(facts.st_mode)
        return is_one

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty where there is no such directory."""
        try:
            names = sorted(folder_names(self._host_path(path)))
        except (OSError, ValueError):
            return []
        draw_entries(len(names), path)
        return names

    def changed_ns(self, path: str) -> int | None:
        """Return the modification time of an absolute path, in nanoseconds since 1970; None where it does not exist."""
        facts = _facts(self._host_path(path))
        return None if facts is None else facts.st_mtime_ns

    def text(self, path: str, most_bytes: int = _LONGEST_TEXT_BYTES) -> bytes | None:
        """Read a small file; return None where it is not readable or not small."""
        place = self._host_path(path)
        facts = _facts(place)
        data = "" if facts is None or facts.st_size > most_bytes else open_regular(place, None)
        return None if isinstance(data, str) else bytes(data)

    def real_path(self, path: str) -> str:
        """Resolve the links of an absolute path, as seen from the root directory, or return the path unchanged."""
        if self.is_host:
            return os.path.realpath(path)
        return self._resolved(path) or path

    @cached_property
    def cpuinfo(self) -> bytes:
        """The text of /proc/cpuinfo of this machine, whatever the root directory."""
        try:
            with open("/proc/cpuinfo", "rb") as file:
                return file.read(_MOST_CPUINFO_BYTES)
        except OSError:
            return b""

    @cached_property
    def machine(self) -> str:
        """The kernel's name for this kind of machine."""
        return os.uname().machine

    def _host_path(self, path: str) -> str:
        return path if self.is_host else f"{self.root}{path}"

    def _resolved(self, path: str) -> str | None:
        return resolved(path, self._link)

    def _link(self, path: str) -> str | None:
        if path not in self._links:
            self._links[path] = link_target(self.root + path)
        return self._links[path]

    def _file(self, path: str) -> Library | Refusal | None:
        place = self._host_path(path)
        if self._moved_files:
            place = self._moved_files.get(self.real_path(path), place)
        facts = _facts(place)
        if facts is None:
            return None
        key = facts.st_dev, facts.st_ino
        library = self._by_inode.get(key)
        if library is None:
            if not self.is_host and place == self._host_path(path):
                place = self._host_path(self.real_path(path))
            library = self._read(place, facts)
            if library is None:
                return None
            self._by_inode[key] = library
        return library

    def _read(self, path: str, facts: os.stat_result) -> Library | Refusal | None:
        if not stat.S_ISREG(facts.st_mode):
            return Refusal("it is a directory" if stat.S_ISDIR(facts.st_mode) else "it is not a regular file")
        image = self._images.get((path, facts.st_ino))
        data = image.data if image else self._open_file(path, None)
        if isinstance(data, str):
            return None
        try:
            image = image or read_image(data, path, with_sections=False)
            return Library(
                path,
                image,
                read_linkage(image),
                facts.st_mode,
                FileState.of(facts),
                self._open_image,
                (facts.st_uid, facts.st_gid),
            )
        except InputError as error:
            return Refusal(error.detail)


def _map_again(open_file: FileOpener, images: KnownImages, path: str, state: FileState) -> Image:
    image = images.get((path, state.inode))
    data = image.data if image else open_file(path, None)
    if isinstance(data, str):
        raise AccessError(path, data)
    if _state(path) != state:
        raise AccessError(path, "it was replaced while footprint read it")
    if image:
        return image
    try:
        return read_image(data, path)
    except InputError:
        return read_image(data, path, with_sections=False)


def _state(path: str) -> FileState | None:
    facts = _facts(path)
    return None if facts is None else FileState.of(facts)


def _facts(path: str) -> os.stat_result | None:
    try:
        return stat_path(path)
    except (OSError, ValueError):
        return None
