"""Programs and their libraries: which files make one, who uses whom, and what each object costs at start."""

import os
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.attribution.constructor_writes import with_constructors
from footprint.attribution.dependency_graph import DependencyGraph, build_graph
from footprint.attribution.object_prediction import ObjectPrediction, predict
from footprint.elf import Image
from footprint.elf.notes import build_id
from footprint.errors import AccessError, FootprintError, Note, UsageError
from footprint.files import StrPath
from footprint.loader import Environment, Library, Linked, LinkMap, Searches, System, link
from footprint.loader.bindings import NO_BINDINGS, Binder, Bindings
from footprint.loader.development_links import DevelopmentLinks
from footprint.loader.link_map import with_opened
from footprint.loader.system import KnownImages
from footprint.model.owner import DELETED
from footprint.model.row import Attribution, Row
from footprint.process import Snapshot
from footprint.process.mapped_files import FileOpener, open_regular
from footprint.roots import path_below, stat_path
from footprint.sources.constructor_calibration import load_constructors
from footprint.sources.libc_calibration import load_libc_start

__all__ = ("ProcessView", "Programs", "missing_notes")

_MOST_ENVIRONMENT_BYTES: Final = 1 << 22
# The JSON of `libraries` has them all, as `missing`.
_MOST_MISSING_NOTES: Final = 10
_PAGE_SIZES: Final = frozenset({1 << shift for shift in range(12, 17)})


class ProcessView(NamedTuple):
    """How a live process was started, and how it sees the file system.

    Attributes:
        program: The path of its program.
        environment: What its caller decided for the loader.
        root: The folder that it takes for `/`, as it is reached from here; None where that is `/`.
        folder: The same as the kernel calls it for us in the names of its files.
    """

    program: str
    environment: Environment
    root: str | None
    folder: str

    @classmethod
    def of(cls, pid: int) -> "ProcessView":
        """Read the view of a process.

        Raises:
            AccessError: If the process is gone, or may not be read.
        """
        place = f"/proc/{pid}"
        try:
            program = os.readlink(f"{place}/exe").removesuffix(DELETED)
            with open(f"{place}/environ", "rb") as file:
                texts = file.read(_MOST_ENVIRONMENT_BYTES).split(b"\0")
            cwd = os.readlink(f"{place}/cwd")
            root = None if os.path.samefile(f"{place}/root", "/") else f"{place}/root"
            folder = os.readlink(f"{place}/root")
        except OSError as error:
            raise AccessError(f"process {pid}", error.strerror or str(error)) from error
        pairs = [text.decode("utf-8", "surrogateescape").partition("=") for text in texts]
        environment = _environment({name: value for name, _, value in pairs}, cwd)
        return cls(program, environment, root, folder)


