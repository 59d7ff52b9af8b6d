"""What `footprint.duplicates` returns."""

from dataclasses import dataclass

from footprint.errors import Note
from footprint.findings.copies import SearchedFile
from footprint.findings.linked_twice import LinkedTwice
from footprint.model.finding import Finding

__all__ = ("Duplicates",)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What files hold several times.

    Attributes:
        targets: What was asked about.
        pid: The process, where one was.
        files: The copies in each file.
        linked_twice: What several of the files hold, or one several times over.
        findings: All of it with what it costs, and what to do.
        notes: What the reader must know.
    """

    targets: tuple[str, ...]
    pid: int | None
    files: tuple[SearchedFile, ...]
    linked_twice: tuple[LinkedTwice, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
