"""Answers with findings that fail them: `--fail-on`."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from footprint.errors import Note, UsageError
from footprint.formats.document import Document, Paragraph, Verdict
from footprint.verbs.options import OutputOptions
from footprint.verbs.output import Answer, write

if TYPE_CHECKING:
    from footprint.formats.issues import Issues
    from footprint.model.finding import Finding
    from footprint.release.budget_file import Budget


_MOST_SHOWN = 3


def parse_fail_on(texts: Iterable[str]) -> "tuple[Budget, ...]":
    """Parse rules with an optional confidence, as budgets that allow no finding; the default is that of a budget.

    Raises:
        UsageError: If there is no such rule or confidence.
    """
    return tuple(map(_budget, texts))


def _budget(text: str) -> "Budget":
    from footprint.findings.registry import rule_names  # noqa: PLC0415 # few answers can fail
    from footprint.model.finding import CONFIDENCES, Confidence  # noqa: PLC0415 # the same
    from footprint.release.budget_file import (  # noqa: PLC0415 # the same
        Budget,
        Limit,
        nearest_of,
        usually_counted,
    )

    rule, colon, confidence = text.partition(":")
    for word, words in ((rule, rule_names()), (confidence, CONFIDENCES)):
        if word not in words and (word is rule or colon):
            raise UsageError(f"--fail-on: {word!r} is none of {', '.join(words)}{nearest_of(word, words)}")
    counted = usually_counted(rule)
    if colon:
        counted = counted._replace(least_confidence=Confidence(confidence))
    return Budget(f"--fail-on {text}", "findings", rule, Limit(0), counted)


def check_searched(conditions: "Iterable[Budget]", rules: Collection[str], verb: str) -> None:
    """Check that a verb searches for what is to fail.

    Raises:
        UsageError: If it does not: its answer would always pass.
    """
    for condition in conditions:
        if condition.name not in rules:
            raise UsageError(f"{condition.key}: `{verb}` searches for {', '.join(rules)}")


def failed_findings(findings: "Iterable[Finding]", conditions: "Collection[Budget]") -> "tuple[Finding, ...]":
    """Return the findings that fail, the largest first."""
    failed = [finding for finding in findings if any(condition.counts(finding) for condition in conditions)]
    return tuple(sorted(failed, key=lambda finding: (-finding.about_bytes, finding.rule, finding.subject)))


def shown_failures(failed: "Sequence[Finding]") -> str:
    """Name in one line what failed."""
    names = [f"{finding.subject} ({finding.rule}, {finding.confidence})" for finding in failed[:_MOST_SHOWN]]
    more = f" and {len(failed) - _MOST_SHOWN} more" if len(failed) > _MOST_SHOWN else ""
    return f"Failed: {', '.join(names)}{more}."


_Found = TypeVar("_Found")


def conditions_of(fail_on: Sequence[str], verb: str = "", fact: str | None = None) -> "tuple[Budget, ...]":
    """Return which findings fail an answer.

    Args:
        fail_on: What the user named: a rule, or a rule and the least confidence.
        verb: The verb, for messages.
        fact: What the rules of the verb read, as `Fact` names it; None where the answer itself says what was searched.

    Raises:
        UsageError: If a rule is unknown, or not searched for by the verb.
    """
    if not fail_on:
        return ()

    conditions = parse_fail_on(fail_on)
    if fact is not None:
        from footprint.findings.registry import Fact, rules_reading  # noqa: PLC0415 # the same

        check_searched(conditions, [rule.name for rule in rules_reading({Fact(fact)})], verb)
    return conditions


def write_judged(  # those of `write`, and two more
    answer: Answer[_Found],
    content: _Found,
    findings: "Sequence[Finding]",
    conditions: "Sequence[Budget]",
    name: str,
    options: OutputOptions,
    notes: Sequence[Note],
) -> int:
    """Write an answer as `write` does, and return 1 if one of its findings fails it."""
    if not conditions:
        return write(answer, content, name, options, notes)

    failed = failed_findings(findings, conditions)
    members, issues = answer.members, answer.issues
    judged = answer._replace(
        document=lambda shown: _judged_document(answer.document(shown), failed),
        members=lambda shown, version: {
            **members(shown, version),
            "failed": [{"rule": f.rule, "subject": f.subject, "confidence": f.confidence} for f in failed],
        },
        issues=None if issues is None else lambda shown: _judged_issues(issues(shown), conditions, failed),
        failure=shown_failures(failed) if failed else "",
    )
    code = write(judged, content, name, options, notes)
    return 1 if failed else code


def _judged_document(document: Document, failed: "Sequence[Finding]") -> Document:
    """Return a report whose last line names what failed."""
    if not failed:
        return document

    blocks = [Paragraph(block.text) if isinstance(block, Verdict) else block for block in document]
    return (*blocks, Verdict(shown_failures(failed), is_failure=True))


def _judged_issues(issues: "Issues", conditions: "Sequence[Budget]", failed: "Sequence[Finding]") -> "Issues":
    """Return issues of which exactly those that fail are errors."""
    from footprint.formats.issues import Level  # noqa: PLC0415 # the same

    judged = []
    for issue in issues.issues:
        fails = any(
            c.name == issue.rule and issue.confidence is not None and c.counts_as(issue.confidence, issue.about_bytes)
            for c in conditions
        )
        judged.append(issue._replace(level=Level.ERROR if fails else issue.level, fails=fails))
    judged.sort(key=lambda issue: not issue.fails)
    return issues._replace(issues=tuple(judged), summary=shown_failures(failed) if failed else issues.summary)
