"""`footprint.survey`: every program of some folders, ranked by what a process of it costs."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from footprint.attribution.dependency_graph import DependencyGraph
from footprint.attribution.start_memory import start_memory
from footprint.elf.image import starts_like_elf
from footprint.errors import FootprintError, Note, UsageError, cause_of
from footprint.findings.graph_rules.stub_library import stub_libraries
from footprint.findings.graph_rules.unused_library import unused_libraries
from footprint.model.finding import Confidence
from footprint.sources.programs import Programs, missing_notes
from footprint.system.files import StrPath
from footprint.system.limits import limited


class SurveyedProgram(NamedTuple):
    """One program; `footprint.verbs.survey.answer` says what each figure is."""

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


@dataclass(frozen=True, slots=True)
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
    return SurveyedProgram(
        path,
        len(graph.objects),
        sum(prediction.startup_min_bytes for prediction in predictions),
        sum(prediction.startup_max_bytes for prediction in predictions),
        sum(start_memory(graph)),
        sum(f.saving_bytes for f in dropped),
        tuple([f.subject for f in dropped]),
        sum(f.saving_bytes for f in unused if f.confidence is Confidence.LOW),
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
