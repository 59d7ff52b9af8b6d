"""The JSON of `duplicates`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.findings.copies import CopiedVariable, SearchedFile
from footprint.findings.linked_twice import LinkedTwice
from footprint.formats.codec import encode
from footprint.formats.finding_rows import FailedFinding, FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import ABSENT, Absent, Positive
from footprint.verbs.duplicates.call import Duplicates

__all__ = ("DuplicatesJson", "duplicates_members")


class DuplicatesTarget(NamedTuple):
    """The files or the process that were searched.

    Attributes:
        names: The targets, as the user named them.
        pid: The process; null where files were named.
    """

    names: tuple[str, ...]
    pid: int | None


@dataclass(frozen=True, kw_only=True)
class DuplicatesJson(Envelope):
    """What files hold several times.

    Attributes:
        target: The files or the process.
        files: The files that were searched.
        duplicates: The data of which one file has several copies.
        linked_twice: The data that belongs together and exists several times.
        count: The number of processes that savings are multiplied by.
        findings: What the files could do without.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["duplicates"] = "duplicates"
    target: DuplicatesTarget
    files: tuple[SearchedFile, ...]
    duplicates: tuple[CopiedVariable, ...]
    linked_twice: tuple[LinkedTwice, ...]
    count: Positive
    findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def duplicates_members(found: Duplicates, version: str, count: int) -> Json:
    """Return the members of the answer."""
    return encode(
        DuplicatesJson(
            tool=Tool("footprint", version),
            host={},
            target=DuplicatesTarget(found.targets, found.pid),
            files=found.files,
            duplicates=tuple([one for file in found.files for one in file.copies]),
            linked_twice=found.linked_twice,
            count=count,
            findings=finding_rows(found.findings, count),
            notes=found.notes,
        )
    )
