"""The JSON of `duplicates`."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.elf import shown_name
from footprint.errors import Note
from footprint.findings.copies import CopiedVariable, CopyOrigin, Cost, SearchedFile
from footprint.findings.linked_twice import LinkedTwice
from footprint.formats.codec import encode, like
from footprint.formats.finding_rows import FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Address, Bounds, Positive
from footprint.model.finding import Confidence, SourceLocation
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


class CopiesRow(NamedTuple):
    """One thing that a file holds several times.

    Attributes:
        file: The file.
        symbol: The linker name, without what tells the copies apart.
        name: The name to show.
        section: The section that the copies are in.
        size_bytes: The size of each copy.
        copy_count: The number of copies.
        waste_bytes: The size of all copies but one.
        private_bytes: The private memory of all copies in the live process; null where that is not known.
        cost: When the copies cost private memory.
        origin: Why there are copies.
        confidence: How sure it is that they are copies.
        reasons: Why it is as sure as it is.
        units: The source files that the copies came from, as far as they are known.
        function: The linker name of the function whose statics they are; null where there is none.
        vaddrs: The link-time address of each copy; for a thread-local variable its offset in the block of the thread.
        location: The place of the definition in the source code; null where it is not known.
    """

    file: str
    symbol: str
    name: str
    section: str
    size_bytes: int
    copy_count: Annotated[int, Bounds(2)]
    waste_bytes: int
    private_bytes: int | None
    cost: Cost
    origin: CopyOrigin
    confidence: Confidence
    reasons: tuple[str, ...]
    units: tuple[str, ...]
    function: str | None
    vaddrs: tuple[Address, ...]
    location: SourceLocation | None


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
    """

    verb: Literal["duplicates"] = "duplicates"
    target: DuplicatesTarget
    files: tuple[SearchedFile, ...]
    duplicates: tuple[CopiesRow, ...]
    linked_twice: tuple[LinkedTwice, ...]
    count: Positive
    findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]


def duplicates_members(found: Duplicates, version: str, count: int) -> Json:
    """Return the members of the answer."""
    return encode(
        DuplicatesJson(
            tool=Tool("footprint", version),
            host={},
            target=DuplicatesTarget(found.targets, found.pid),
            files=found.files,
            duplicates=tuple([_copies(one, file.file) for file in found.files for one in file.copies]),
            linked_twice=found.linked_twice,
            count=count,
            findings=finding_rows(found.findings, count),
            notes=found.notes,
        )
    )


def _copies(one: CopiedVariable, file: str) -> CopiesRow:
    return like(
        CopiesRow,
        one,
        file=file,
        symbol=one.name,
        name=shown_name(one.name),
        copy_count=len(one.copies),
        vaddrs=tuple([copy.vaddr for copy in one.copies]),
    )
