"""Programs and their libraries: which files make one, who uses whom, and what each object costs at start.

The prices of a start are as fitted on this machine and kept in a file, else as built in.
"""

import os
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from contextlib import suppress
from functools import cache, partial
from types import MappingProxyType
from typing import Final

from footprint.attribution.constructor_writes import with_constructors
from footprint.attribution.dependency_graph import DependencyGraph, build_graph
from footprint.attribution.object_prediction import ObjectPrediction, predict, with_written
from footprint.attribution.runtimes import has_go
from footprint.attribution.start_time import PRICE_COUNT, StartPrices, built_in_prices, calibrated_prices
from footprint.attribution.startup_writes import WriteCause, bss_pages
from footprint.elf.image import Image
from footprint.elf.notes import build_id
from footprint.errors import AccessError, FootprintError, Note, UsageError, cause_of
from footprint.loader.bindings import NO_BINDINGS, Binder
from footprint.loader.development_links import DevelopmentLinks
from footprint.loader.link_map import Linked, LinkMap, Searches, link, with_opened
from footprint.loader.map_entry import FoundBy
from footprint.loader.system import KnownImages, Library, System
from footprint.loader.target import Environment, Libc
from footprint.members import NamedTuple, replace
from footprint.model.row import DELETED, Attribution, Row
from footprint.process.mappings import FileOpener, open_regular
from footprint.process.snapshot import Snapshot
from footprint.process.status import auxiliary_vector
from footprint.sources.calibration import keep, kept_path, read_kept
from footprint.sources.startup_write_calibration import load_constructors, load_libc_start
from footprint.sources.target import script_error
from footprint.system.files import StrPath
from footprint.system.roots import path_below, stat_path

_FILE: Final = "start.json"
_TABLE: Final = "systems"
_NAMES: Final = StartPrices._fields[:PRICE_COUNT]
_MOST_NS: Final = 10**9
_MOST_ENVIRONMENT_BYTES: Final = 1 << 22
_AT_SECURE: Final = 23
# What is kept for one environment: cache entries, headers, predictions.
_MOST_KEPT: Final = 16
# The JSON of `libraries` has them all, as `missing`.
_MOST_MISSING_NOTES: Final = 10
_PAGE_SIZES: Final = frozenset({1 << shift for shift in range(12, 17)})


def load_start_prices(system: str) -> StartPrices:
    """Return the prices of a start of programs of a system: as calibrated, else as built in, also where it is damaged.

    `system` is what `start_system` names.
    """
    built_in = built_in_prices(system)
    try:
        stored = read_kept(kept_path(_FILE), _TABLE).get(system)
    except (OSError, ValueError):
        return built_in
    values = [stored.get(name) for name in _NAMES] if isinstance(stored, dict) else []
    if not values or any(type(value) is not int or not 0 <= value < _MOST_NS for value in values):
        return built_in
    return calibrated_prices([int(value) for value in values if value is not None], system)


def keep_start_prices(prices: StartPrices) -> None:
    """Keep prices for the system that they were fitted to.

    Raises:
        AccessError: Where the file cannot be written.
    """
    keep(kept_path(_FILE), _TABLE, {prices.system: dict(zip(_NAMES, prices.each_ns, strict=True))})


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
            is_secure = _is_secure(place)
        except OSError as error:
            raise AccessError(f"process {pid}", cause_of(error)) from error
        pairs = [text.decode("utf-8", "surrogateescape").partition("=") for text in texts]
        environment = environment_of({name: value for name, _, value in pairs}, cwd)
        environment = replace(environment, is_secure=is_secure)
        return cls(program, environment, root, folder)


