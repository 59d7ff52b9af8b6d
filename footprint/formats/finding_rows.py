"""The table of findings in JSON answers."""

from collections.abc import Sequence

from footprint.members import NamedTuple, replace
from footprint.model.finding import Confidence, Finding
from footprint.model.row import Row


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
