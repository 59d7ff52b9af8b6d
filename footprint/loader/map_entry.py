"""One object of a link map in the making, and what a search for another one gives."""

from enum import StrEnum
from typing import Final, NamedTuple

from footprint.errors import InputError
from footprint.loader.system import Library

__all__ = ("FoundBy", "FoundLibrary", "MapEntry", "RefusedFile")

_MOST_FILES_LOOKED_FOR: Final = 1 << 18


class FoundBy(StrEnum):
    """By which rule a file came into the map."""

    PROGRAM = "program"
    PRELOAD = "preload"
    INTERPRETER = "interpreter"
    PATH = "path"
    RPATH = "rpath"
    RUNPATH = "runpath"
    ENVIRONMENT = "environment"
    CACHE = "cache"
    CONFIGURATION = "configuration"
    DEFAULT = "default"
    OPENED = "opened"
    """The process opened it itself (dlopen); which rule it was is not known."""


class FoundLibrary(NamedTuple):
    """A library and the path by which it was found."""

    path: str
    library: Library
    found_by: FoundBy


class RefusedFile(NamedTuple):
    """A file at which the search ended, for it cannot be loaded."""

    path: str
    cause: str


class MapEntry:
    """An object of the map while it grows.

    Attributes:
        path: The path by which it was opened.
        library: The file.
        found_by: The rule that found it.
        loader: The object that brought it in; for a preloaded one, the program.
        program: The program; for the program, itself.
        dependencies: What it needs, in order: the name, and the object or None.
        is_in_scope: Whether it has its place in the map; the interpreter is known before.
        is_done: Whether what it needs is there.
        number: Its place there, once all is known.
        path_owners: Itself and its loaders, nearest first, as far as they say where to look.
        looked_for: Of the program: how many files were looked for until now.
        rpath: The directories of its RPATH, once they were asked for.
        runpath: The same of its RUNPATH.
        short_name: musl: the file name by which it was searched for.
    """

    __slots__ = (
        "dependencies",
        "found_by",
        "is_done",
        "is_in_scope",
        "library",
        "loader",
        "looked_for",
        "number",
        "path",
        "path_owners",
        "program",
        "rpath",
        "runpath",
        "short_name",
    )

    def __init__(self, found: FoundLibrary, loader: "MapEntry | None") -> None:
        self.path, self.library, self.found_by = found
        self.loader = loader
        self.program: MapEntry = self if loader is None else loader.program
        self.dependencies: list[tuple[str, MapEntry | None]] = []
        self.is_in_scope = False
        self.is_done = False
        linkage = self.library.linkage
        owners = () if loader is None else loader.path_owners
        has_paths = linkage.rpath is not None or linkage.runpath is not None
        self.path_owners: tuple[MapEntry, ...] = (self, *owners) if has_paths else owners
        self.looked_for = 0
        self.number = -1
        self.rpath: tuple[str, ...] | None = None
        self.runpath: tuple[str, ...] | None = None
        self.short_name: str | None = None

    def look(self, count: int) -> None:
        """Count the files that are looked for on behalf of a program.

        Raises:
            InputError: Where they are too many: the names and the directories of a hostile file multiply.
        """
        program = self.program
        program.looked_for += count
        if program.looked_for > _MOST_FILES_LOOKED_FOR:
            cause = f"its libraries would have to be looked for at more than {_MOST_FILES_LOOKED_FOR} places"
            raise InputError(program.path, cause)

    def let_go(self) -> None:
        """Forget all others, and who it is to them, once the map is made: together they are rings."""
        self.loader, self.dependencies, self.path_owners = None, [], ()
        del self.program