def _is_secure(place: str) -> bool:
    """Return whether a process distrusts its caller: AT_SECURE in its auxiliary vector (getauxval(3))."""
    with open(f"{place}/auxv", "rb") as file:
        return bool(auxiliary_vector(file.read(_MOST_ENVIRONMENT_BYTES)).get(_AT_SECURE))


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
        self._environment = environment or (Environment() if root else environment_of(os.environ, os.getcwd()))
        self._page_bytes = os.sysconf("SC_PAGESIZE") if page_bytes is None else page_bytes
        if self._page_bytes not in _PAGE_SIZES:
            raise UsageError(f"no machine has pages of {self._page_bytes} bytes: 4KiB, 8KiB, 16KiB, 32KiB or 64KiB")
        self._searches: Searches = {}
        self._binder = Binder()
        self._links = DevelopmentLinks(self._system)
        self._predicted: dict[tuple[Library, bool], ObjectPrediction] = {}
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
        kept: "KeptPrograms | None" = None,
    ) -> "Programs":
        """Return what reads the program of a live process, from the files that the process has mapped.

        Args:
            snapshot: The process.
            view: How it sees the file system.
            environment: What its caller decided; None for what the process says itself.
            open_file: Opens a file.
            images: Files of its mappings that were read already.
            kept: The readers of earlier processes of a group: one reads the programs of all processes that see the
                same files and were started alike. A new reader is added.
        """
        moved_files = _moved_files(snapshot, view.root or "", view.folder)
        # Files of two inodes can have one name, where one was replaced: these are opened by where they are now.
        named = {m.name: m.inode for m in snapshot.memory.mappings if m.inode} if view.root is None else {}
        several = {m.name for m in snapshot.memory.mappings if named.get(m.name, m.inode) != m.inode}
        read = {(i.file, named[i.file]): i for i in images if i.file in named and i.file not in several}
        environment = environment or view.environment
        key = (view.root, environment)
        if kept is not None and key in kept and not moved_files:
            return kept[key]
        programs = cls(view.root, environment, moved_files=moved_files, open_file=open_file, images=read)
        if kept is not None and not moved_files:
            if len(kept) == _MOST_KEPT:
                kept.clear()
            kept[key] = programs
        return programs

    def graph(self, path: str) -> DependencyGraph:
        """Find the objects of a program, and who uses whom.

        Raises:
            AccessError: If the program cannot be opened.
            InputError: If it is no linked ELF file.
        """
        relink = partial(link, self._system, path, self._environment, self._searches)
        try:
            link_map = relink()
        except FootprintError as error:
            raise self._explained(path, error) from error
        predict = self._predictor(link_map)
        graph = build_graph(link_map, relink, self._binder.bind, self._page_bytes, predict, self._links.name_of)
        return self._calibrated(graph)

    def _explained(self, path: str, error: FootprintError) -> FootprintError:
        """Return the error on a program; with what to name instead, where that is known."""
        root, real_path = self._system.root, ""
        with suppress(OSError, ValueError):
            real_path = os.path.realpath(path)
        if isinstance(error, AccessError) and not self._system.is_host and real_path.startswith(f"{root}/"):
            return AccessError(path, f"{error.detail}; below the root it is {real_path.removeprefix(root)}")
        head = self._system.text(path) or b""
        return script_error(path, head) if head.startswith(b"#!") else error

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
        for row in ledger:
            if row.bytes and row.attribution is not Attribution.THREAD_VECTOR:
                held_bytes[row.owner] = held_bytes.get(row.owner, 0) + row.bytes
        owners = self._owners(snapshot, folder)
        loaded = {linked.library for linked in link_map.objects}
        if link_map.interpreter_object is not None:
            loaded.add(link_map.interpreter_object.library)
        executable = {mapping.name for mapping in snapshot.memory.mappings if mapping.permissions[2] == "x"}
        opened = [
            (path_below(name.removesuffix(DELETED), folder), file)
            for file, name in owners.items()
            if file not in loaded and name in executable
        ]
        link_map = with_opened(link_map, opened)

        def private_bytes(linked: Linked) -> int:
            return held_bytes.get(owners.get(linked.library, linked.path), 0)

        predict = self._predictor(link_map)
        link_name = self._links.name_of
        bind = self._binder.bind if is_bound else lambda _: NO_BINDINGS
        threads = snapshot.thread_count
        graph = build_graph(link_map, relink, bind, self._page_bytes, predict, link_name, private_bytes, threads)
        return self._calibrated(graph)

    def _calibrated(self, graph: DependencyGraph) -> DependencyGraph:
        """Add what was measured on this machine: what constructors write, and the prices of a start."""
        if not self._is_calibrated:
            return graph
        graph = with_constructors(graph, self._constructors, self._identify)
        return replace(graph, notes=(*graph.notes, *self._notes), load_prices=load_start_prices)

    def _owners(self, snapshot: Snapshot, folder: str) -> dict[Library, str]:
        """Return the files that a process has mapped, by the name that its mappings have."""
        owners: dict[Library, str] = {}
        seen: set[str] = set()
        for mapping in reversed(snapshot.memory.mappings):
            if mapping.inode and mapping.name.startswith("/") and mapping.name not in seen:
                file = self._system.file(path_below(mapping.name.removesuffix(DELETED), folder))
                if isinstance(file, Library):
                    seen.discard(owners.get(file, ""))
                    seen.add(mapping.name)
                    owners[file] = mapping.name
        return owners

    def _predictor(self, link_map: LinkMap) -> "_Predictor":
        return _Predictor(link_map, self._page_bytes, self._predicted, is_calibrated=self._is_calibrated)


