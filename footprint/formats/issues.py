"""What a reviewer is told of: findings and exceeded budgets as one list, before anyone decides how it is written."""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from footprint.formats.escape import printable
from footprint.formats.rules import BUDGET
from footprint.model.finding import Confidence, Finding, Location
from footprint.release.budget import Budgets, Checked, Result
from footprint.units import counted, format_bytes
from footprint.verbs.check.text import (
    contributor_name,
    contributor_size,
    contributors_label,
    place_of,
    value_and_limit,
)

__all__ = ("Issue", "Issues", "Level", "issues_of_check", "issues_of_findings", "relative_path")

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
    location: Location | None
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
    """

    name: str
    issues: tuple[Issue, ...]
    passed: tuple[str, ...]
    summary: str


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
    issues = _ordered([_of_finding(one, binary, count, fails=_is_sure(one)) for one in findings])
    sure = sum(one.fails for one in issues)
    told = {one.rule for one in issues}
    summary = f"{counted(len(issues), 'finding')} in {name}" + (f", {sure} of them sure" if issues else "")
    return Issues(name, issues, tuple(rule for rule in rules if rule not in told), f"{summary}.")


def issues_of_check(checked: Checked, name: str) -> Issues:
    """Tell of the limits that are exceeded, those that a waiver lets pass, and of what was found beside them."""
    exceeded = [_of_result(one, checked.budgets, name) for one in checked.results if one.is_exceeded]
    found = [_of_finding(one, name, checked.budgets.at_processes, fails=False) for one in checked.audit.findings]
    passed = tuple(_key(one) for one in checked.results if not one.is_exceeded)
    failures = len(checked.failures)
    limits = counted(len(checked.results), "limit")
    summary = f"{failures} of {limits} exceeded by {name}." if failures else f"{name} keeps {limits}."
    return Issues(name, _ordered([*exceeded, *found]), passed, summary)


def relative_path(path: str, folder: str) -> str:
    """Give a path as it is called from a folder, where it is below it."""
    inside = path.removeprefix(folder.rstrip("/") + "/") if folder else path
    return inside.removeprefix("./")


def _is_sure(finding: Finding) -> bool:
    return finding.confidence in _SURE and finding.saving_bytes > 0


def _of_finding(finding: Finding, binary: str, count: int, *, fails: bool) -> Issue:
    level = Level.WARNING if _is_sure(finding) else Level.NOTE
    unit = "thread" if finding.is_per_thread else "process"
    saving = f"It saves {format_bytes(finding.saving_bytes)} a {unit}" if finding.saving_bytes else ""
    if saving and count > 1:
        saving += f", {format_bytes(finding.saving_bytes * count)} in {count:,}"
    why = f"{finding.confidence.value.capitalize()}: {'; '.join(finding.reasons)}" if finding.reasons else ""
    sentences = (finding.message, saving, why, f"Remedy: {finding.remedy}")
    message = " ".join(f"{one.rstrip('.')}." for one in sentences if one)
    key = (*finding.key, binary.rsplit("/", 1)[-1])
    return Issue(
        finding.rule,
        level,
        finding.subject,
        message,
        _fingerprint(key),
        finding.saving_bytes,
        finding.confidence,
        finding.location,
        finding.object_path or binary,
        fails,
    )


def _of_result(result: Result, budgets: Budgets, name: str) -> Issue:
    def shown(amount: int) -> str:
        return f"{amount:,}" if result.is_count else format_bytes(amount)

    excess = result.value - result.limit
    value, limit = value_and_limit(result)
    message = f"{result.key} is {value}, {shown(excess)} over its limit of {limit}."
    if result.grew_from is not None:
        message += f" It was {shown(result.grew_from)}."
    if result.contributors:
        label = contributors_label(result)
        largest = [f"{contributor_name(one)} {contributor_size(result, size)}" for one, size in result.contributors]
        message += f" {label[:1].upper()}{label[1:]}: {', '.join(map(str.rstrip, largest))}."
    if result.remark:
        message += f" {result.remark[:1].upper()}{result.remark[1:]}."
    waiver = result.waiver
    if waiver is not None:
        until = "Its waiver expired on" if result.is_expired else "Waived until"
        message += f" {until} {waiver.expires}: {waiver.reason}."
    message += f" The limit stands in {place_of(result, budgets)}."
    return Issue(
        BUDGET,
        Level.ERROR if result.fails else Level.NOTE,
        _key(result),
        message,
        _fingerprint((BUDGET, _key(result), name.rsplit("/", 1)[-1])),
        0 if result.is_count else excess,
        None,
        Location(budgets.file, result.line),
        name,
        result.fails,
        None if waiver is None or result.fails else waiver.reason,
    )


def _key(result: Result) -> str:
    return result.key if result.grew_from is None else f"{result.key} (growth)"


def _fingerprint(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _ordered(issues: Iterable[Issue]) -> tuple[Issue, ...]:
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
