"""What the JSON of each audit has, of one process and of several, and the table of findings of all answers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, get_args

from footprint.attribution.source_groups import key_of_source
from footprint.elf import names as elf_names
from footprint.json.codec import like
from footprint.members import ABSENT, Absent, NamedTuple, records, replace
from footprint.model.audit import Audit, ProcessTarget
from footprint.model.finding import Confidence, Finding
from footprint.model.row import Evidence, KindPart, MemoryKind, OfWhich, Row, Total, Totals, kind_parts, sum_rows

if TYPE_CHECKING:
    from footprint.attribution.source_groups import SourceOf


TotalName = Literal[
    "private_bytes",
    "kernel_bytes",
    "per_process_bytes",
    "shared_once_bytes",
    "shared_with_relatives_bytes",
    "mapped_writable_bytes",
    "mapped_shared_bytes",
    "mapped_bytes",
    "floor_bytes",
    "ceiling_bytes",
]
_OWNER: Final = attrgetter("owner")
_TOTAL_NAMES: Final[dict[str, TotalName]] = {name: name for name in get_args(TotalName)}


class ProcessTotals(NamedTuple):
    """The figures of a whole process; null where the input cannot tell.

    Attributes:
        evidence: How each figure that is not null is known.
        of_which: Kinds of memory in these figures that behave in their own way.
    """

    private_bytes: int | None
    kernel_bytes: int | None
    per_process_bytes: int | None
    shared_once_bytes: int | None
    shared_with_relatives_bytes: int | None
    mapped_writable_bytes: int | None
    mapped_shared_bytes: int | None
    mapped_bytes: int | None
    floor_bytes: int | None
    ceiling_bytes: int | None
    evidence: Mapping[TotalName, Evidence]
    of_which: OfWhich


class DebugFile(NamedTuple):
    """The file that has the symbols of a stripped object.

    Attributes:
        owner: The object, as the ledger has it.
        file: The file that the names of its variables are from.
    """

    owner: str
    file: str


class SourceCost(NamedTuple):
    """The memory of the variables that the source files of one group declare: one file, folder or component.

    Attributes:
        source: The group; null for memory whose source file is not known.
        owner: The object or the name in brackets that such memory belongs to; null where `source` is known.
        name: What that memory is, or why its source file is not known; null where `source` is known.
        bytes: Private bytes; null where only virtual sizes are known.
        mapped_bytes: Virtual size.
        shared_bytes: Resident bytes that are paid once per machine; null where unknown.
    """

    source: str | None
    owner: str | None
    name: str | None
    bytes: int | None
    mapped_bytes: int
    shared_bytes: int | None


def source_costs(ledger: Iterable[Row], source_of: "SourceOf | None") -> tuple[SourceCost, ...] | Absent:
    """Add up a ledger, but for memory of the kernel, by groups of source files; the most private bytes first."""
    if source_of is None:
        return ABSENT
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in ledger:
        if row.kind is not MemoryKind.KERNEL:
            groups.setdefault(key_of_source(row, source_of), []).append(row)
    costs = []
    for (owner, label), rows in groups.items():
        source, name = (None, label) if owner else (label, None)
        sums = sum_rows(rows)
        private_bytes = None if all(row.bytes is None for row in rows) else sums.private_bytes
        shared_bytes = None if all(row.shared_bytes is None for row in rows) else sums.shared_bytes
        costs.append(SourceCost(source, owner or None, name, private_bytes, sums.mapped_bytes, shared_bytes))
    return tuple(sorted(costs, key=lambda cost: (-(cost.bytes or 0), -cost.mapped_bytes, cost.source or "", str(cost))))


def parts_of(audit: Audit) -> tuple[KindPart, ...] | Absent:
    """Return what the private memory is made of, or the cost where that is known."""
    if audit.figures["private_bytes"].bytes is None:
        return ABSENT
    if audit.cost.bytes is None:
        return kind_parts([row for row in audit.ledger if row.kind is not MemoryKind.KERNEL])
    if audit.is_group:
        return kind_parts(audit.ledger, audit.group.own_shared, audit.totals.cow_shared)
    return kind_parts(audit.ledger, Total(audit.totals.of_which.own_shared_bytes, Evidence.DERIVED))


def process_target(audit: "Audit") -> ProcessTarget:
    """Return which process it was, and what was read."""
    return like(ProcessTarget, audit, name=audit.target)


def process_totals(totals: Totals) -> ProcessTotals:
    """Return the figures of a whole process, apart from how each is known."""
    named = [(_TOTAL_NAMES[name], total) for name, total in totals.figures.items()]
    figures: dict[str, int | None] = {name: total.bytes for name, total in named}
    evidence = {name: total.evidence for name, total in named if total.bytes is not None}
    return ProcessTotals(**figures, evidence=evidence, of_which=totals.of_which)


def shown_rows(ledger: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows of a ledger, with the name to show for each symbol."""
    return tuple(records(Row, zip(*shown_columns(tuple(ledger)), strict=True)))


