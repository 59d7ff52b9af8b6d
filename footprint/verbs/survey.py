"""`footprint.survey`: every program of some folders, ranked by what a process of it costs."""

import os
import stat
from collections.abc import Iterable, Iterator

from footprint.audit.composition import Composition
from footprint.audit.finding import Confidence
from footprint.audit.predicted import start_memory
from footprint.audit.survey import Survey, SurveyedProgram
from footprint.elf import starts_like_elf
from footprint.errors import FootprintError, Note, UsageError
from footprint.findings.unused_libraries import unused_libraries
from footprint.verbs.programs import Programs, missing_notes

__all__ = ("survey",)


def survey(*folders: str, count: int = 1, root: str | None = None) -> Survey:
    """Tell of every program below some folders what a process of it would cost, the costliest first.

    Args:
        folders: Where to look, as seen from this machine.
        count: How many processes of each to project to.
        root: The directory that the programs take for `/`, in which the folders are.

    Raises:
        UsageError: Where no folder is named, or one is none.
    """
    if not folders:
        raise UsageError("name a folder of programs")
    programs = Programs(root)
    found: list[SurveyedProgram] = []
    notes: list[Note] = []
    for path in _executable_paths(folders):
        try:
            composition = programs.composition(_within(path, root))
        except FootprintError as error:
            notes.append(Note("file-unreadable", path, error.detail))
            continue
        if composition.objects[0].library.is_program:
            found.append(_surveyed(path, composition))
            notes.extend(missing_notes(composition))
    found.sort(key=lambda one: (-one.floor_bytes - one.start_bytes, one.path))
    return Survey(tuple(folders), count, tuple(found), tuple(dict.fromkeys(notes)))


def _surveyed(path: str, composition: Composition) -> SurveyedProgram:
    known = [one for one in composition.predicted if one]
    dropped = [
        one for one in unused_libraries(composition) if one.saving_bytes and one.confidence is not Confidence.BLOCKED
    ]
    start = start_memory(len(known), sum(one.tls_bytes for one in known), composition.page_bytes)
    return SurveyedProgram(
        path,
        len(composition.objects),
        sum(one.floor_bytes for one in known),
        sum(one.ceiling_bytes for one in known),
        sum(start),
        sum(one.saving_bytes for one in dropped),
        tuple([one.subject for one in dropped]),
        not composition.link_map.missing,
    )


def _executable_paths(folders: Iterable[str]) -> Iterator[str]:
    """Give the executable ELF files below folders, each once; what a link leads to elsewhere is not below."""
    seen: set[tuple[int, int]] = set()
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is no folder")
        for place, names, files in os.walk(folder):
            names.sort()
            for name in sorted(files):
                path = os.path.join(place, name)
                try:
                    facts = os.lstat(path)
                    if not (stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o111):
                        continue
                    if (facts.st_dev, facts.st_ino) in seen:
                        continue
                    seen.add((facts.st_dev, facts.st_ino))
                    with open(path, "rb") as file:
                        is_elf = starts_like_elf(file.read(4))
                except OSError:
                    continue
                if is_elf:
                    yield path


def _within(path: str, root: str | None) -> str:
    """Give a path as seen from the root."""
    whole = os.path.abspath(path)
    if root is None:
        return whole
    base = os.path.realpath(root)
    whole = os.path.realpath(whole)
    if not whole.startswith(base.rstrip("/") + "/"):
        raise UsageError(f"{path} is not below {root}")
    return whole[len(base.rstrip("/")) :]
