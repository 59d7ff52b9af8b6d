"""`footprint.libraries`: what a program or process is made of, without running anything."""

import os
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Dict
from dataclasses import replace
from functools import cache

from footprint.attribution.dependency_graph import DependencyGraph, build_graph
from footprint.attribution.kernel import BUILT_IN
from footprint.attribution.object_prediction import ObjectPrediction, predict
from footprint.attribution.program_prediction import predicted_audit
from footprint.errors import AccessError, FootprintError, Note, UsageError
from footprint.findings.relocated_tables import relocated_tables
from footprint.findings.thread_locals import thread_locals
from footprint.findings.underlinked import underlinked
from footprint.findings.unused_libraries import unused_libraries
from footprint.loader import Environment, Library, Linked, LinkMap, Searches, System, link
from footprint.loader.bindings import Binder
from footprint.loader.live_link_map import with_opened
from footprint.model.audit import Audit
from footprint.model.evidence import Evidence, weakest
from footprint.model.finding import Finding
from footprint.model.object_cost import ObjectCost
from footprint.model.owner import DELETED
from footprint.model.projection import Question
from footprint.model.row import Row
from footprint.model.totals import Total
from footprint.process import Snapshot, read_process
from footprint.sources.calibration import load_constants
from footprint.sources.debug_files import STANDARD_PLACES, DebugFiles, DebugSearch
from footprint.sources.libc_calibration import load_libc_start
from footprint.sources.object_files import ObjectFiles
from footprint.sources.process_files import path_below
from footprint.verbs.audit.call import audit_of, process_number, with_files_told
from footprint.verbs.libraries.answer import Libraries

__all__ = ("Programs", "audit_process", "audit_program", "graph_findings", "libraries", "missing_notes")

_MOST_ENVIRONMENT_BYTES = 1 << 22
_USUAL_PAGE_BYTES = 4096
# The JSON of `libraries` has them all, as `missing`.
_MOST_MISSING_NOTES = 10
_PAGE_SIZES = frozenset({1 << shift for shift in range(12, 17)})


class Programs:
    """Reads the programs of one system. What was learned of a library is kept for the programs that come after.

    Args:
        root: The directory that they take for `/`; None for this machine's.
        environment: What their caller decides; None for what this process itself was started with, without a root.
        page_bytes: The size of a page; None for that of this machine.
        is_calibrated: Whether what was measured of this machine's C library is used.
        moved_files: Where files are to be had that are not at their paths any more.

    Raises:
        UsageError: For a size that pages do not have.
    """

    def __init__(
        self,
        root: str | None = None,
        environment: Environment | None = None,
        *,
        page_bytes: int | None = None,
        is_calibrated: bool = True,
        moved_files: Dict[str, str] | None = None,
    ) -> None:
        self._is_calibrated = is_calibrated
        self._system = System(root or "/", moved_files or {})
        self._environment = environment or (Environment() if root else _environment(os.environ, os.getcwd()))
        self._page_bytes = os.sysconf("SC_PAGESIZE") if page_bytes is None else page_bytes
        if self._page_bytes not in _PAGE_SIZES:
            raise UsageError(f"no machine has pages of {self._page_bytes} bytes: 4KiB, 8KiB, 16KiB, 32KiB or 64KiB")
        self._searches: Searches = {}
        self._binder = Binder()
        self._predicted: dict[Library, ObjectPrediction] = {}

    def graph(self, path: str) -> DependencyGraph:
        """Tell what a program is made of.

        Raises:
            AccessError: Where it cannot be opened.
            InputError: Where it is no linked ELF file.
        """
        link_map = link(self._system, path, self._environment, self._searches)
        return build_graph(link_map, self._binder.bind(link_map), self._page_bytes, self._predictor(link_map))

    def graph_of(self, snapshot: Snapshot, path: str, ledger: Iterable[Row], folder: str = "/") -> DependencyGraph:
        """Tell what a live process is made of, with what it opened while it ran, and what each object holds.

        Args:
            snapshot: The process.
            path: Its program.
            ledger: Where its memory is.
            folder: What the process takes for `/`, as the kernel calls it for us in the names of its files.

        Raises:
            AccessError: Where its program cannot be opened.
            InputError: Where that is no linked ELF file.
        """
        link_map = link(self._system, path_below(path, folder), self._environment, self._searches)
        held_bytes: dict[str, int] = {}
        for row in ledger:
            held_bytes[row.owner] = held_bytes.get(row.owner, 0) + (row.bytes or 0)
        owners: dict[Library, str] = {}
        for mapping in reversed(snapshot.memory.mappings):
            if mapping.inode and mapping.name.startswith("/") and mapping.name not in owners.values():
                file = self._system.file(path_below(mapping.name.removesuffix(DELETED), folder))
                if isinstance(file, Library):
                    owners[file] = mapping.name
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

        bindings = self._binder.bind(link_map)
        return build_graph(link_map, bindings, self._page_bytes, self._predictor(link_map), private_bytes)

    def _predictor(self, link_map: LinkMap) -> "_Predictor":
        return _Predictor(link_map, self._page_bytes, self._predicted, is_calibrated=self._is_calibrated)


