"""Many programs beside one another: what a process of each would cost, and what each could do without."""

from dataclasses import dataclass
from typing import NamedTuple

from footprint.errors import Note
from footprint.members import json_members

__all__ = ("Survey", "SurveyedProgram")


@json_members(
    "path object_count floor_bytes=startup_min_bytes ceiling_bytes=startup_max_bytes start_bytes unused_bytes unused "
    "is_complete"
)
class SurveyedProgram(NamedTuple):
    """One program.

    Attributes:
        path: The file.
        object_count: How many objects a process of it has.
        startup_min_bytes: What these have written at start.
        startup_max_bytes: What can ever be written of them.
        start_bytes: What a process has at start beside them: stack, thread block, the loader's lists.
        unused_bytes: What libraries cost that nobody uses, and that can be dropped.
        unused: Those libraries.
        is_complete: Whether all libraries were found.
    """

    path: str
    object_count: int
    startup_min_bytes: int
    startup_max_bytes: int
    start_bytes: int
    unused_bytes: int
    unused: tuple[str, ...]
    is_complete: bool


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
