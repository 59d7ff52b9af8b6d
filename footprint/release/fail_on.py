"""The findings that fail an answer, as `--fail-on RULE[:CONFIDENCE]` names them."""

from collections.abc import Collection, Iterable, Sequence

from footprint.errors import UsageError
from footprint.findings.registry import rule_names
from footprint.model.finding import CONFIDENCES, Confidence, Finding
from footprint.release.budget_file import Budget, Limit, nearest_of, usually_counted

__all__ = ("check_searched", "failed_findings", "parse_fail_on", "shown_failures")

_MOST_SHOWN = 3


def parse_fail_on(texts: Iterable[str]) -> tuple[Budget, ...]:
    """Parse rules with an optional confidence, as budgets that allow no finding; the default is that of a budget.

    Raises:
        UsageError: If there is no such rule or confidence.
    """
    return tuple(map(_budget, texts))


def _budget(text: str) -> Budget:
    rule, colon, confidence = text.partition(":")
    for word, known in ((rule, rule_names()), (confidence, CONFIDENCES)):
        if word not in known and (word is rule or colon):
            raise UsageError(f"--fail-on: {word!r} is none of {', '.join(known)}{nearest_of(word, known)}")
    counted = usually_counted(rule)
    if colon:
        counted = counted._replace(least_confidence=Confidence(confidence))
    return Budget(f"--fail-on {text}", "findings", rule, Limit(0), counted)


def check_searched(conditions: Iterable[Budget], rules: Collection[str], verb: str) -> None:
    """Check that a verb searches for what is to fail.

    Raises:
        UsageError: If it does not: its answer would always pass.
    """
    for one in conditions:
        if one.name not in rules:
            raise UsageError(f"{one.key}: `{verb}` searches for {', '.join(rules)}")


def failed_findings(findings: Iterable[Finding], conditions: Collection[Budget]) -> tuple[Finding, ...]:
    """Return the findings that fail, the largest first."""
    failed = [one for one in findings if any(each.counts(one) for each in conditions)]
    return tuple(sorted(failed, key=lambda one: (-one.about_bytes, one.rule, one.subject)))


def shown_failures(failed: Sequence[Finding]) -> str:
    """Name in one line what failed."""
    names = [f"{one.subject} ({one.rule}, {one.confidence})" for one in failed[:_MOST_SHOWN]]
    more = f" and {len(failed) - _MOST_SHOWN} more" if len(failed) > _MOST_SHOWN else ""
    return f"Failed: {', '.join(names)}{more}."
