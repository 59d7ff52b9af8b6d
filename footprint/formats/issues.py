"""Issues: findings and exceeded budgets as one list for reviewers, before a format writes them."""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from footprint.formats.escape import printable
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.release.matching import finding_key
from footprint.units import counted, format_bytes

__all__ = ("Issue", "Issues", "Level", "finding_issue", "fingerprint", "issues_of_findings", "ordered", "relative_path")


class Level(StrEnum):
    """How much an issue matters, in the words of SARIF."""

    ERROR = "error"
    """A budget is exceeded, or a finding fails the answer."""
    WARNING = "warning"
    """A sure finding with a saving."""
    NOTE = "note"
    """Any other finding."""


class Issue(NamedTuple):
    """One issue.

    Attributes:
        rule: The rule, such as `unused-library`, or `budget-exceeded`.
        level: How much it matters.
        subject: A library, a variable or a budget.
        message: The issue in sentences.
        fingerprint: Identifies the issue from build to build; unique in the list.
        saving_bytes: The saving per process; for a budget, the bytes over its limit.
        confidence: The confidence of a finding; None for a budget.
        location: The place in the sources or in the budget file; None where that is not known.
        binary: The file to build differently, or else the file that was audited; "" for none.
        fails: Whether it fails a check.
        waiver: The reason of the waiver that lets it pass; None without a waiver.
        about_bytes: The saving of a finding, or the size that it is about.
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
    about_bytes: int = 0


class Issues(NamedTuple):
    """The issues of an answer.

    Attributes:
        name: The name of what was audited.
        issues: The issues, the most important first.
        passed: The budgets that are kept, or the rules that found nothing.
        summary: The result in one sentence.
        rules: The rules that were run, also those that found nothing.
        binary: The program that was audited; "" if there are several files or none.
    """

    name: str
    issues: tuple[Issue, ...]
    passed: tuple[str, ...]
    summary: str
    rules: tuple[str, ...] = ()
    binary: str = ""

    @property
    def of_project(self) -> "Issues":
        """Return the issues without notes on system libraries, which no change of the project removes."""
        kept = tuple([one for one in self.issues if not _is_note_on_system(one, self.binary)])
        left_out = len(self.issues) - len(kept)
        summary = (
            f"{self.summary} {counted(left_out, 'note')} on system libraries left out." if left_out else self.summary
        )
        return self._replace(issues=kept, summary=summary)


_OF_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/")


def _is_note_on_system(issue: Issue, audited: str) -> bool:
    if issue.level is not Level.NOTE or issue.confidence is None:
        return False
    return audited not in {"", issue.binary} and issue.binary.startswith(_OF_SYSTEM)


def issues_of_findings(
    findings: Iterable[Finding],
    name: str,
    *,
    count: int = 1,
    binary: str = "",
    rules: Sequence[str] = (),
    others: Iterable[Issue] = (),
) -> Issues:
    """Make issues of findings.

    Args:
        findings: The findings.
        name: The name of what was audited.
        count: The number of processes for which messages name the saving.
        binary: The file of findings that name none.
        rules: The rules that were run.
        others: Issues that are no findings.
    """
    issues = ordered([*(finding_issue(one, binary, count, fails=_is_sure(one)) for one in findings), *others])
    sure = sum(one.fails for one in issues)
    told = dict.fromkeys(one.rule for one in issues)
    summary = f"{counted(len(issues), 'finding')} in {name}" + (f", {sure} of them sure" if issues else "")
    return Issues(
        name,
        issues,
        tuple(rule for rule in rules if rule not in told),
        f"{summary}.",
        tuple(dict.fromkeys([*rules, *told])),
        binary,
    )


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to a folder, if it is below that folder."""
    inside = path.removeprefix(folder.rstrip("/") + "/") if folder else path
    return inside.removeprefix("./")


def _is_sure(finding: Finding) -> bool:
    return finding.confidence.is_sure and finding.saving_bytes > 0


def finding_issue(finding: Finding, binary: str, count: int, *, fails: bool) -> Issue:
    """Make an issue of a finding.

    Args:
        finding: The finding.
        binary: The file of the finding, if it names none.
        count: The number of processes for which the message names the saving.
        fails: Whether the issue fails a check.
    """
    level = Level.WARNING if _is_sure(finding) else Level.NOTE
    saves = f"It {finding.saving_verb} {format_bytes(finding.saving_bytes)} a {finding.noun}"
    saving = saves if finding.saving_bytes else ""
    if saving and finding.member_count is not None:
        saving += f", in {counted(finding.member_count, 'process')} of it"
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
        about_bytes=finding.about_bytes,
    )


def fingerprint(parts: Iterable[str]) -> str:
    """Compute the fingerprint of an issue."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def ordered(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Sort issues by importance, and number those with the same fingerprint."""
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