def shown_columns(rows: Sequence[Row]) -> list[Sequence[object]]:
    """Return the columns of the same rows: replacing the name of each row takes three times as long."""
    columns: dict[str, Sequence[object]] = dict.fromkeys(Row._fields, ())
    columns |= zip(Row._fields, zip(*rows, strict=True), strict=False)
    columns["name"] = shown_names(rows)
    return list(columns.values())


def shown_names(ledger: Iterable[Row]) -> list[str | None]:
    """Return the name to show for each row."""
    rows = tuple(ledger)
    shown = iter(elf_names.shown_names([row.symbol for row in rows if row.symbol is not None]))
    return [row.name if row.symbol is None else next(shown) for row in rows]


def debug_file_rows(debug_files: Mapping[str, str]) -> tuple[DebugFile, ...]:
    """Return the table of the files that the names of stripped owners are from."""
    return tuple([DebugFile(*paths) for paths in debug_files.items()])


class FailedFinding(NamedTuple):
    """A finding that fails the answer, as `--fail-on` asks.

    Attributes:
        rule: The rule that found it.
        subject: The object, variable or function that it is about.
        confidence: How sure it is.
    """

    rule: str
    subject: str
    confidence: Confidence


def finding_rows(findings: Sequence[Finding], count: int, ledger: Sequence[Row] = ()) -> tuple[Finding, ...]:
    """Return the table of findings, with what `count` processes save.

    Args:
        findings: The findings, in the order of the table.
        count: The number of processes or groups.
        ledger: What each object holds: its findings add no more than that.
    """
    added = _added(findings, ledger)
    return tuple(
        [
            replace(finding, saving_at_count_bytes=finding.saving_bytes * count, added_bytes=added_bytes)
            for finding, added_bytes in zip(findings, added, strict=True)
        ]
    )


def _added(findings: Sequence[Finding], ledger: Sequence[Row]) -> list[int]:
    """Compute what each finding adds to the savings of all: what leaves with one library leaves once."""
    added = [0] * len(findings)
    if not findings:
        return added
    owners = {finding.object_path or finding.subject for finding in findings}
    left_by_owner: dict[str, int] = {}
    for row in compress(ledger, map(owners.__contains__, map(_OWNER, ledger))):
        if row.bytes is not None:
            left_by_owner[row.owner] = left_by_owner.get(row.owner, 0) + row.bytes
    gone: set[str] = set()
    # Libraries that take many with them come first: what is about one of these saves nothing more.
    for place in sorted(range(len(findings)), key=lambda at: (-len(findings[at].leaves), -findings[at].saving_bytes)):
        finding = findings[place]
        owner = finding.object_path or finding.subject
        if finding.confidence is Confidence.BLOCKED or owner in gone or not gone.isdisjoint(finding.leaves):
            continue
        gone.update(finding.leaves)
        added[place] = finding.saving_bytes
        if not finding.leaves and owner in left_by_owner:
            added[place] = min(finding.saving_bytes, left_by_owner[owner])
            left_by_owner[owner] -= added[place]
    return added
