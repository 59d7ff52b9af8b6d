"""The JSON of `duplicates`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.elf import shown_name
from footprint.errors import Note
from footprint.findings.copies import CopiedVariable, CopyOrigin, Cost, FileCopies
from footprint.findings.linked_twice import LinkedTwice
from footprint.formats.codec import encode, like
from footprint.formats.finding_rows import FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import NOT_EMPTY, Address, Bounds, Positive
from footprint.model.finding import Confidence, SourceLocation
from footprint.verbs.duplicates.result import Duplicates

__all__ = ("DuplicatesJson", "duplicates_members")


class DuplicatesTarget(NamedTuple):
    """The files or the process that were searched.

    Attributes:
        names: The targets, as the user named them.
        pid: The process; null where files were named.
    """

    names: tuple[str, ...]
    pid: int | None


class SearchedFile(NamedTuple):
    """One file that was searched.

    Attributes:
        file: The file.
        variable_count: The number of its variables and constants.
        unit_count: The number of its source files.
        debug_file: The file that its symbols are from; null where it has them itself.
        waste_bytes: The size of all copies in it but one of each.
        initialiser_count: The number of functions that make variables at start.
        initialiser_bytes: The size of their code.
    """

    file: str
    variable_count: int
    unit_count: int
    debug_file: str | None
    waste_bytes: int
    initialiser_count: int
    initialiser_bytes: int


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


class LinkedTwiceRow(NamedTuple):
    """Data that several files hold, or one file several times.

    Attributes:
        files: The files; a single one where it holds the data several times.
        library: The library that the data belongs to; null where it is not a known one.
        units: The source files, as far as the symbol tables name them.
        symbols: The linker names of the variables, the largest first.
        size_bytes: The size of one copy of all of them.
        copy_count: The number of copies.
        waste_bytes: The size of all copies but one.
        waste_by_cost: The waste by when it costs private memory; it adds up to `waste_bytes`.
    """

    files: Annotated[tuple[str, ...], NOT_EMPTY]
    library: str | None
    units: tuple[str, ...]
    symbols: tuple[str, ...]
    size_bytes: int
    copy_count: Annotated[int, Bounds(2)]
    waste_bytes: int
    waste_by_cost: Mapping[Cost, int]


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
    linked_twice: tuple[LinkedTwiceRow, ...]
    count: Positive
    findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]


def duplicates_members(found: Duplicates, version: str, count: int) -> Json:
    """Return the members of the answer."""
    members: Json = encode(
        DuplicatesJson(
            tool=Tool("footprint", version),
            host={},
            target=DuplicatesTarget(found.targets, found.pid),
            files=tuple([_file(one) for one in found.files]),
            duplicates=tuple([_copies(one, file.file) for file in found.files for one in file.copies]),
            linked_twice=tuple([_linked_twice(one) for one in found.linked_twice]),
            count=count,
            findings=finding_rows(found.findings, count),
            notes=found.notes,
        )
    )
    return members


def _file(one: FileCopies) -> SearchedFile:
    return like(
        SearchedFile,
        one,
        waste_bytes=sum([copies.waste_bytes for copies in one.copies]),
        initialiser_count=one.initialisers.function_count,
        initialiser_bytes=one.initialisers.code_bytes,
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


def _linked_twice(one: LinkedTwice) -> LinkedTwiceRow:
    return like(LinkedTwiceRow, one, symbols=one.names, waste_by_cost=one.waste)
