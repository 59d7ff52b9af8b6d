"""/etc/ld.so.conf as ldconfig reads it: for a root directory without a usable cache.

Source: ldconfig(8) and elf/ldconfig.c of glibc.

Lists of directories in ELF files and environment variables: tokens and separators.

Source: ld.so(8), "Rpath token expansion", and elf/dl-load.c of glibc for what it leaves open.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final

from footprint.loader.system import Library, System
from footprint.members import NamedTuple, lazy_pattern
from footprint.system.limits import draw_entries

# The longest name counts: $LIBX and $LIB_ are not tokens, and stay unchanged.
_TOKEN: Final = lazy_pattern(r"\$(?:(ORIGIN|PLATFORM|LIB)(?![A-Za-z0-9_])|\{(ORIGIN|PLATFORM|LIB)\})")


class Tokens(NamedTuple):
    """The values of the tokens for one object; None where unknown."""

    origin: str | None
    lib: str | None
    platform: str | None


def expanded(text: str, tokens: Tokens) -> str | None:
    """Replace the tokens in a name; return None where one of them has no value."""
    if "$" not in text:
        return text
    values = {"ORIGIN": tokens.origin, "LIB": tokens.lib, "PLATFORM": tokens.platform}
    used = {match[1] or match[2] for match in _TOKEN.finditer(text)}
    if any(values[name] is None for name in used):
        return None
    return _TOKEN.sub(lambda match: values[match[1] or match[2]] or "", text)


def directories(text: str, separators: str, expand: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the directories of a list as path prefixes: each ends with a slash, and the working directory is "".

    Args:
        text: The list; an empty text has no element, but `:` has two empty ones.
        separators: The separator characters.
        expand: Expands the tokens of an element; None removes the element.
    """
    if not text:
        return ()
    prefixes: dict[str, None] = {}
    for element in re.split(f"[{separators}]", text):
        if not element:
            prefixes[""] = None
            continue
        directory = expand(element)
        if directory:
            prefixes[directory.rstrip("/") + "/"] = None
    return tuple(prefixes)


def parent(path: str) -> str:
    """Return the directory part of a path."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def plain(path: str) -> str:
    """Remove `.` and `..` from an absolute path, without looking at the file system."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in {"", "."}:
            names.append(name)
    return "/" + "/".join(names)


_FILE: Final = "/etc/ld.so.conf"
_MOST_DEPTH: Final = 16
_LONGEST_PATTERN: Final = 255
"""As long as a file name can be. The time of `fnmatch` can grow with the square of a pattern's length."""
_BLANKS: Final = " \t"


class Configuration:
    """The directories that ldconfig would search, those of the system included, and the libraries found there."""

    def __init__(self, system: System, system_directories: tuple[str, ...]) -> None:
        self._system = system
        self._system_directories = system_directories
        self._names: dict[str, dict[str, str]] = {}
        self._real_paths: dict[str, str] = {}
        # What is left of each pattern: a file is read once, however often others include it.
        self._pending: dict[str, deque[str]] = {}

    @cached_property
    def directories(self) -> tuple[str, ...]:
        """The directories of the file and of the system, each with a slash at its end."""
        seen: set[str] = set()
        named = [directory.rstrip("/") + "/" for directory in self._read(_FILE, seen, 0)]
        return tuple(dict.fromkeys([*named, *self._system_directories]))

    def changed_ns(self) -> int | None:
        """Return the latest modification time of the directories in the file, in nanoseconds since 1970."""
        named = [directory for directory in self.directories if directory not in self._system_directories]
        changes = [self._system.changed_ns(directory) for directory in named]
        return max([change for change in changes if change is not None], default=None)

    def paths(self, name: str, subdirectories: tuple[str, ...]) -> Iterator[str]:
        """Find the paths of a library, the best first: as in the cache, its level counts before its directory."""
        for subdirectory in (*subdirectories, ""):
            for directory in self.directories:
                path = self._in(directory + subdirectory).get(name)
                if path is not None:
                    yield path

    def _in(self, directory: str) -> dict[str, str]:
        """Return the libraries of a directory by file name, and by SONAME where no file has that name."""
        file_by_name = self._names.get(directory)
        if file_by_name is None:
            file_by_name = self._names[directory] = {
                name: directory + name for name in self._system.names(directory) if _is_library(name)
            }
            for path in list(file_by_name.values()):
                library = self._system.file(path)
                if isinstance(library, Library) and library.linkage.soname:
                    file_by_name.setdefault(library.linkage.soname, path)
        return file_by_name

    def _read(self, path: str, seen: set[str], depth: int) -> Iterator[str]:
        real_path = self._real_path(path)
        if real_path in seen:
            return
        seen.add(real_path)
        lines = (self._system.text(path) or b"").decode("utf-8", "surrogateescape").split("\n")
        draw_entries(len(lines), path)
        for raw in lines:
            line = raw.partition("#")[0].strip()
            word, _, rest = line.replace("\t", " ").partition(" ")
            if word == "include" and rest:
                for pattern in rest.split() if depth < _MOST_DEPTH else ():
                    place = pattern if pattern.startswith("/") else f"{parent(path)}/{pattern}"
                    if (pending := self._pending.get(place)) is None:
                        pending = self._pending[place] = self._matches(place)
                    while pending:
                        yield from self._read(pending.popleft(), seen, depth + 1)
            elif line and word != "hwcap":
                directory = line.partition("=")[0].rstrip(_BLANKS)
                if directory.startswith("/"):
                    yield plain(directory)

    def _real_path(self, path: str) -> str:
        if (real_path := self._real_paths.get(path)) is None:
            real_path = self._real_paths[path] = self._system.real_path(path)
        return real_path

    def _matches(self, pattern: str) -> deque[str]:
        """Return the paths that match a pattern, sorted; of several that lead to one folder or file, the first."""
        matching = [""]
        for part in pattern.strip("/").split("/"):
            if any(mark in part for mark in "*?["):
                if len(part) > _LONGEST_PATTERN:
                    return deque()
                matching = [
                    f"{path}/{name}"
                    for path in matching
                    for name in self._system.names(path or "/")
                    if fnmatchcase(name, part) and not (name.startswith(".") and not part.startswith("."))
                ]
                # Links to `.` multiply with each part of the pattern.
                first: dict[str, str] = {}
                for path in matching:
                    first.setdefault(self._real_path(path), path)
                matching = list(first.values())
            else:
                matching = [f"{path}/{part}" for path in matching]
        return deque(matching)


def _is_library(name: str) -> bool:
    return ".so" in name and name.startswith(("lib", "ld-", "ld."))
