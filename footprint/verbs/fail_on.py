"""Answers with findings that fail them: `--fail-on`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from footprint.errors import Note
from footprint.formats.document import Document, Paragraph, Verdict
from footprint.verbs.options import OutputOptions
from footprint.verbs.output import Answer, write

if TYPE_CHECKING:  # few answers are judged
    from footprint.formats.issues import Issues
    from footprint.model.finding import Finding
    from footprint.release.budget_file import Budget

__all__ = ("conditions_of", "write_judged")

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
    from footprint.release.fail_on import check_searched, parse_fail_on  # noqa: PLC0415 # few answers are judged

    conditions = parse_fail_on(fail_on)
    if fact is not None:
        from footprint.findings.registry import Fact, rules_reading  # noqa: PLC0415 # the same

        check_searched(conditions, [one.name for one in rules_reading({Fact(fact)})], verb)
    return conditions


def write_judged(  # those of `write`, and two more
    answer: Answer[_Found],
    found: _Found,
    findings: "Sequence[Finding]",
    conditions: "Sequence[Budget]",
    name: str,
    options: OutputOptions,
    notes: Sequence[Note],
) -> int:
    """Write an answer as `write` does, and return 1 if one of its findings fails it."""
    if not conditions:
        return write(answer, found, name, options, notes)
    from footprint.release.fail_on import failed_findings, shown_failures  # noqa: PLC0415 # few answers are judged

    failed = failed_findings(findings, conditions)
    members, issues = answer.members, answer.issues
    judged = answer._replace(
        document=lambda one: _judged_document(answer.document(one), failed),
        members=lambda one, version: {
            **members(one, version),
            "failed": [{"rule": each.rule, "subject": each.subject, "confidence": each.confidence} for each in failed],
        },
        issues=None if issues is None else lambda one: _judged_issues(issues(one), conditions, failed),
        failure=shown_failures(failed) if failed else "",
    )
    code = write(judged, found, name, options, notes)
    return 1 if failed else code


def _judged_document(document: Document, failed: "Sequence[Finding]") -> Document:
    """Return a report whose last line names what failed."""
    if not failed:
        return document
    from footprint.release.fail_on import shown_failures  # noqa: PLC0415 # the same

    blocks = [Paragraph(one.text) if isinstance(one, Verdict) else one for one in document]
    return (*blocks, Verdict(shown_failures(failed), is_failure=True))


def _judged_issues(issues: "Issues", conditions: "Sequence[Budget]", failed: "Sequence[Finding]") -> "Issues":
    """Return issues of which exactly those that fail are errors."""
    from footprint.formats.issues import Level  # noqa: PLC0415 # the same
    from footprint.release.fail_on import shown_failures  # noqa: PLC0415 # the same

    told = []
    for one in issues.issues:
        fails = any(
            each.name == one.rule and one.confidence is not None and each.counts_as(one.confidence, one.about_bytes)
            for each in conditions
        )
        told.append(one._replace(level=Level.ERROR if fails else one.level, fails=fails))
    told.sort(key=lambda one: not one.fails)
    return issues._replace(issues=tuple(told), summary=shown_failures(failed) if failed else issues.summary)
