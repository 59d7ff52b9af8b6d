"""The library search of musl: it has fewer rules than that of glibc, and different ones.

Source: ldso/dynlink.c of musl 1.2.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from footprint.elf import abi
from footprint.errors import Note
from footprint.loader.configuration import parent
from footprint.loader.map_entry import FoundBy, FoundLibrary, MapEntry, RefusedFile
from footprint.loader.system import Library, System
from footprint.loader.target import Environment, Target
from footprint.members import lazy_pattern

# Names of libraries that are part of the loader itself, and never searched.
_OWN: Final = tuple(f"lib{name}." for name in ("c", "pthread", "rt", "m", "dl", "util", "xnet"))
_GLIBC: Final = "libc.so.6"
_ORIGIN: Final = lazy_pattern(r"\$ORIGIN|\$\{ORIGIN\}")
_USUAL_DIRECTORIES: Final = "/lib:/usr/local/lib:/usr/lib"
_LONGEST_NAME_BYTES: Final = 255


class MuslSearch:
    """The search of one loader, for all its programs: their class and machine are those of `program`."""

    has_filters: Final = False

    def __init__(self, system: System, target: Target, program: Library, environment: Environment) -> None:
        self._system = system
        self.target = target
        self._kind = program.kind
        self._cwd = environment.cwd.rstrip("/")
        self._is_secure = bool(environment.is_secure)
        self._library_path = () if self._is_secure else _elements(environment.library_path)
        self._preload = "" if self._is_secure else environment.preload
        self.folders: dict[str, tuple[str, ...]] = {}

    def find(self, name: str, requester: MapEntry) -> FoundLibrary | RefusedFile | None:
        """Find a library that an object needs; return None where there is none."""
        if name.startswith(_OWN) or name == self.target.path:
            return self._loader()
        if "/" in name:
            library = self._file(name, FoundBy.PATH)
            is_glibc = isinstance(library, FoundLibrary) and library.library.linkage.soname == _GLIBC
            return self._loader() if is_glibc else library
        if len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME_BYTES:
            return None
        for found_by, places, owner in self.places(requester):
            requester.count_searched(len(places))
            for place in places:
                library = self._file(f"{place}/{name}", found_by)
                if library is not None:
                    return library._replace(directory_owner=owner) if isinstance(library, FoundLibrary) else library
        return None

    def looked_in(self, requester: MapEntry) -> tuple[str, ...]:
        """Return the directories that are searched for the libraries of an object."""
        return tuple(dict.fromkeys([f"{place}/" for _, places, _ in self.places(requester) for place in places]))

    def not_searched(self, name: str, requester: MapEntry) -> str | None:
        """Return None: musl searches both paths of an object for all that it brings in."""
        del name, requester
        return None

    def is_there_for_others(self, name: str, requester: MapEntry) -> bool:
        """Return False: musl skips no file; one for another machine ends the search."""
        del name, requester
        return False

    def name_of(self, needed: str, requester: MapEntry) -> str | None:
        """Return the needed name unchanged: musl expands no tokens in it."""
        del requester
        return needed

    def names_of(self, mapped: MapEntry, requested: str, *, is_new: bool) -> tuple[str, ...]:
        """Return the names by which a found object is known from now on: the first name by which it was searched."""
        del is_new
        if "/" in requested or mapped.short_name is not None:
            return ()
        mapped.short_name = mapped.path.rpartition("/")[2]
        return (mapped.short_name,)

    def names_of_loader(self) -> tuple[str, ...]:
        """Return the names by which the loader is known from the start."""
        return (self.target.path,) if self.target.path else ()

    def preloads(self, program: MapEntry) -> Iterator[tuple[str, FoundLibrary | RefusedFile | None]]:
        """Find the libraries that the caller preloads."""
        for name in self._preload.replace(":", " ").split():
            yield name, self.find(name, program)

    def notes(self, rules: set[FoundBy], *, has_missing: bool) -> tuple[Note, ...]:
        """Return no notes: musl has no cache that could be old or damaged."""
        del rules, has_missing
        return ()

    def _loader(self) -> FoundLibrary | None:
        path, library = self.target.path, self.target.library
        return FoundLibrary(path, library, FoundBy.INTERPRETER) if path is not None and library is not None else None

    def places(self, requester: MapEntry) -> Iterator[tuple[FoundBy, tuple[str, ...], MapEntry | None]]:
        """Yield the directories that are searched for an object, with their rules and owners."""
        if self._library_path:
            yield FoundBy.ENVIRONMENT, self._library_path, None
        for owner in requester.path_owners:
            runpath, rpath = owner.library.linkage.runpath, owner.library.linkage.rpath
            if owner.runpath is None:
                owner.runpath = self._expanded((rpath if runpath is None else runpath) or "", owner)
            yield (FoundBy.RPATH if runpath is None else FoundBy.RUNPATH), owner.runpath, owner
        yield FoundBy.DEFAULT, self._system_directories, None

    def _expanded(self, text: str, owner: MapEntry) -> tuple[str, ...]:
        if "$" not in text:
            return _elements(text)
        if "$" in _ORIGIN.sub("", text):
            return ()
        is_program = owner.program is owner
        if is_program and self._is_secure:
            return ()
        origin = parent(self._system.real_path(self._absolute(owner.path)) if is_program else owner.path)
        if self._is_secure and not origin.startswith("/"):
            return ()
        return _elements(_ORIGIN.sub(lambda _: origin, text))

    @cached_property
    def _system_directories(self) -> tuple[str, ...]:
        """Read the directories from the file of the loader, in `etc` beside its directory."""
        path = self.target.path or ""
        architecture = path.rpartition("/")[2].removeprefix("ld-musl-").partition(".so")[0]
        prefix = path.rpartition("/")[0].rpartition("/")[0]
        text = self._system.text(f"{prefix}/etc/ld-musl-{architecture}.path")
        return _elements(_USUAL_DIRECTORIES if text is None else text.decode("utf-8", "surrogateescape"))

    def _file(self, path: str, found_by: FoundBy) -> FoundLibrary | RefusedFile | None:
        """Open a file as musl does: the first file that exists is used, even where it is for another machine."""
        there = self._system.file(self._absolute(path))
        if there is None:
            return None
        if not isinstance(there, Library):
            return RefusedFile(path, there.cause)
        if there.kind != self._kind or there.type not in {abi.ET_DYN, abi.ET_EXEC}:
            return RefusedFile(path, "it is for another class or machine, or not a library")
        return FoundLibrary(path, there, found_by)

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._cwd}/{path}"


def _elements(text: str) -> tuple[str, ...]:
    """Split a list of directories, without empty elements."""
    return tuple([path for path in re.split("[:\n]", text) if path])
