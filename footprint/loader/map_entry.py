"""An entry of a link map under construction, and the result of a search for a library."""

from enum import StrEnum

from footprint.loader.system import Library
from footprint.members import NamedTuple
from footprint.system.limits import draw_entries


class FoundBy(StrEnum):
    """The rule by which a file was found."""

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
    AUDIT = "audit"
    """It watches the loader (DT_AUDIT), or is needed by one that does: a copy of its own, in a namespace of its own."""
    OPENED = "opened"
    """The process opened it with dlopen; the rule is unknown."""


class FoundLibrary(NamedTuple):
    """A library, with the path and the rule by which it was found.

    Attributes:
        path: The path.
        library: The file.
        found_by: The rule.
        directory_owner: The object whose RPATH or RUNPATH names its directory; None where another rule found it.
    """

    path: str
    library: Library
    found_by: FoundBy
    directory_owner: "MapEntry | None" = None


class RefusedFile(NamedTuple):
    """A file that ended the search because it cannot be loaded."""

    path: str
    cause: str


class MapEntry:
    """An object of a link map under construction.

    Attributes:
        path: The path by which it was opened.
        library: The file.
        found_by: The rule that found it.
        loader: The object that brought it in; for a preloaded one, the program.
        directory_owner: The object whose RPATH or RUNPATH names its directory; None where another rule found it.
        program: The program; for the program, itself.
        path_owners: Itself and the chain of its loaders, nearest first, without those that have no RPATH or RUNPATH.
        dependencies: The names that it needs, in order, each with the object or None.
        is_in_scope: Whether it has its place in the map; the interpreter is known earlier.
        is_done: Whether its dependencies were searched.
        number: Its index in the map, once the map is complete.
        rpath: The directories of its RPATH, once needed.
        runpath: The directories of its RUNPATH, once needed.
        short_name: For musl: the file name by which it was searched.
    """

    def __init__(
        self,
        path: str,
        library: Library,
        found_by: FoundBy,
        loader: "MapEntry | None",
        directory_owner: "MapEntry | None" = None,
    ) -> None:
        self.path = path
        self.library = library
        self.found_by = found_by
        self.loader = loader
        self.directory_owner = directory_owner
        self.dependencies: list[tuple[str, MapEntry | None]] = []
        self.is_in_scope = False
        self.is_done = False
        self.number = -1
        self.rpath: tuple[str, ...] | None = None
        self.runpath: tuple[str, ...] | None = None
        self.short_name: str | None = None
        self.path_owners: tuple[MapEntry, ...]
        self.program: MapEntry = self if self.loader is None else self.loader.program
        owners = () if self.loader is None else self.loader.path_owners
        linkage = self.library.linkage
        has_paths = linkage.rpath is not None or linkage.runpath is not None
        self.path_owners = (self, *owners) if has_paths else owners

    def count_searched(self, count: int) -> None:
        """Draw the paths that are searched for a program: the names and directories in a hostile file multiply.

        Raises:
            LimitError: Where they are too many.
        """
        draw_entries(count, self.program.path)

    def unlink(self) -> None:
        """Drop the references to other entries: they form cycles, which would keep files open."""
        self.loader, self.directory_owner, self.dependencies, self.path_owners = None, None, [], ()
        del self.program
