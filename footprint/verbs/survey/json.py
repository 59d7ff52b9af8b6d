"""The JSON of `audit --all`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Positive
from footprint.verbs.survey.call import Survey, SurveyedProgram

__all__ = ("SurveyJson", "survey_members")


class FoldersTarget(NamedTuple):
    """The folders that were searched for programs.

    Attributes:
        folders: The folders.
    """

    folders: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SurveyJson(Envelope):
    """The programs of folders; `at_start_bytes` is `floor_bytes` and `start_bytes` together.

    Attributes:
        target: The folders.
        count: The number of processes of each program.
        programs: The programs, the costliest first.
        notes: What the reader of the figures must know.
    """

    verb: Literal["audit"] = "audit"
    target: FoldersTarget
    count: Positive
    programs: tuple[SurveyedProgram, ...]
    notes: tuple[Note, ...]


def survey_members(survey: Survey, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        SurveyJson(
            tool=Tool("footprint", version),
            host={},
            target=FoldersTarget(survey.folders),
            count=survey.count,
            programs=survey.programs,
            notes=survey.notes,
        )
    )
