"""What a reviewer is told of: findings and exceeded budgets as one list, before anyone decides how it is written."""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from footprint.formats.escape import printable
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.release.matching import finding_key
from footprint.units import counted, format_bytes

__all__ = ("Issue", "Issues", "Level", "finding_issue", "fingerprint", "issues_of_findings", "ordered", "relative_path")

_SURE = frozenset({Confidence.PROOF, Confidence.HIGH})


class Level(StrEnum):
    """How much it matters, in the words of SARIF."""

    ERROR = "error"
    """A budget is exceeded."""
    WARNING = "warning"
    """A sure finding that saves something."""
    NOTE = "note"
    """Anything else that is worth a look."""


class Issue(NamedTuple):
    """One thing to tell.

    Attributes:
        rule: The rule, such as `unused-library`, or `budget-exceeded`.
        level: How much it matters.
        subject: What it is about: a library, a variable, a budget.
        message: What was found, in sentences.
        fingerprint: What stays the same from build to build, and no other issue of the list has.
        saving_bytes: What a process is spared without it; of a budget, by how many bytes it is exceeded.
        confidence: How sure a finding is; None of budgets.
        location: Where in the sources, or in the budget file; None where that is not known.
        binary: The file that it is in: the object to build otherwise, else what was looked at; "" where it is in none.
        fails: Whether a check of it fails.
        waiver: Why it is let pass, where it is.
    """

    rule: str
    level: Level
    subject: str
    message: str
    fingerprint: str
    saving_bytes: int
    confidence: Confidence | None
    location: SourceLocation | None
    binary: str
    fails: bool
    waiver: str | None = None


class Issues(NamedTuple):
    """All that there is to tell.

    Attributes:
        name: What was looked at.
        issues: What was found: what matters most first.
        passed: What was looked at and is fine: budgets that are kept, or the rules that found nothing.
        summary: How it came out, in one sentence.
        rules: The rules that were run, also those that found nothing.
    """

    name: str
    issues: tuple[Issue, ...]
    passed: tuple[str, ...]
    summary: str
    rules: tuple[str, ...] = ()


def issues_of_findings(
    findings: Iterable[Finding], name: str, *, count: int = 1, binary: str = "", rules: Sequence[str] = ()
) -> Issues:
    """Tell of findings.

    Args:
        findings: What was found.
        name: What was looked at.
        count: How many processes to tell the saving of.
        binary: The file that they are in, where the source file is not known.
        rules: The rules that were applied: those that found nothing are passed.
    """
    issues = ordered([finding_issue(one, binary, count, fails=_is_sure(one)) for one in findings])
    sure = sum(one.fails for one in issues)
    told = {one.rule for one in issues}
    summary = f"{counted(len(issues), 'finding')} in {name}" + (f", {sure} of them sure" if issues else "")
    return Issues(name, issues, tuple(rule for rule in rules if rule not in told), f"{summary}.", tuple(rules))


def relative_path(path: str, folder: str) -> str:
    """Give a path as it is called from a folder, where it is below it."""
    inside = path.removeprefix(folder.rstrip("/") + "/") if folder else path
    return inside.removeprefix("./")


def _is_sure(finding: Finding) -> bool:
    return finding.confidence in _SURE and finding.saving_bytes > 0


def finding_issue(finding: Finding, binary: str, count: int, *, fails: bool) -> Issue:
    """Make an issue of a finding.

    Args:
        finding: The finding.
        binary: The file that it is in, where the finding names none.
        count: How many processes the message tells the saving of.
        fails: Whether a check of it fails.
    """
    level = Level.WARNING if _is_sure(finding) else Level.NOTE
    unit = "thread" if finding.is_per_thread else "process"
    saving = f"It saves {format_bytes(finding.saving_bytes)} a {unit}" if finding.saving_bytes else ""
    if saving and count > 1:
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}"
    why = f"{finding.confidence.value.capitalize()}: {'; '.join(finding.reasons)}" if finding.reasons else ""
    sentences = (finding.message, saving, why, f"Remedy: {finding.remedy}")
    message = " ".join(f"{one.rstrip('.')}." for one in sentences if one)
    key = (*finding_key(finding), binary.rsplit("/", 1)[-1])
    return Issue(
        finding.rule,
        level,
        finding.subject,
        message,
        fingerprint(key),
        finding.saving_bytes,
        finding.confidence,
        finding.location,
        finding.object_path or binary,
        fails,
    )


def fingerprint(parts: Iterable[str]) -> str:
    """Compute what identifies an issue from build to build."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def ordered(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Put what matters most first, and tell those apart that look alike."""
    levels = list(Level)
    ordered = sorted(issues, key=lambda one: (levels.index(one.level), -one.saving_bytes, one.rule, one.subject))
    seen: dict[str, int] = {}
    told = []
    for one in ordered:
        number = seen[one.fingerprint] = seen.get(one.fingerprint, 0) + 1
        told.append(
            one._replace(
                fingerprint=f"{one.fingerprint}:{number}",
                subject=printable(one.subject),
                message=printable(one.message),
            )
        )
    return tuple(told)
