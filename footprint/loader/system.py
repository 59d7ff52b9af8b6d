"""The files of a system as its loader sees them, from a root on: all that the loader package reads is read here.

A system is taken to stand still while it is looked at: each path, each link and each directory is asked for once.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.elf.image import ET_EXEC, Buffer, Image, read_image
from footprint.elf.linkage import DF_1_PIE, Linkage, read_linkage
from footprint.errors import AccessError, FootprintError, InputError
from footprint.files import map_descriptor, read_all

__all__ = ("FileKind", "Library", "Refusal", "System")

# Each map of a file holds a descriptor, of which a process has a thousand; what is not asked for lately is let go.
_MOST_MAPPED_FILES: Final = 256
_MOST_LINKS: Final = 40
_LONGEST_TEXT_BYTES: Final = 16 << 20
_MOST_CPUINFO_BYTES: Final = 1 << 16
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


_PROCESS_ROOT: Final = re.compile(r"/proc/\d+/root")


class Refusal(NamedTuple):
    """Why a file that is there cannot be loaded: where a loader meets it, it gives up."""

    cause: str


class _State(NamedTuple):
    """What tells whether a file is still the one that it was."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int


class FileKind(NamedTuple):
    """For which machines a file is: ELFCLASS64 or 32, little-endian or big, and e_machine."""

    is_64: bool
    is_little: bool
    machine: int


class Library:
    """One file that can be loaded, the same one by whatever path it is reached; it is equal to itself alone.

    Attributes:
        real_path: The path by which it was opened, the root included.
        linkage: How it is linked.
        identity: The first 16 bytes of the file: class, byte order, ABI.
        type: e_type.
        kind: What a program must have in common with it.
        mode: Its permissions, set-user-ID among them.
    """

    __slots__ = (
        "__weakref__",
        "_open",
        "identity",
        "kind",
        "linkage",
        "mode",
        "real_path",
        "state",
        "type",
    )

    def __init__(
        self,
        real_path: str,
        image: Image,
        linkage: Linkage,
        mode: int,
        state: _State,
        open_image: Callable[[str, _State], Image],
    ) -> None:
        self.real_path = real_path
        self.linkage = linkage
        self.identity = bytes(image.data[:16])
        self.type = image.type
        self.kind = FileKind(image.is_64, image.is_little, image.machine)
        self.mode = mode
        self.state = state
        self._open = open_image

    @property
    def image(self) -> Image:
        """Give the whole file, mapped again where that was long ago; without sections where those are damaged.

        Raises:
            AccessError: Where it is gone, or no longer the file that it was.
        """
        return self._open(self.real_path, self.state)

    @property
    def is_program(self) -> bool:
        """Tell whether it can be started, and is no library."""
        linkage = self.linkage
        return self.type == ET_EXEC or linkage.interpreter is not None or bool(linkage.flags_1 & DF_1_PIE)

    def __repr__(self) -> str:
        return f"Library({self.real_path!r})"


