"""/etc/ld.so.conf as ldconfig reads it: for a root directory without a usable cache.

Source: ldconfig(8) and elf/ldconfig.c of glibc.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final

from footprint.limits import draw_entries
from footprint.loader.paths import parent, plain
from footprint.loader.system import Library, System

__all__ = ("Configuration",)

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
        known = self._names.get(directory)
        if known is None:
            known = self._names[directory] = {
                name: directory + name for name in self._system.names(directory) if _is_library(name)
            }
            for path in list(known.values()):
                library = self._system.file(path)
                if isinstance(library, Library) and library.linkage.soname:
                    known.setdefault(library.linkage.soname, path)
        return known

    def _read(self, path: str, seen: set[str], depth: int) -> Iterator[str]:
        real_path = self._system.real_path(path)
        if real_path in seen or depth > _MOST_DEPTH:
            return
        seen.add(real_path)
        lines = (self._system.text(path) or b"").decode("utf-8", "surrogateescape").split("\n")
        draw_entries(len(lines), path)
        for raw in lines:
            line = raw.partition("#")[0].strip()
            word, _, rest = line.replace("\t", " ").partition(" ")
            if word == "include" and rest:
                for pattern in rest.split():
                    for included in self._matches(pattern if pattern.startswith("/") else f"{parent(path)}/{pattern}"):
                        yield from self._read(included, seen, depth + 1)
            elif line and word != "hwcap":
                directory = line.partition("=")[0].rstrip(_BLANKS)
                if directory.startswith("/"):
                    yield plain(directory)

    def _matches(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted; of several that lead to one folder or file, the first."""
        found = [""]
        for part in pattern.strip("/").split("/"):
            if any(mark in part for mark in "*?["):
                if len(part) > _LONGEST_PATTERN:
                    return []
                found = [
                    f"{each}/{name}"
                    for each in found
                    for name in self._system.names(each or "/")
                    if fnmatchcase(name, part) and not (name.startswith(".") and not part.startswith("."))
                ]
                # Links to `.` multiply with each part of the pattern.
                first: dict[str, str] = {}
                for each in found:
                    first.setdefault(self._system.real_path(each), each)
                found = list(first.values())
            else:
                found = [f"{each}/{part}" for each in found]
        return found


def _is_library(name: str) -> bool:
    return ".so" in name and name.startswith(("lib", "ld-", "ld."))
