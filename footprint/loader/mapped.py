"""One object of a link map in the making, and what a search for another one gives."""

from enum import StrEnum
from typing import NamedTuple

from footprint.loader.system import Library

__all__ = ("Found", "FoundBy", "Mapped", "Refused")


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


class Found(NamedTuple):
    """A library and the path by which it was found."""

    path: str
    library: Library
    found_by: FoundBy


class Refused(NamedTuple):
    """A file at which the search ended, for it cannot be loaded."""

    path: str
    cause: str


class Mapped:
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
        "number",
        "path",
        "program",
        "rpath",
        "runpath",
        "short_name",
    )

    def __init__(self, found: Found, loader: "Mapped | None") -> None:
        self.path, self.library, self.found_by = found
        self.loader = loader
        self.program: Mapped = self if loader is None else loader.program
        self.dependencies: list[tuple[str, Mapped | None]] = []
        self.is_in_scope = False
        self.is_done = False
        self.number = -1
        self.rpath: tuple[str, ...] | None = None
        self.runpath: tuple[str, ...] | None = None
        self.short_name: str | None = None
