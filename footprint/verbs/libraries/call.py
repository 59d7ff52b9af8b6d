"""`footprint.libraries`: the objects of a program or a process, without running anything; their JSON and graph."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.object_prediction import ObjectPrediction, count_pages
from footprint.attribution.process_audit import owner_rows
from footprint.attribution.start_time import StartPrices
from footprint.attribution.startup_writes import WriteCause
from footprint.errors import Note
from footprint.findings.registry import Fact, find_all
from footprint.formats.answer_table import answer_table, column, page_columns, row_metrics, row_of, rows_of, size_text
from footprint.formats.audit_rows import FailedFinding, finding_rows
from footprint.formats.dot import Digraph, DigraphEdge, DigraphNode
from footprint.formats.metrics import MetricFamily, finding_families, target_labels
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.loader.link_map import Linked, MissingLibrary
from footprint.loader.map_entry import FoundBy
from footprint.loader.start_cost import StartCost
from footprint.loader.target import Environment, Libc
from footprint.members import ABSENT, LATER, NOT_EMPTY, Absent, NamedTuple, Positive, dataclass
from footprint.model.costs import DailyStarts, processor_hours
from footprint.model.finding import Finding
from footprint.model.row import Evidence
from footprint.process.snapshot import read_process
from footprint.sources.process_files import images_of
from footprint.sources.programs import ProcessView, Programs, missing_notes, notes_of_files
from footprint.sources.target import Named, check_options, process_of
from footprint.system.files import StrPath
from footprint.text.units import format_bytes
from footprint.verbs.audit.process import files_of

_MARKS: Final = {
    FoundBy.PRELOAD: "preloaded",
    FoundBy.OPENED: "opened while running",
    FoundBy.AUDIT: "watches the loader",
}


@dataclass(frozen=True)
class Libraries:
    """What a program is made of, and what it could do without.

    Attributes:
        target: What was asked about, as the user named it.
        pid: The process, where a live one was asked about.
        graph: The objects, and all relations between them.
        findings: Libraries that nobody uses, and what else could be saved.
        count: How many processes to project to.
        notes: What the reader of the figures must know.
        has_start: Whether the findings have those that save time at start.
        daily: What so many starts a day take, estimated; None where nobody asked.
    """

    target: str
    pid: int | None
    graph: DependencyGraph
    findings: tuple[Finding, ...]
    count: int
    notes: tuple[Note, ...]
    has_start: bool = True
    daily: DailyStarts | None = None


def libraries(
    target: Named,
    *,
    count: int = 1,
    root: StrPath | None = None,
    environment: Environment | None = None,
    page_bytes: int | None = None,
    has_start: bool = True,
    starts_a_day: int | None = None,
) -> Libraries:
    """Find the objects of a program or a live process: who uses whom, what each costs, and what is unused.

    Args:
        target: A PID, or the path of a program or library. It is never run.
        count: How many processes to project to.
        root: The folder that the program takes for `/`.
        environment: What its caller decides.
        page_bytes: The size of a page; None for that of this machine.
        has_start: Whether to search for what saves time at start, too.
        starts_a_day: How many starts a day there are, to say what they take of a processor.

    Raises:
        AccessError: If the process is gone, or a file may not be read.
        InputError: If the target is no linked ELF file.
        UsageError: If an option does not go with the target.
    """
    process = process_of(target)
    if process is None:
        graph = Programs(root, environment, page_bytes=page_bytes).graph(str(target))
        notes = notes_of_files(graph, str(target))
    else:
        given = {"--root": root is not None, "--page-size": page_bytes is not None}
        check_options(process, [option for option, is_given in given.items() if is_given])
        snapshot = read_process(process.pid)
        view = ProcessView.of(snapshot.pid or process.pid)
        files = files_of(snapshot, None)
        notes = []
        ledger = owner_rows(snapshot, images_of(snapshot, None, files.opened, files.images)[0])
        images = [image for _, image in files.images.values()]
        graph = Programs.of_process(snapshot, view, environment, images=images).graph_of(snapshot, view, ledger)
    daily = None
    if starts_a_day is not None:
        is_estimated = any(graph.start_us)
        hours = processor_hours(sum(graph.start_us), starts_a_day) if is_estimated else None
        daily = DailyStarts(starts_a_day, hours, is_lower_bound=is_estimated and graph.lacks_objects)
    return Libraries(
        str(target),
        None if process is None else process.pid,
        graph,
        tuple(sorted(find_all({Fact.GRAPH: graph}, has_start=has_start), key=lambda finding: -finding.saving_bytes)),
        count,
        (*notes, *graph.notes, *missing_notes(graph)),
        has_start,
        daily,
    )


class ObjectOfGraph(NamedTuple):
    """An object of a dependency graph: what a row is made of.

    Attributes:
        graph: The graph.
        number: The number of the object.
        linked: The object as the loader has it.
        predicted: What is predicted of it; None where its file cannot be read.
        private_bytes: Its measured private memory; None for a program.
        has_start: Whether the text shows its time at start.
    """

    graph: DependencyGraph
    number: int
    linked: Linked
    predicted: ObjectPrediction | None
    private_bytes: int | None
    has_start: bool = True

    @property
    def is_root(self) -> bool:
        """Return whether it is loaded whatever others need."""
        return self.number in self.graph.roots

    @property
    def start_us(self) -> int | None:
        """The estimated processor time that it takes at start; None where that is not asked, or not modelled."""
        return self.graph.start_us[self.number] if self.has_start and self.graph.has_start_model else None

    @property
    def beyond_bytes(self) -> int | None:
        """What its private memory has beyond its startup minimum."""
        least_bytes = self.predicted.startup_min_bytes if self.predicted else 0
        return None if self.private_bytes is None else max(0, self.private_bytes - least_bytes)

    @property
    def thread_bytes(self) -> int | None:
        """Its thread-local variables in all threads; None where no object has any."""
        graph = self.graph
        return graph.thread_bytes((self.number,)) * graph.thread_count if graph.thread_local_bytes else None

    @property
    def needed(self) -> "tuple[NeededRow, ...]":
        """The objects that it needs."""
        counts = {place: len(symbols) for place, symbols in self.graph.answerers(self.number).items()}
        return tuple(
            [
                NeededRow(d.name, d.place, None if d.place is None else counts.get(d.place, 0))
                for d in self.linked.dependencies
            ]
        )


def mark_of(graph: DependencyGraph, number: int) -> str:
    """Return why an object is there, where nothing that it defines is the reason; "" for all others."""
    if mark := _MARKS.get(graph.objects[number].found_by):
        return mark
    if number == len(graph.link_map.objects):
        return "the loader"
    return "" if number in graph.roots or graph.bindings.users(number) else "unused"


def objects_of(graph: DependencyGraph, *, has_start: bool = True) -> list[ObjectOfGraph]:
    """Return the objects of a process in load order."""
    private = graph.private_bytes or [None] * len(graph.objects)
    return [
        ObjectOfGraph(graph, number, *facts, has_start)
        for number, facts in enumerate(zip(graph.objects, graph.predictions, private, strict=True))
    ]


@answer_table
class LibrariesTarget:
    """The program or process whose objects are listed."""

    name: str = column("The target, as the user named it.", "target")
    pid: int | None = column("The process; null for a program.")
    libc: Libc = column("The C library whose loader rules were followed.", "graph.link_map.libc")
    page_bytes: int = column("The size of a page.", "graph.page_bytes")
    evidence: Evidence = column("How `retained_bytes` of the objects are known.", "graph.evidence")


class NeededRow(NamedTuple):
    """An object that another one needs.

    Attributes:
        name: The name that it is needed by.
        number: The number of the object; null where it is missing.
        symbol_count: The number of its symbols that are used; null where it is missing.
    """

    name: str
    number: int | None
    symbol_count: int | None


@answer_table
class LibraryRow:
    """One object of the process. What is predicted is null where the file cannot be read."""

    number: int = column("The number that all other members refer to; objects are in load order.")
    path: str = column("The path.", "linked.path")
    soname: str | None = column("The soname; null where it has none.", "linked.library.linkage.soname")
    found_by: FoundBy = column("The rule of the loader that found it.", "linked.found_by")
    loader: int | None = column("The number of the object that needed it first; null for the program.", "linked.loader")
    directory_owner: Annotated[int | None, LATER] = column(
        "The number of the object whose RPATH or RUNPATH names its directory; null for other rules.",
        "linked.directory_owner",
    )
    needed: tuple[NeededRow, ...] = column("The objects that it needs.")
    floor_bytes: int | None = column(
        "The startup minimum: pages that are surely written at start.",
        "predicted.startup_min_bytes",
        title="startup min",
        views="report total metric",
    )
    ceiling_bytes: int | None = column(
        "The startup maximum: all pages that can ever be written.",
        "predicted.startup_max_bytes",
        views="report metric",
        heading="Startup max",
    )
    private_bytes: int | None = column(
        "Its measured private memory; null for a program.", title="private", views="report total metric"
    )
    beyond_bytes: int | None = column(
        "What its private memory has beyond `floor_bytes`; null for a program.", title="beyond"
    )
    thread_bytes: int | None = column(
        "Its thread-local variables in all threads; null where no object has any.", title="in threads", views="total"
    )
    mapped_bytes: int | None = column(
        "Its virtual size.", "predicted.mapped_bytes", title="mapped", views="total metric"
    )
    mapping_count: int | None = column("The number of its mappings.", "predicted.mapping_count")
    tls_bytes: int | None = column(
        "The size of its thread-local variables, in each thread.",
        "predicted.tls_bytes",
        views="report",
        heading="Each thread",
    )
    retained_bytes: int = column(
        "What leaves the process with it: its own cost, and that of every object that only it brings in.",
        lambda row: row.graph.retained_bytes[row.number],
        # The program stays.
        shown=lambda row: "" if row.is_root else size_text(row.graph.retained_bytes[row.number]),
        title="retained",
        views="report main metric",
        heading="Leaves with it",
    )
    retained: tuple[int, ...] = column(
        "The numbers of the objects that leave with it, without itself.",
        lambda row: tuple(sorted(row.graph.retained[row.number] - {row.number})),
    )
    start_us: Annotated[int | None, LATER] = column(
        "The estimated processor time that it takes before the program's own code runs, in microseconds: its file,"
        " the pages that are written, relocations and lookups; null for musl, whose loader was not measured.",
        "start_us",
        title="start us",
        views="report total",
        heading="Start, microseconds",
    )
    start_page_faults: Annotated[int | None, LATER] = column(
        "The page faults for it up to the entry point, estimated; null for musl.",
        lambda row: row.graph.start_page_faults[row.number] if row.graph.has_start_model else None,
    )
    retained_start_us: Annotated[int | None, LATER] = column(
        "The time that a start takes less without it: `start_us` of all that leaves with it, itself included, and that"
        " the lookups of the others ask fewer objects; null for musl.",
        lambda row: row.graph.retained_start_us[row.number] if row.graph.has_start_model else None,
    )
    start: Annotated[StartCost | None, LATER] = column(
        "What the loader does for it at start; null where it comes later, or cannot be read.",
        lambda row: row.graph.start_costs[row.number],
    )
    users: tuple[int, ...] = column(
        "The numbers of the objects that use its symbols.",
        lambda row: tuple(row.graph.bindings.users(row.number)),
        title="users",
    )
    mark: str = column(
        "`unused`, `preloaded`, `opened while running`, `watches the loader` or `the loader`; else nothing.",
        lambda row: mark_of(row.graph, row.number),
        views="report",
        heading="Mark",
    )
    used_symbol_count: int = column(
        "The number of its symbols that others use.",
        lambda row: row.graph.used_count(row.number),
        title="symbols",
        views="report",
        heading="Symbols used",
    )
    causes: Mapping[WriteCause, Positive] = column(
        "The number of pages that each cause makes the loader write; a page may have several causes.",
        lambda row: (
            {cause: count_pages(pages) for cause, pages in row.predicted.causes.items()} if row.predicted else {}
        ),
    )


@dataclass(frozen=True, kw_only=True)
class LibrariesJson(Envelope):
    """The objects of a program or process: their costs and how they depend on each other.

    Attributes:
        target: The program or process.
        libraries: The objects in load order.
        missing: The files that are needed and not there.
        count: The number of processes that savings are multiplied by.
        findings: What the program could do without.
        notes: What the reader of the figures must know.
        daily: What the starts of `--per` take each day, estimated; null without it.
        start_prices: By what the times at start are estimated; null in files of earlier versions.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["libraries"] = "libraries"
    target: LibrariesTarget
    libraries: Annotated[tuple[LibraryRow, ...], NOT_EMPTY]
    missing: tuple[MissingLibrary, ...]
    count: Positive
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    daily: Annotated[DailyStarts | None, LATER]
    start_prices: Annotated[StartPrices | None, LATER]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def libraries_members(libraries: Libraries, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        LibrariesJson(
            tool=Tool("footprint", version),
            host={},
            target=row_of(LibrariesTarget, libraries),
            libraries=rows_of(LibraryRow, objects_of(libraries.graph)),
            missing=libraries.graph.link_map.missing,
            count=libraries.count,
            findings=finding_rows(libraries.findings, libraries.count),
            notes=libraries.notes,
            daily=libraries.daily,
            start_prices=libraries.graph.start_prices,
        )
    )