KeptPrograms = dict[tuple[str | None, Environment], Programs]
"""What reads programs, by the root and the environment of their processes."""


def _identity(library: Library) -> str:
    try:
        return build_id(library.image) or ""
    except FootprintError:
        return ""


class _Predictor:
    """Predicts the objects of one link map, each library once."""

    def __init__(
        self,
        link_map: LinkMap,
        page_bytes: int,
        predictions: dict[tuple[Library, bool], ObjectPrediction],
        *,
        is_calibrated: bool,
    ) -> None:
        self._is_calibrated = is_calibrated
        self._libc = link_map.libc
        self._page_bytes = page_bytes
        self._predictions = predictions

    def __call__(self, linked: Linked, is_program: bool) -> ObjectPrediction:  # noqa: FBT001 # told by who calls
        library, key = linked.library, (linked.library, is_program)
        if key not in self._predictions:
            image = library.image
            is_libc = not is_program and (library.linkage.soname or "").startswith("libc.so.")
            start = load_libc_start(image) if is_libc and self._is_calibrated else None
            prediction = predict(image, self._page_bytes, is_program=is_program, libc=self._libc, libc_start=start)
            is_loader = self._libc is Libc.GLIBC and linked.found_by is FoundBy.INTERPRETER
            # Its entry for itself lies there, which it fills in; in 2.36 this is within the last page of the file.
            if is_loader and (pages := bss_pages(image, self._page_bytes)):
                prediction = with_written(prediction, WriteCause.LIBC_START, pages)
            self._predictions[key] = prediction
        return self._predictions[key]


def _moved_files(snapshot: Snapshot, root: str, folder: str) -> dict[str, str]:
    """Find where the files are that a process has mapped, and that are no longer at their paths."""
    moved: dict[str, str] = {}
    for mapping in snapshot.memory.mappings:
        path = path_below(mapping.name.removesuffix(DELETED), folder)
        if not (mapping.inode and mapping.permissions[2] == "x" and path.startswith("/")) or path in moved:
            continue
        try:
            is_there = not mapping.name.endswith(DELETED) and stat_path(root + path).st_ino == mapping.inode
        except (OSError, ValueError):
            is_there = False
        mapped = f"/proc/{snapshot.pid}/map_files/{mapping.start_addr:x}-{mapping.end_addr:x}"
        if not is_there and os.path.exists(mapped):
            moved[path] = mapped
    return moved


def environment_of(variables: Dict[str, str], cwd: str) -> Environment:
    """Read from the environment of a program what the loader reads there."""
    return Environment(
        library_path=variables.get("LD_LIBRARY_PATH", ""),
        preload=variables.get("LD_PRELOAD", ""),
        cwd=cwd,
        caller=(os.getuid(), os.getgid()),
        binds_now=bool(variables.get("LD_BIND_NOW")),
    )


def notes_of_files(graph: DependencyGraph, target: str) -> list[Note]:
    """Return notes on what the figures of files leave out: the program of a library alone, and the heap of Go."""
    notes = []
    if not graph.objects[0].library.is_program:
        detail = "it is a library: the figures are for a process with this library and its needs, without a program"
        notes.append(Note("no-program", target, detail))
    if any(_is_of_go(linked.library) for linked in graph.objects):
        detail = "the runtime of Go maps its own heap before main runs: no figure of a program that does not run has it"
        notes.append(Note("go-heap-unknown", target, detail))
    return notes


def _is_of_go(library: Library) -> bool:
    try:
        return has_go(library.image)
    except FootprintError:
        return False


def missing_notes(graph: DependencyGraph) -> list[Note]:
    """Return notes on the libraries that are missing: one for each of the first, and one that counts the rest."""
    missing = graph.link_map.missing
    shown = missing if len(missing) <= _MOST_MISSING_NOTES else missing[: _MOST_MISSING_NOTES - 1]
    notes = [Note("library-missing", m.name, f"{graph.name(m.requester)} needs it: {m.cause}") for m in shown]
    if rest := len(missing) - len(shown):
        notes.append(Note("library-missing", f"{rest} more libraries", "they are needed, and were not found either"))
    return notes
