"""`footprint.libraries`: the objects of a program or a process, without running anything."""

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.process_audit import owner_rows
from footprint.errors import Note
from footprint.findings.registry import Fact, find_all
from footprint.loader.target import Environment
from footprint.members import dataclass
from footprint.model.costs import DailyStarts, processor_hours
from footprint.model.finding import Finding
from footprint.process.snapshot import read_process
from footprint.sources.process_files import images_of
from footprint.sources.programs import ProcessView, Programs, missing_notes, notes_of_files
from footprint.sources.target import Named, check_options, process_of
from footprint.system.files import StrPath
from footprint.verbs.audit.process import files_of


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