class _Predictor:
    """Predicts the objects of one link map; what was predicted of libraries is remembered."""

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


def libraries(
    target: int | str,
    *,
    count: int = 1,
    root: str | None = None,
    environment: Environment | None = None,
    page_bytes: int | None = None,
) -> Libraries:
    """Tell what a program or live process is made of: its objects, their relations, their cost, and what is unused.

    Args:
        target: A PID, or the path of a program or library. It is never run.
        count: How many processes to project to.
        root: The directory that the program takes for `/`.
        environment: What its caller decides.
        page_bytes: The size of a page, where that is not this machine's.

    Raises:
        AccessError: Where the process is gone, or a file may not be read.
        InputError: Where the target is no linked ELF file.
        UsageError: Where the question does not fit the target.
    """
    number = process_number(target)
    if number is None:
        graph = Programs(root, environment, page_bytes=page_bytes).graph(str(target))
    else:
        if root is not None or page_bytes is not None:
            raise UsageError("--root and --page-size go with a program, not with a live process")
        _, graph, _ = _of_process(number, environment, Question(), None)
    return Libraries(
        str(target),
        number,
        graph,
        graph_findings(graph),
        count,
        (*graph.notes, *missing_notes(graph)),
    )


def graph_findings(graph: DependencyGraph) -> tuple[Finding, ...]:
    """Give all that the rules find in what a program is made of, the largest saving first."""
    findings = (*unused_libraries(graph), *thread_locals(graph), *underlinked(graph))
    return tuple(sorted(findings, key=lambda one: -one.saving_bytes))


def audit_program(
    target: str,
    question: Question,
    *,
    root: str | None = None,
    page_bytes: int | None = None,
    debug: DebugSearch | None = STANDARD_PLACES,
    has_page_maps: bool = False,
    is_reproducible: bool = False,
) -> Audit:
    """Audit a program by its files: what a process of it surely writes at its start, and what it could do without.

    Args:
        target: The program.
        question: How many of it.
        root: The directory that it takes for `/`.
        page_bytes: The size of a page; that of this machine, or 4 KiB where the answer is to be reproducible.
        debug: Where to look for the symbols of stripped files.
        has_page_maps: Whether the pages of its objects are told one by one.
        is_reproducible: Whether nothing of this machine goes into the answer but the files: not its kernel, what was
            calibrated on it, nor what this process was started with.

    Raises:
        AccessError: Where it cannot be opened.
        InputError: Where it is no linked ELF file.
        UsageError: For a model that needs a live process.
    """
    if is_reproducible:
        programs = Programs(
            root, Environment(cwd=os.getcwd()), page_bytes=page_bytes or _USUAL_PAGE_BYTES, is_calibrated=False
        )
        constants, host = BUILT_IN, {}
    else:
        programs, system = Programs(root, page_bytes=page_bytes), os.uname()
        constants = load_constants(system.release, system.machine)
        host = {"kernel": system.release, "machine": system.machine}
    graph = programs.graph(target)
    files = ObjectFiles(DebugFiles(debug, root))
    found = predicted_audit(
        graph,
        files,
        target=target,
        question=question,
        constants=constants,
        host=host,
        findings=graph_findings(graph),
        notes=(*_library_note(graph, target), *graph.notes, *missing_notes(graph)),
        has_page_maps=has_page_maps,
    )
    tables = relocated_tables(found.ledger, graph.page_bytes)
    findings = (*found.findings, *tables, *_own_findings(graph, debug))
    ordered = tuple(sorted(findings, key=lambda one: -one.saving_bytes))
    return with_files_told(replace(found, findings=ordered, objects=graph.object_costs()), files)


def _own_findings(graph: DependencyGraph, debug: DebugSearch | None) -> tuple[Finding, ...]:
    """Give what the program's own file holds several times, or large and unused; nothing where it is damaged."""
    from footprint.verbs.duplicates.call import findings_in  # noqa: PLC0415 # debug information, which only this part reads

    program = graph.link_map.objects[0]
    try:
        return findings_in(program.library.image, debug)
    except FootprintError:
        # Only this part of the answer needs its symbols.
        return ()


def _library_note(graph: DependencyGraph, target: str) -> list[Note]:
    if graph.objects[0].library.is_program:
        return []
    detail = "it is a library: the figures are those of a process that has it and what it needs, and no program"
    return [Note("no-program", target, detail)]