def libraries_page(_: Libraries) -> Json:
    """Return the columns of the HTML report."""
    return page_columns(libraries=LibraryRow)


def libraries_metrics(libraries: Libraries) -> list[MetricFamily]:
    """Return what each object of a program costs."""
    objects = row_metrics(LibraryRow, objects_of(libraries.graph), "object", lambda row: {"object": row.linked.path})
    target = target_labels(libraries.target, libraries.graph.name(0))
    return [*objects, *finding_families(libraries.findings, target)]


def libraries_graph(libraries: Libraries) -> Digraph:
    """Return a node for each object with its cost and what leaves with it, and an edge for each need.

    An edge has the number of symbols that are used; it is dashed where none is. Objects that nobody uses stand out.
    """
    graph = libraries.graph
    nodes, edges = [], []
    for number in range(len(graph.objects)):
        is_unused = number not in graph.roots and not graph.bindings.users(number)
        cost = format_bytes(graph.cost_bytes((number,)))
        retained = [] if number in graph.roots else [f"retained {format_bytes(graph.retained_bytes[number])}"]
        nodes.append(DigraphNode((graph.name(number), cost, *retained), is_unused))
        answers = graph.answerers(number)
        for provider in graph.needed[number]:
            count = len(answers.get(provider, ()))
            edges.append(DigraphEdge(number, provider, str(count or ""), not count))
    return Digraph(libraries.target, nodes, edges)