class System:
    """A file system from a root on; paths are those that its own programs use, and never lead out of it.

    Args:
        root: The directory that its programs take for `/`.
        moved_files: Where files are to be had that are not at their paths any more, by path without links: those that a
            live process has mapped, and that were deleted or replaced since.
    """

    def __init__(self, root: str = "/", moved_files: Mapping[str, str] = MappingProxyType({})) -> None:
        self._moved_files = moved_files
        # The root of a process in a container is a link that says `/`, whatever it leads to.
        self.root = root if _PROCESS_ROOT.fullmatch(root) else os.path.realpath(root)
        self.is_host = self.root == "/"
        self._files: dict[str, Library | Refusal | None] = {}
        self._by_inode: dict[tuple[int, int], Library | Refusal] = {}
        self._is_directory: dict[str, bool] = {}
        self._links: dict[str, str | None] = {}
        # By path, not by library, which holds it: a ring would keep the files open until Python looks for rings.
        self._open_image = lru_cache(_MOST_MAPPED_FILES)(_map_again)

    def file(self, path: str) -> Library | Refusal | None:
        """Give the file at an absolute path as a loader finds it; None where it cannot be opened."""
        try:
            return self._files[path]
        except KeyError:
            found = self._files[path] = self._file(path)
            return found

    def is_directory(self, path: str) -> bool:
        """Tell whether there is a directory at an absolute path."""
        known = self._is_directory.get(path)
        if known is None:
            known = self._is_directory[path] = os.path.isdir(self._host_path(path) or "\0")
        return known

    def names(self, path: str) -> list[str]:
        """Give the names in a directory, in their order; none where there is no such directory."""
        try:
            return sorted(os.listdir(self._host_path(path) or "\0"))
        except (OSError, ValueError):
            return []

    def changed_ns(self, path: str) -> int | None:
        """Give when what is at an absolute path was changed, in nanoseconds since 1970; None where nothing is."""
        try:
            return os.stat(self._host_path(path) or "\0").st_mtime_ns
        except (OSError, ValueError):
            return None

    def text(self, path: str) -> bytes | None:
        """Give a small file whole; None where it cannot be read or is not small."""
        try:
            descriptor = os.open(self._host_path(path) or "\0", _OPEN_FLAGS)
        except (OSError, ValueError):
            return None
        try:
            facts = os.fstat(descriptor)
            is_small = stat.S_ISREG(facts.st_mode) and facts.st_size <= _LONGEST_TEXT_BYTES
            return read_all(descriptor, path) if is_small else None
        except FootprintError:
            return None
        finally:
            os.close(descriptor)

    def real_path(self, path: str) -> str:
        """Give an absolute path without links, as seen from the root; itself where it leads nowhere."""
        if self.is_host:
            return os.path.realpath(path)
        return self._resolved(path) or path

    @cached_property
    def cpuinfo(self) -> bytes:
        """Give what the kernel says of the processors of this machine, whatever the root."""
        try:
            with open("/proc/cpuinfo", "rb") as file:
                return file.read(_MOST_CPUINFO_BYTES)
        except OSError:
            return b""

    @cached_property
    def machine(self) -> str:
        """Give the kernel's name for this kind of machine."""
        return os.uname().machine

    def _host_path(self, path: str) -> str | None:
        if self.is_host:
            return path
        resolved = self._resolved(path)
        return None if resolved is None else self.root + resolved

    def _resolved(self, path: str) -> str | None:
        """Follow links one name at a time, so that neither an absolute one nor `..` leads out of the root."""
        at = ""
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            name = pending.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                at = at.rpartition("/")[0]
                continue
            there = f"{at}/{name}"
            target = self._link(there)
            if target is None:
                at = there
                continue
            links += 1
            if links > _MOST_LINKS or not target:
                return None
            pending += target.split("/")[::-1]
            if target.startswith("/"):
                at = ""
        return at or "/"

    def _link(self, path: str) -> str | None:
        """Give what a link says; None where there is none, the empty text where there is nothing at all."""
        if path not in self._links:
            try:
                self._links[path] = os.readlink(self.root + path)
            except OSError as error:
                self._links[path] = None if error.errno == errno.EINVAL else ""
            except ValueError:
                self._links[path] = ""
        return self._links[path]

    def _file(self, path: str) -> Library | Refusal | None:
        real_path = self._host_path(path)
        if self._moved_files:
            real_path = self._moved_files.get(self.real_path(path), real_path)
        if real_path is None:
            return None
        try:
            facts = os.stat(real_path)
        except (OSError, ValueError):
            return None
        key = facts.st_dev, facts.st_ino
        known = self._by_inode.get(key)
        if known is None:
            known = self._read(real_path, facts)
            if known is None:
                return None
            self._by_inode[key] = known
        return known

    def _read(self, path: str, facts: os.stat_result) -> Library | Refusal | None:
        if not stat.S_ISREG(facts.st_mode):
            return Refusal("it is a directory" if stat.S_ISDIR(facts.st_mode) else "it is no regular file")
        try:
            data, state = _mapped(path)
        except AccessError:
            return None
        try:
            image = read_image(data, path, with_sections=False)
            return Library(path, image, read_linkage(image), facts.st_mode, state, self._open_image)
        except InputError as error:
            return Refusal(error.detail)


def _mapped(path: str) -> tuple[Buffer, _State]:
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except OSError as error:
        raise AccessError(path, error.strerror or str(error)) from error
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise AccessError(path, "it is no regular file any more")
        state = _State(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        return map_descriptor(descriptor, path), state
    finally:
        os.close(descriptor)


def _map_again(path: str, state: _State) -> Image:
    data, state_now = _mapped(path)
    if state_now != state:
        raise AccessError(path, "it was replaced while footprint looked at it")
    try:
        return read_image(data, path)
    except InputError:
        return read_image(data, path, with_sections=False)
