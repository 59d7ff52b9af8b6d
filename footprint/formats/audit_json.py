"""The JSON of an audit: what `audit` prints, and what a saved audit is.

Its member `page_maps` has the pages of objects one by one, without the variables in them: their names would be as long
as the ledger. The runs of pages and the sections stand as columns, which is half as long as rows.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from footprint.errors import InputError, Note
from footprint.formats.audit_rows import (
    DebugFile,
    FailedFinding,
    ProcessTotals,
    SourceCost,
    debug_file_rows,
    finding_rows,
    parts_of,
    process_target,
    process_totals,
    shown_columns,
    shown_names,
    shown_rows,
    source_costs,
)
from footprint.json.answer import Envelope, Json, LargeTable, Tool, in_memory, write
from footprint.json.codec import Columns, encode, encode_columns, shape_of, texts_of_columns
from footprint.members import ABSENT, LATER, NOT_EMPTY, Absent, Address, Bounds, Later, NamedTuple, Pattern, dataclass
from footprint.model.audit import Audit, ProcessTarget
from footprint.model.costs import MappingCost, MemoryFileCost, ObjectCost
from footprint.model.finding import Finding, SearchedRule
from footprint.model.heap_account import AllocatorAccount, HeapAccount
from footprint.model.over_time import RunFailure
from footprint.model.page_map import PageMap, PagePart, PageState, Place
from footprint.model.projection import Projection
from footprint.model.row import KindPart, MemoryKind, Row

_RunLength = Annotated[int, Bounds(1, 1 << 64)]
PageWord = Literal["untouched", "not private", "shared", "private", "relocated", "swapped", "unknown"]
_WORDS: Final[dict[PageState, PageWord]] = dict(zip(sorted(PageState), get_args(PageWord), strict=True))
_STATES: Final = {word: state for state, word in _WORDS.items()}


class PagePartRow(NamedTuple):
    """Neighbouring pages of an object that are mapped alike.

    Attributes:
        start_addr: The address of the first page.
        kind: What the pages are for.
        permissions: Four letters, as in `/proc/PID/maps`.
        states: The states of the pages in order, one for each run of pages in the same state. `shared` pages are in
            memory, perhaps of other processes too; `relocated` pages are private because relocations write them at each
            start; whether `not private` pages are in memory was not looked at; the page bits of `unknown` pages could
            not be read.
        page_counts: The number of pages in each run; as many as `states`.
    """

    start_addr: Address
    kind: MemoryKind
    permissions: Annotated[str, Pattern("^[r-][w-][x-][ps]$")]
    states: Annotated[tuple[PageWord, ...], NOT_EMPTY]
    page_counts: Annotated[tuple[_RunLength, ...], NOT_EMPTY]


class PageSections(NamedTuple):
    """The sections of an object as columns, as far as they lie between its first page and its last.

    Attributes:
        names: The names.
        addrs: The addresses; as many as `names`.
        size_bytes: The sizes; as many as `names`.
    """

    names: tuple[str, ...]
    addrs: tuple[Address, ...]
    size_bytes: tuple[Address, ...]


class PageMapRow(NamedTuple):
    """The pages of one object.

    Attributes:
        owner: The path of the object, as the ledger has it.
        parts: The pages, in ascending order.
        sections: The sections that lie in them.
        omitted_pages: The number of pages that are left out: all maps together have at most 1,048,576.
        omitted_sections: The number of sections that are left out: all maps together have at most 100,000.
    """

    owner: str
    parts: tuple[PagePartRow, ...]
    sections: PageSections
    omitted_pages: int
    omitted_sections: int


def page_map_rows(maps: Sequence[PageMap]) -> tuple[PageMapRow, ...]:
    """Return the table of page maps, one row an object."""
    return tuple(
        [
            PageMapRow(
                page_map.owner,
                tuple([_part_row(part) for part in page_map.parts]),
                PageSections(
                    tuple([place.section for place in page_map.sections]),
                    tuple([place.addr for place in page_map.sections]),
                    tuple([place.size_bytes for place in page_map.sections]),
                ),
                page_map.omitted_pages,
                page_map.omitted_sections,
            )
            for page_map in maps
        ]
    )


def _part_row(part: PagePart) -> PagePartRow:
    words: tuple[PageWord, ...] = tuple([_WORDS[state] for state, _ in part.runs])
    return PagePartRow(part.start_addr, part.kind, part.permissions, words, tuple([count for _, count in part.runs]))


def page_maps_of(rows: Sequence[PageMapRow], file: str) -> Iterable[PageMap]:
    """Read page maps; each of their pages becomes a cell of the report, so their number has a limit.

    Raises:
        InputError: Columns differ in length, or the maps have more pages or sections than footprint writes.
    """
    if not rows:
        return
    from footprint.attribution.page_maps import MOST_PAGES, MOST_SECTIONS  # noqa: PLC0415 # few audits are drawn

    page_count = section_count = 0
    for row in rows:
        if any(len(part.states) != len(part.page_counts) for part in row.parts):
            raise InputError(file, "it is damaged: `page_maps.parts.page_counts` is not as many as `states`")
        if len(set(map(len, row.sections))) > 1:
            raise InputError(file, "it is damaged: `page_maps.sections` is of columns that differ in length")
        page_count += sum([sum(part.page_counts) for part in row.parts])
        section_count += len(row.sections.names)
        if page_count > MOST_PAGES or section_count > MOST_SECTIONS:
            limits = f"{MOST_PAGES:,} pages, or {MOST_SECTIONS:,} sections"
            raise InputError(file, f"it is damaged: `page_maps` is of more than {limits}")
        names, addrs, sizes = row.sections
        yield PageMap(
            owner=row.owner,
            parts=tuple([_part_of(part) for part in row.parts]),
            sections=tuple([Place(*place, None) for place in zip(addrs, sizes, names, strict=True)]),
            variables=None,
            omitted_pages=row.omitted_pages,
            omitted_sections=row.omitted_sections,
        )


def _part_of(row: PagePartRow) -> PagePart:
    runs = zip(map(_STATES.__getitem__, row.states), row.page_counts, strict=True)
    return PagePart(row.start_addr, row.kind, row.permissions, tuple(runs))


if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf


@dataclass(frozen=True, kw_only=True)
class AuditJson(Envelope):
    """The audit of one process or program.

    The `bytes` of all rows of `ledger` but those of kind `kernel` add up to `private_bytes`, those of kind `kernel` to
    `kernel_bytes`. `mapped_bytes` adds up to `mapped_bytes`, over the rows with `is_writable` to
    `mapped_writable_bytes`; `shared_bytes` adds up to `shared_once_bytes`.

    Attributes:
        target: The process or program.
        totals: The figures of the whole.
        ledger: The rows that add up to the totals.
        sources: The same but for kind `kernel`, by source file, folder or component; the member is absent without `--by
            file`, `dir` or `component`.
        parts: What the cost is made of, by kind of memory: the `bytes` add up to `per_process_bytes`, or where that is
            not known to `private_bytes`. The member is absent where only virtual sizes are known.
        projection: The cost of as many processes as were asked about.
        findings: What the process could do without.
        debug_files: The files that the names of stripped owners are from.
        searched_rules: The rules that were run; empty where none was, and in files of earlier versions.
        objects: The files of the process in load order, with what leaves with each; empty for a process that was
            neither searched for findings nor saved in a file.
        heap_account: What the heap is made of, by an allocator profile; null where none was joined.
        allocator: The heap as the allocator of the process accounts for it; null where it was not read.
        page_maps: The pages of objects one by one, for the report of a saved audit. The member is absent where no file
            of an object could be read, in what `run` saves, and in baselines.
        mappings: The mappings with private bytes, of each owner, the largest first: at most 1,000. What an owner has
            in others is one row for each kind of memory, so the `bytes` and the `mapped_bytes` of an owner add up to
            those of its rows in `ledger`, if no allocator profile was joined. The member is absent of a program, where
            private bytes are not known, in what `run` saves, and in baselines.
        memory_files: What the files in memory cost that it maps or holds open. Their `own_bytes` add up to
            `own_shared_bytes`. The member is absent where there is none.
        notes: What the reader of the figures must know.
        failed: The findings that fail the answer; the member is absent without `--fail-on`.
        run_failures: How the program failed that was run for this audit; the member is absent if it did not, and in
            what `run` saves, where it is in `run`.
    """

    verb: Annotated[Literal["audit"], Later("audit")] = "audit"
    target: ProcessTarget
    totals: ProcessTotals
    ledger: tuple[Row, ...]
    sources: tuple[SourceCost, ...] | Absent = ABSENT
    parts: tuple[KindPart, ...] | Absent = ABSENT
    projection: Projection
    findings: tuple[Finding, ...]
    debug_files: Annotated[tuple[DebugFile, ...], Later(())]
    searched_rules: Annotated[tuple[SearchedRule, ...], Later(())]
    objects: Annotated[tuple[ObjectCost, ...], Later(())]
    heap_account: Annotated[HeapAccount | None, LATER]
    allocator: Annotated[AllocatorAccount | None, LATER]
    page_maps: tuple[PageMapRow, ...] | Absent = ABSENT
    mappings: tuple[MappingCost, ...] | Absent = ABSENT
    memory_files: tuple[MemoryFileCost, ...] | Absent = ABSENT
    notes: tuple[Note, ...]
    failed: tuple[FailedFinding, ...] | Absent = ABSENT
    run_failures: tuple[RunFailure, ...] | Absent = ABSENT


def audit_json(audit: Audit, version: str) -> str:
    """Write an audit."""
    return write(written_members(audit, version))


def audit_members(audit: Audit, version: str) -> Json:
    """Return the members of an audit."""
    return in_memory(written_members(audit, version))


def written_members(audit: Audit, version: str, source_of: "SourceOf | None" = None) -> Json:
    """Return the members of an audit as they are written: of one process, without an object for each row."""
    if audit.is_group:
        from footprint.formats.group_json import group_answer  # noqa: PLC0415 # few audits are of groups

        return encode(group_answer(audit, version, source_of))
    members = encode(_answer(audit, version, (), source_of))
    columns = shown_columns(audit.ledger)
    members["ledger"] = LargeTable(
        lambda: [list(shape_of(Row).write(shown_rows(audit.ledger)))], lambda: [texts_of_columns(Row, columns)]
    )
    return members


def audit_columns(audit: Audit, version: str) -> Json:
    """Return the members of an audit, its tables by columns."""
    if audit.is_group:
        from footprint.formats.group_json import group_answer  # noqa: PLC0415 # few audits are of groups

        return encode_columns(group_answer(audit, version))
    encoded = encode_columns(_answer(audit, version, audit.ledger))
    if audit.ledger:
        keys, cells = encoded["ledger"]
        shown = dict(zip(keys, cells, strict=True)) | {"name": shape_of(str | None).write(shown_names(audit.ledger))}
        encoded["ledger"] = Columns(keys, tuple(shown.values()))
    return encoded


def audit_answer(audit: Audit, version: str) -> AuditJson:
    """Return the answer that the audit of one process is."""
    return _answer(audit, version, shown_rows(audit.ledger))


def _answer(audit: Audit, version: str, ledger: tuple[Row, ...], source_of: "SourceOf | None" = None) -> AuditJson:
    return AuditJson(
        tool=Tool("footprint", version),
        host=audit.host,
        target=process_target(audit),
        totals=process_totals(audit.totals),
        parts=parts_of(audit),
        ledger=ledger,
        sources=source_costs(audit.ledger, source_of),
        projection=audit.projection,
        findings=finding_rows(audit.findings, audit.projection.count, audit.ledger),
        searched_rules=audit.searched_rules,
        debug_files=debug_file_rows(audit.debug_files),
        objects=audit.objects,
        heap_account=audit.heap,
        allocator=audit.allocator,
        page_maps=page_map_rows(audit.page_maps) if audit.page_maps else ABSENT,
        mappings=audit.mappings or ABSENT,
        memory_files=audit.memory_files or ABSENT,
        notes=audit.notes,
        run_failures=audit.run_failures or ABSENT,
    )
