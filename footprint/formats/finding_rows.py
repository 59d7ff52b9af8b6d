"""The table of findings in JSON answers."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from footprint.json.codec import like
from footprint.members import LATER, Later, Pattern
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.model.row import Row


class FindingRow(NamedTuple):
    """One thing that costs memory and could go.

    Attributes:
        rule: The rule that found it, such as `unused-library`.
        kind: The kind of finding, among those of the rule.
        subject: The object, variable or function that the finding is about.
        message: What was found, in one sentence.
        saving_bytes: The private memory that each process saves, of a group all members together; 0 where the remedy
            alone saves nothing.
        saving_at_count_bytes: The same for as many processes or groups as were asked about.
        added_bytes: The part of `saving_bytes` that no other finding of the table frees; 0 where the remedy is blocked.
            These parts add up to the most that all remedies save together.
        thread_bytes: The private memory that each further thread of a process saves, in addition to `saving_bytes`.
        saving_us: The processor time that each start saves, estimated, in microseconds.
        saving_per: Whether each process saves it, or each thread, of which a process has at least one.
        size_bytes: The size of a variable that may be smaller, or of its copies; null where the finding is about none.
        private_bytes: The part of the subject that is private in the live process; null where that is not known.
        confidence: How sure the finding is; `blocked` means that the remedy is not available as things are.
        reasons: Why the finding is as sure as it is.
        remedy: What to do.
        leaves: The paths of the objects that leave the process with it.
        object: The path of the object to build in another way; null where there is none, or several.
        location: The place in the source code; null where it is not known.
        member_count: The number of processes of a group that have it; null for a finding of one process.
    """

    rule: str
    kind: Annotated[str, Pattern("^[a-z]+(-[a-z]+)*$")]
    subject: str
    message: str
    saving_bytes: int
    saving_at_count_bytes: int
    added_bytes: Annotated[int, Later(0)]
    thread_bytes: Annotated[int, Later(0)]
    saving_us: Annotated[int, Later(0)]
    saving_per: Annotated[Literal["process", "thread"], Later("process")]
    size_bytes: Annotated[int | None, LATER]
    private_bytes: Annotated[int | None, LATER]
    confidence: Confidence
    reasons: tuple[str, ...]
    remedy: str
    leaves: tuple[str, ...]
    object: Annotated[str | None, LATER]
    location: SourceLocation | None
    member_count: Annotated[int | None, LATER]


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


def finding_rows(findings: Sequence[Finding], count: int, ledger: Sequence[Row] = ()) -> tuple[FindingRow, ...]:
    """Return the table of findings, with what `count` processes save.

    Args:
        findings: The findings, in the order of the table.
        count: The number of processes or groups.
        ledger: What each object holds: its findings add no more than that.
    """
    added = _added(findings, ledger)
    return tuple(
        [
            like(
                FindingRow,
                finding,
                saving_at_count_bytes=finding.saving_bytes * count,
                added_bytes=added_bytes,
                saving_per="thread" if finding.is_per_thread else "process",
                object=finding.object_path or None,
            )
            for finding, added_bytes in zip(findings, added, strict=True)
        ]
    )


def _added(findings: Sequence[Finding], ledger: Sequence[Row]) -> list[int]:
    """Compute what each finding adds to the savings of all: what leaves with one library leaves once."""
    added = [0] * len(findings)
    if not findings:
        return added
    left_by_owner: dict[str, int] = {}
    for row in ledger:
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


def finding_of(row: FindingRow) -> Finding:
    """Return the finding that a row stands for."""
    return like(Finding, row, is_per_thread=row.saving_per == "thread", object_path=row.object or "")