def audit_process(
    pid: int, question: Question, *, debug: DebugSearch | None = STANDARD_PLACES, has_page_maps: bool = False
) -> Audit:
    """Audit a live process and what it could do without, for which the symbols of all its files are read.

    Raises:
        AccessError: Where the process is gone or may not be read.
        InputError: Where its program is no ELF file.
        UsageError: Where the question does not fit.
    """
    from footprint.verbs.duplicates.call import findings_of  # noqa: PLC0415 # debug information, which only this part reads

    found, graph, snapshot = _of_process(pid, None, question, debug, has_page_maps=has_page_maps)
    tables = relocated_tables(found.ledger, graph.page_bytes)
    findings = (*graph_findings(graph), *tables, *findings_of(snapshot, debug))
    known = [one for one in graph.predictions if one]
    totals = found.totals._replace(
        startup_min=Total(sum(one.startup_min_bytes for one in known), weakest(one.evidence for one in known)),
        startup_max=Total(sum(one.startup_max_bytes for one in known), Evidence.PREDICTED),
    )
    called = _owner_names(found, pid)
    ordered = tuple(sorted(findings, key=lambda one: -one.saving_bytes))
    notes = (*found.notes, *graph.notes, *missing_notes(graph))
    return replace(
        found,
        totals=totals,
        findings=tuple(
            replace(one, object_path=called(one.object_path), leaves=tuple(map(called, one.leaves))) for one in ordered
        ),
        notes=tuple(dict.fromkeys(notes)),
        objects=tuple(_renamed(one, called) for one in graph.object_costs()),
    )


def _renamed(one: ObjectCost, called: Callable[[str], str]) -> ObjectCost:
    """Name an object, and all that it speaks of, as `called` does."""
    return one._replace(
        path=called(one.path),
        held_by=None if one.held_by is None else called(one.held_by),
        needs=None if one.needs is None else tuple([need._replace(path=called(need.path)) for need in one.needs]),
    )


def _owner_names(found: Audit, pid: int) -> Callable[[str], str]:
    """Give what calls an object as the ledger does: the loader may have found it through a symbolic link."""
    owners = {row.owner for row in found.ledger}
    root = f"/proc/{pid}/root"

    @cache
    def called(path: str) -> str:
        inside = path.removeprefix(root)
        if not inside or inside in owners:
            return inside
        real = os.path.realpath(root + inside).removeprefix(root)
        # Where nothing but this process has that root, its links lead out of it.
        real = real if real in owners else os.path.realpath(inside)
        return real if real in owners else inside

    return called


def _of_process(
    pid: int,
    environment: Environment | None,
    question: Question,
    debug: DebugSearch | None,
    *,
    has_page_maps: bool = False,
) -> tuple[Audit, DependencyGraph, Snapshot]:
    snapshot = read_process(pid)
    folder = f"/proc/{pid}"
    try:
        path = os.readlink(f"{folder}/exe").removesuffix(DELETED)
        with open(f"{folder}/environ", "rb") as file:
            texts = file.read(_MOST_ENVIRONMENT_BYTES).split(b"\0")
        cwd = os.readlink(f"{folder}/cwd")
        root = None if os.path.samefile(f"{folder}/root", "/") else f"{folder}/root"
        own_folder = os.readlink(f"{folder}/root")
    except OSError as error:
        raise AccessError(f"process {pid}", error.strerror or str(error)) from error
    pairs = [text.decode("utf-8", "surrogateescape").partition("=") for text in texts]
    own = environment or _environment({name: value for name, _, value in pairs}, cwd)
    found = audit_of(snapshot, str(pid), question, debug=debug, has_page_maps=has_page_maps)
    moved_files = _moved_files(snapshot, root or "", own_folder)
    return (
        found,
        Programs(root, own, moved_files=moved_files).graph_of(snapshot, path, found.ledger, own_folder),
        snapshot,
    )


def _moved_files(snapshot: Snapshot, root: str, folder: str) -> dict[str, str]:
    """Give where the files are to be had that a process has mapped, and that are not at their paths any more."""
    found: dict[str, str] = {}
    for mapping in snapshot.memory.mappings:
        path = path_below(mapping.name.removesuffix(DELETED), folder)
        if not (mapping.inode and mapping.permissions[2] == "x" and path.startswith("/")) or path in found:
            continue
        try:
            is_there = not mapping.name.endswith(DELETED) and os.stat(root + path).st_ino == mapping.inode
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
    """Give a note for the first libraries that a program needs and does not get, and one that counts the others."""
    missing = graph.link_map.missing
    shown = missing if len(missing) <= _MOST_MISSING_NOTES else missing[: _MOST_MISSING_NOTES - 1]
    notes = [Note("library-missing", one.name, f"{graph.name(one.requester)} needs it: {one.cause}") for one in shown]
    if rest := len(missing) - len(shown):
        notes.append(Note("library-missing", f"{rest} more libraries", "they are needed and not found either"))
    return notes
