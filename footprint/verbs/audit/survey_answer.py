"""`footprint.survey`: every program of some folders, ranked by what a process costs; its columns, JSON and metrics."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.start_memory import start_memory
from footprint.elf.image import starts_like_elf
from footprint.errors import FootprintError, Note, UsageError, cause_of
from footprint.findings.graph_rules.stub_library import stub_libraries
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.formats.answer_table import answer_table, column, page_columns, row_metrics, rows_of, table
from footprint.formats.document import (
    Block,
    Document,
    Heading,
    Paragraph,
    Table,
    Verdict,
    cut_at,
    note_blocks,
    rest_rows,
)
from footprint.formats.metrics import MetricFamily
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import Positive, dataclass
from footprint.sources.programs import Programs, missing_notes
from footprint.system.files import StrPath
from footprint.system.limits import limited
from footprint.text.units import counted, format_bytes

_MOST_NOTES = 10
_COLUMNS = (
    "Private memory of one process, predicted from files. At start: when its own code begins; the part of its objects "
    "is the startup minimum; if every variable is written, the startup maximum. Unused: of libraries that nobody uses."
)


class SurveyedProgram(NamedTuple):
    """One program; `footprint.verbs.audit.survey_answer` says what each figure is."""

    path: str
    object_count: int
    startup_min_bytes: int
    startup_max_bytes: int
    start_bytes: int
    unused_bytes: int
    unused: tuple[str, ...]
    doubtful_bytes: int
    is_complete: bool

    @property
    def at_start_bytes(self) -> int:
        """Return the private memory of a process at its start."""
        return self.startup_min_bytes + self.start_bytes


@dataclass(frozen=True)
class Survey:
    """The programs of some folders, the costliest first.

    Attributes:
        folders: Where they were looked for.
        count: How many processes of each to project to.
        programs: All of them.
        notes: Files that could not be read, and libraries that are missing.
    """

    folders: tuple[str, ...]
    count: int
    programs: tuple[SurveyedProgram, ...]
    notes: tuple[Note, ...]


def survey(
    *folders: StrPath,
    count: int = 1,
    root: StrPath | None = None,
    page_bytes: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Survey:
    """Predict what a process of each program below some folders costs, the costliest first.

    Args:
        folders: Where to look, as seen from this machine.
        count: How many processes of each to project to.
        root: The directory that the programs take for `/`, in which the folders are.
        page_bytes: The size of a page, where that is not this machine's.
        on_progress: Is called for each file with the number of files that are done, and that of all.

    Raises:
        UsageError: If no folder is named, or if one is not a folder.
    """
    if not folders:
        raise UsageError("name a folder of programs")
    names, root = [os.fspath(folder) for folder in folders], None if root is None else os.fspath(root)
    programs = Programs(root, page_bytes=page_bytes)
    programs_found: list[SurveyedProgram] = []
    notes: list[Note] = []
    paths = list(_executable_paths(names, notes))
    for done_count, path in enumerate(paths):
        if on_progress is not None:
            on_progress(done_count, len(paths))
        own_path = _within(path, root)
        try:
            with limited():
                graph = programs.graph(own_path)
        except FootprintError as error:
            notes.append(Note("file-unreadable", path, error.detail))
            continue
        if graph.objects[0].library.is_program:
            programs_found.append(_surveyed(path, graph))
            notes.extend((*missing_notes(graph), *graph.start_failures))
    programs_found.sort(key=lambda p: (-p.startup_min_bytes - p.start_bytes, p.path))
    return Survey(tuple(names), count, tuple(programs_found), tuple(dict.fromkeys(notes)))


def _surveyed(path: str, graph: DependencyGraph) -> SurveyedProgram:
    predictions = [prediction for prediction in graph.predictions if prediction]
    unused = [f for f in (*unused_libraries(graph), *stub_libraries(graph)) if f.saving_bytes]
    dropped = [f for f in unused if f.confidence.is_counted]
    unused_bytes, doubtful_bytes = graph.spared_bytes(unused)
    return SurveyedProgram(
        path,
        len(graph.objects),
        sum(prediction.startup_min_bytes for prediction in predictions),
        sum(prediction.startup_max_bytes for prediction in predictions),
        sum(start_memory(graph)),
        unused_bytes,
        tuple([f.subject for f in dropped]),
        doubtful_bytes,
        not graph.link_map.missing,
    )


def _executable_paths(folders: Iterable[str], notes: list[Note]) -> Iterator[str]:
    """Return the executable ELF files below folders, each once; links are not followed."""

    def refused(error: OSError) -> None:
        detail = cause_of(error)
        notes.append(Note("file-unreadable", str(error.filename), f"{detail}, it is left out"))

    seen: set[tuple[int, int]] = set()
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder")
        for place, names, files in os.walk(folder, onerror=refused):
            names.sort()
            for name in sorted(files):
                path = os.path.join(place, name)
                try:
                    if _is_new_program(path, seen):
                        yield path
                except FileNotFoundError:
                    continue
                except OSError as error:
                    refused(error)


def _is_new_program(path: str, seen: set[tuple[int, int]]) -> bool:
    """Return whether a file is executable, ELF, and not seen before by another name."""
    facts = os.lstat(path)
    if not (stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o111) or (facts.st_dev, facts.st_ino) in seen:
        return False
    seen.add((facts.st_dev, facts.st_ino))
    with open(path, "rb") as file:
        return starts_like_elf(file.read(4))


def _within(path: str, root: str | None) -> str:
    """Return a path as a program with this root sees it."""
    whole = os.path.abspath(path)
    if root is None:
        return whole
    base = os.path.realpath(root)
    whole = os.path.realpath(whole)
    if not whole.startswith(base.rstrip("/") + "/"):
        raise UsageError(f"{path} is not below {root}")
    return whole[len(base.rstrip("/")) :]


class FoldersTarget(NamedTuple):
    """The folders that were searched for programs.

    Attributes:
        folders: The folders.
    """

    folders: tuple[str, ...]


@answer_table
class ProgramRow:
    """One program; `at_start_bytes` is `floor_bytes` and `start_bytes` together."""

    path: str = column("The file.")
    at_start_bytes: int = column("The private memory of a process at its start.", title="at start", views="report main")
    floor_bytes: int = column(
        "The startup minimum: what its objects have surely written at start.",
        "startup_min_bytes",
        title="startup min",
        views="report metric",
    )
    ceiling_bytes: int = column(
        "The startup maximum: what can ever be written of its objects.",
        "startup_max_bytes",
        title="startup max",
        views="report metric",
    )
    start_bytes: int = column(
        "What a process has at start beside its objects: stack, thread block, the loader's lists.", views="metric"
    )
    object_count: int = column("How many objects a process of it has.", title="objects", views="report")
    unused_bytes: int = column(
        "What libraries cost that nobody uses, where it is at least `medium` that they can be dropped.",
        title="unused",
        views="report metric",
    )
    unused: tuple[str, ...] = column("Those libraries.", views="report", heading="Unused libraries")
    doubtful_bytes: int = column("What libraries cost for which that is `low`.")
    is_complete: bool = column("Whether all libraries were found.")


@dataclass(frozen=True, kw_only=True)
class SurveyJson(Envelope):
    """The programs of folders.

    Attributes:
        target: The folders.
        count: The number of processes of each program.
        programs: The programs, the costliest first.
        notes: What the reader of the figures must know.
    """

    verb: Literal["audit"] = "audit"
    target: FoldersTarget
    count: Positive
    programs: tuple[ProgramRow, ...]
    notes: tuple[Note, ...]


def survey_members(survey: Survey, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        SurveyJson(
            tool=Tool("footprint", version),
            host={},
            target=FoldersTarget(survey.folders),
            count=survey.count,
            programs=rows_of(ProgramRow, survey.programs),
            notes=survey.notes,
        )
    )


def survey_page(_: Survey) -> Json:
    """Return the columns of the HTML report."""
    return page_columns(programs=ProgramRow)


def survey_metrics(survey: Survey) -> list[MetricFamily]:
    """Return what a process of each program costs."""
    return row_metrics(ProgramRow, survey.programs, "program", lambda row: {"path": row.path})


def survey_document(survey: Survey, *, top: int = 20) -> Document:
    """Rank the programs of some folders; `top` rows, 0 for all."""
    programs = survey.programs
    blocks: list[Block] = [Heading(f"{counted(len(programs), 'program')} in {', '.join(survey.folders)}")]
    if programs:
        blocks += [Paragraph(_COLUMNS), table(ProgramRow, programs, heading="program", label=_label, top=top)]
    wasteful = [program for program in programs if program.unused_bytes]
    if wasteful:
        wasteful.sort(key=lambda p: (-p.unused_bytes, p.path))
        some, others = cut_at(wasteful, top)
        blocks.append(Heading("Libraries that nobody uses"))
        unused = tuple((format_bytes(p.unused_bytes), p.path, ", ".join(p.unused)) for p in some)
        blocks.append(Table(("saves", "program", "libraries"), unused, frozenset({1}), rest_rows(len(others), 3)))
    notes = survey.notes[:_MOST_NOTES]
    blocks.extend(note_blocks(notes))
    if len(survey.notes) > len(notes):
        blocks.append(Paragraph(f"[{len(survey.notes) - len(notes)} more: --json has all]"))
    return (*blocks, Verdict(_verdict(survey)))


def _label(program: SurveyedProgram) -> str:
    return program.path + ("" if program.is_complete else "  [libraries missing]")


def _verdict(survey: Survey) -> str:
    if not survey.programs:
        return "There is no program."
    unused_bytes = sum(program.unused_bytes for program in survey.programs)
    doubtful_bytes = sum(program.doubtful_bytes for program in survey.programs)
    saved = ""
    if unused_bytes or doubtful_bytes:
        number = "one" if survey.count == 1 else f"{survey.count:,}"
        size = format_bytes((unused_bytes or doubtful_bytes) * survey.count)
        saved = f"; {number} of each would save {size} without unused libraries"
    if unused_bytes and doubtful_bytes:
        saved += f", and {format_bytes(doubtful_bytes * survey.count)} more with low confidence"
    elif doubtful_bytes:
        saved += ", with low confidence"
    first = survey.programs[0]
    size = format_bytes(first.at_start_bytes)
    return f"{first.path} costs most, {size} at its start (estimated){saved}."