class Programs:
    """Reads the programs of one system, and keeps what it learned of each library for the programs that follow.

    Args:
        root: The folder that they take for `/`; None for this machine's.
        environment: What their caller decides; None for what this process was started with, if there is no root.
        page_bytes: The size of a page; None for that of this machine.
        is_calibrated: Whether what was measured of this machine's C library is used.
        moved_files: By path, where a file is that is no longer there.
        open_file: Opens a file.
        images: Files that were read already, by path and inode.

    Raises:
        UsageError: If pages cannot have this size.
    """

    def __init__(
        self,
        root: StrPath | None = None,
        environment: Environment | None = None,
        *,
        page_bytes: int | None = None,
        is_calibrated: bool = True,
        moved_files: Dict[str, str] | None = None,
        open_file: FileOpener = open_regular,
        images: KnownImages = MappingProxyType({}),
    ) -> None:
        self._is_calibrated = is_calibrated
        self._system = System(os.fspath(root or "/"), moved_files or {}, open_file, images)
        self._environment = environment or (Environment() if root else _environment(os.environ, os.getcwd()))
        self._page_bytes = os.sysconf("SC_PAGESIZE") if page_bytes is None else page_bytes
        if self._page_bytes not in _PAGE_SIZES:
            raise UsageError(f"no machine has pages of {self._page_bytes} bytes: 4KiB, 8KiB, 16KiB, 32KiB or 64KiB")
        self._searches: Searches = {}
        self._binder = Binder()
        self._links = DevelopmentLinks(self._system)
        self._predicted: dict[Library, ObjectPrediction] = {}
        self._identify = cache(_identity)
        self._constructors, self._notes = load_constructors() if is_calibrated else ({}, ())

    @classmethod
    def of_process(
        cls,
        snapshot: Snapshot,
        view: ProcessView,
        environment: Environment | None = None,
        open_file: FileOpener = open_regular,
        images: Iterable[Image] = (),
    ) -> "Programs":
        """Return what reads the program of a live process, from the files that the process has mapped.

        Args:
            snapshot: The process.
            view: How it sees the file system.
            environment: What its caller decided; None for what the process says itself.
            open_file: Opens a file.
            images: Files of its mappings that were read already.
        """
        moved_files = _moved_files(snapshot, view.root or "", view.folder)
        # Files of two inodes can have one name, where one was replaced: these are opened by where they are now.
        named = {one.name: one.inode for one in snapshot.memory.mappings if one.inode} if view.root is None else {}
        several = {one.name for one in snapshot.memory.mappings if named.get(one.name, one.inode) != one.inode}
        known = {(one.file, named[one.file]): one for one in images if one.file in named and one.file not in several}
        return cls(
            view.root, environment or view.environment, moved_files=moved_files, open_file=open_file, images=known
        )

    def graph(self, path: str) -> DependencyGraph:
        """Find the objects of a program, and who uses whom.

        Raises:
            AccessError: If the program cannot be opened.
            InputError: If it is no linked ELF file.
        """
        relink = partial(link, self._system, path, self._environment, self._searches)
        link_map = relink()
        predict = self._predictor(link_map)
        graph = build_graph(link_map, relink, self._binder.bind, self._page_bytes, predict, self._links.name_of)
        return self._with_constructors(graph)

    def graph_of(
        self, snapshot: Snapshot, view: ProcessView, ledger: Iterable[Row], *, is_bound: bool = True
    ) -> DependencyGraph:
        """Find the objects of a live process, with those that it opened while it ran, and what each of them holds.

        Args:
            snapshot: The process.
            view: How it sees the file system.
            ledger: Where its memory is.
            is_bound: Whether to find who uses which symbols of whom, which takes most of the time.

        Raises:
            AccessError: If its program cannot be opened.
            InputError: If that is no linked ELF file.
        """
        folder = view.folder
        relink = partial(link, self._system, path_below(view.program, folder), self._environment, self._searches)
        link_map = relink()
        held_bytes: dict[str, int] = {}
        # Thread-local variables are counted for each thread, by their size.
        for row in (row for row in ledger if row.attribution is not Attribution.THREAD_VECTOR):
            held_bytes[row.owner] = held_bytes.get(row.owner, 0) + (row.bytes or 0)
        owners = self._owners(snapshot, folder)
        known = {linked.library for linked in link_map.objects}
        if link_map.interpreter_object is not None:
            known.add(link_map.interpreter_object.library)
        executable = {one.name for one in snapshot.memory.mappings if one.permissions[2] == "x"}
        opened = [
            (path_below(name.removesuffix(DELETED), folder), file)
            for file, name in owners.items()
            if file not in known and name in executable
        ]
        link_map = with_opened(link_map, opened)

        def private_bytes(linked: Linked) -> int:
            return held_bytes.get(owners.get(linked.library, linked.path), 0)

        predict = self._predictor(link_map)
        link_name = self._links.name_of
        bind = self._binder.bind if is_bound else _not_bound
        threads = snapshot.thread_count
        graph = build_graph(link_map, relink, bind, self._page_bytes, predict, link_name, private_bytes, threads)
        return self._with_constructors(graph)

    def _with_constructors(self, graph: DependencyGraph) -> DependencyGraph:
        graph = with_constructors(graph, self._constructors, self._identify)
        return replace(graph, notes=(*graph.notes, *self._notes)) if self._notes else graph

    def _owners(self, snapshot: Snapshot, folder: str) -> dict[Library, str]:
        """Return the files that a process has mapped, by the name that its mappings have."""
        owners: dict[Library, str] = {}
        known: set[str] = set()
        for mapping in reversed(snapshot.memory.mappings):
            if mapping.inode and mapping.name.startswith("/") and mapping.name not in known:
                file = self._system.file(path_below(mapping.name.removesuffix(DELETED), folder))
                if isinstance(file, Library):
                    known.discard(owners.get(file, ""))
                    known.add(mapping.name)
                    owners[file] = mapping.name
        return owners

    def _predictor(self, link_map: LinkMap) -> "_Predictor":
        return _Predictor(link_map, self._page_bytes, self._predicted, is_calibrated=self._is_calibrated)


