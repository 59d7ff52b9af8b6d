"""The JSON of `libraries`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.attribution.object_prediction import count_pages
from footprint.attribution.startup_writes import WriteCause
from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.finding_rows import FailedFinding, FindingRow, finding_rows
from footprint.formats.json import Envelope, Json, Tool
from footprint.loader import FoundBy, Libc, MissingLibrary
from footprint.members import ABSENT, LATER, NOT_EMPTY, Absent, Positive
from footprint.model.evidence import Evidence
from footprint.verbs.libraries.call import Libraries

__all__ = ("LibrariesJson", "libraries_members")


class LibrariesTarget(NamedTuple):
    """The program or process whose objects are listed.

    Attributes:
        name: The target, as the user named it.
        pid: The process; null for a program.
        libc: The C library whose loader rules were followed.
        page_bytes: The size of a page.
        evidence: How `retained_bytes` of the objects are known.
    """

    name: str
    pid: int | None
    libc: Libc
    page_bytes: int
    evidence: Evidence


class NeededRow(NamedTuple):
    """An object that another one needs.

    Attributes:
        name: The name that it is needed by.
        number: The number of the object; null where it is missing.
        symbol_count: The number of its symbols that are used; null where it is missing.
    """

    name: str
    number: int | None
    symbol_count: int | None


class LibraryRow(NamedTuple):
    """One object of the process. `floor_bytes` to `tls_bytes` are predicted, null where the file cannot be read.

    Attributes:
        number: The number that all other members refer to; objects are in load order.
        path: The path.
        soname: The soname; null where it has none.
        found_by: The rule of the loader that found it.
        loader: The number of the object that needed it first; null for the program.
        directory_owner: The number of the object whose RPATH or RUNPATH names its directory; null for other rules.
        needed: The objects that it needs.
        users: The numbers of the objects that use its symbols.
        used_symbol_count: The number of its symbols that others use.
        private_bytes: Its measured private memory; null for a program.
        floor_bytes: The startup minimum: pages that are surely written at start.
        ceiling_bytes: The startup maximum: all pages that can ever be written.
        mapped_bytes: Its virtual size.
        mapping_count: The number of its mappings.
        tls_bytes: The size of its thread-local variables, in each thread.
        retained_bytes: What leaves the process with it: its own cost, and that of every object that only it brings in.
        retained: The numbers of the objects that leave with it, without itself.
        causes: The number of pages that each cause makes the loader write; a page may have several causes.
    """

    number: int
    path: str
    soname: str | None
    found_by: FoundBy
    loader: int | None
    directory_owner: Annotated[int | None, LATER]
    needed: tuple[NeededRow, ...]
    users: tuple[int, ...]
    used_symbol_count: int
    private_bytes: int | None
    floor_bytes: int | None
    ceiling_bytes: int | None
    mapped_bytes: int | None
    mapping_count: int | None
    tls_bytes: int | None
    retained_bytes: int
    retained: tuple[int, ...]
    causes: Mapping[WriteCause, Positive]


@dataclass(frozen=True, kw_only=True)
class LibrariesJson(Envelope):
    """The objects of a program or process: their costs and how they depend on each other.

    Attributes:
        target: The program or process.
        libraries: The objects in load order.
        missing: The files that are needed and not there.
        count: The number of processes that savings are multiplied by.
        findings: What the program could do without.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
    """

    verb: Literal["libraries"] = "libraries"
    target: LibrariesTarget
    libraries: Annotated[tuple[LibraryRow, ...], NOT_EMPTY]
    missing: tuple[MissingLibrary, ...]
    count: Positive
    findings: tuple[FindingRow, ...]
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT


def libraries_members(found: Libraries, version: str) -> Json:
    """Return the members of the answer."""
    graph = found.graph
    links = graph.link_map
    return encode(
        LibrariesJson(
            tool=Tool("footprint", version),
            host={},
            target=LibrariesTarget(found.target, found.pid, links.libc, graph.page_bytes, graph.evidence),
            libraries=tuple([_library(found, number) for number in range(len(graph.objects))]),
            missing=links.missing,
            count=found.count,
            findings=finding_rows(found.findings, found.count),
            notes=found.notes,
        )
    )


def _library(found: Libraries, number: int) -> LibraryRow:
    graph = found.graph
    linked, predicted = graph.objects[number], graph.predictions[number]
    answerers = graph.answerers(number)
    return LibraryRow(
        number=number,
        path=linked.path,
        soname=linked.library.linkage.soname,
        found_by=linked.found_by,
        loader=linked.loader,
        directory_owner=linked.directory_owner,
        needed=tuple(
            [
                NeededRow(one.name, one.place, None if one.place is None else len(answerers.get(one.place, ())))
                for one in linked.dependencies
            ]
        ),
        users=tuple(graph.bindings.users(number)),
        used_symbol_count=graph.used_count(number),
        private_bytes=None if graph.private_bytes is None else graph.private_bytes[number],
        floor_bytes=None if predicted is None else predicted.startup_min_bytes,
        ceiling_bytes=None if predicted is None else predicted.startup_max_bytes,
        mapped_bytes=None if predicted is None else predicted.mapped_bytes,
        mapping_count=None if predicted is None else predicted.mapping_count,
        tls_bytes=None if predicted is None else predicted.tls_bytes,
        retained_bytes=graph.retained_bytes[number],
        retained=tuple(sorted(graph.retained[number] - {number})),
        causes={} if predicted is None else {cause: count_pages(pages) for cause, pages in predicted.causes.items()},
    )
