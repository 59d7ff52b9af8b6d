"""The table of findings in JSON answers."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from footprint.formats.codec import like
from footprint.members import LATER, Later, Pattern
from footprint.model.finding import Confidence, Finding, SourceLocation

__all__ = ("FailedFinding", "FindingRow", "finding_of", "finding_rows")


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
        thread_bytes: The private memory that each further thread of a process saves, in addition to `saving_bytes`.
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
    thread_bytes: Annotated[int, Later(0)]
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


def finding_rows(findings: Iterable[Finding], count: int) -> tuple[FindingRow, ...]:
    """Return the table of findings, with what `count` processes save."""
    return tuple(
        [
            like(
                FindingRow,
                one,
                saving_at_count_bytes=one.saving_bytes * count,
                saving_per="thread" if one.is_per_thread else "process",
                object=one.object_path or None,
            )
            for one in findings
        ]
    )


def finding_of(row: FindingRow) -> Finding:
    """Return the finding that a row stands for."""
    return like(Finding, row, is_per_thread=row.saving_per == "thread", object_path=row.object or "")