def _identity(library: Library) -> str:
    try:
        return build_id(library.image) or ""
    except FootprintError:
        return ""


def _not_bound(_: LinkMap) -> Bindings:
    return NO_BINDINGS


class _Predictor:
    """Predicts the objects of one link map, each library once."""

    def __init__(
        self,
        link_map: LinkMap,
        page_bytes: int,
        known: dict[Library, ObjectPrediction],
        *,
        is_calibrated: bool,
    ) -> None:
        self._is_calibrated = is_calibrated
        self._libc = link_map.libc
        self._page_bytes = page_bytes
        self._known = known

    def __call__(self, linked: Linked, is_program: bool) -> ObjectPrediction:  # noqa: FBT001 # told by who calls
        library = linked.library
        if is_program:
            return predict(library.image, self._page_bytes, is_program=True, libc=self._libc)
        if library not in self._known:
            image = library.image
            is_libc = (library.linkage.soname or "").startswith("libc.so.")
            start = load_libc_start(image) if is_libc and self._is_calibrated else None
            self._known[library] = predict(image, self._page_bytes, is_program=False, libc=self._libc, libc_start=start)
        return self._known[library]


def _moved_files(snapshot: Snapshot, root: str, folder: str) -> dict[str, str]:
    """Find where the files are that a process has mapped, and that are no longer at their paths."""
    found: dict[str, str] = {}
    for mapping in snapshot.memory.mappings:
        path = path_below(mapping.name.removesuffix(DELETED), folder)
        if not (mapping.inode and mapping.permissions[2] == "x" and path.startswith("/")) or path in found:
            continue
        try:
            is_there = not mapping.name.endswith(DELETED) and stat_path(root + path).st_ino == mapping.inode
        except (OSError, ValueError):
            is_there = False
        mapped = f"/proc/{snapshot.pid}/map_files/{mapping.start_addr:x}-{mapping.end_addr:x}"
        if not is_there and os.path.exists(mapped):
            found[path] = mapped
    return found


def _environment(variables: Dict[str, str], cwd: str) -> Environment:
    return Environment(
        library_path=variables.get("LD_LIBRARY_PATH", ""), preload=variables.get("LD_PRELOAD", ""), cwd=cwd
    )


def missing_notes(graph: DependencyGraph) -> list[Note]:
    """Write notes on the libraries that are missing: one for each of the first, and one that counts the rest."""
    missing = graph.link_map.missing
    shown = missing if len(missing) <= _MOST_MISSING_NOTES else missing[: _MOST_MISSING_NOTES - 1]
    notes = [Note("library-missing", one.name, f"{graph.name(one.requester)} needs it: {one.cause}") for one in shown]
    if rest := len(missing) - len(shown):
        notes.append(Note("library-missing", f"{rest} more libraries", "they are needed, and were not found either"))
    return notes
