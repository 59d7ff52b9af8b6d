"""What a check tells a reviewer: exceeded budgets, and the findings beside them."""

from footprint.findings.registry import rule_names
from footprint.formats.growth_issues import growth_issues, root_sentence
from footprint.formats.issues import Issue, Issues, Level, finding_issue, fingerprint, ordered
from footprint.formats.rules import BUDGET, RUN_FAILED
from footprint.model.audited_names import program_path
from footprint.model.finding import SourceLocation
from footprint.release.budget import RUN, BudgetResult, Checked, roots_of
from footprint.release.compare import covers
from footprint.units import counted
from footprint.verbs.check.text import (
    amount,
    contributor_name,
    contributor_size,
    contributors_label,
    place_of,
    value_and_limit,
)

__all__ = ("issues_of_check",)


def issues_of_check(checked: Checked, name: str) -> Issues:
    """Return the limits that are exceeded, those that a waiver lets pass, and the findings beside them."""
    exceeded = [_of_result(one, checked, name) for one in checked.results if one.is_exceeded]
    found = [finding_issue(one, name, checked.budgets.at_processes, fails=False) for one in checked.audit.findings]
    grown: tuple[Issue, ...] = ()
    if checked.comparison is not None:
        grown = tuple(growth_issues(checked.comparison, Level.WARNING if checked.failures else Level.NOTE))
    passed = tuple(_key(one) for one in checked.results if not one.is_exceeded)
    rules = (
        BUDGET,
        *dict.fromkeys(one.rule for one in grown),
        *(name for name in rule_names() if covers(checked.audit, name)),
    )
    failures = len(checked.failures)
    limits = counted(len(checked.results), "limit")
    summary = f"{failures} of {limits} exceeded by {name}." if failures else f"{name} keeps {limits}."
    return Issues(name, ordered([*exceeded, *grown, *found]), passed, summary, rules, program_path(checked.audit))


def _of_result(result: BudgetResult, checked: Checked, name: str) -> Issue:
    budgets = checked.budgets
    if result.key == RUN:
        message = f"The run failed: {', '.join(cause for cause, _ in result.contributors)}."
        at, own = SourceLocation(name, None), name.rsplit("/", 1)[-1]
        key = fingerprint((RUN_FAILED, own))
        return Issue(RUN_FAILED, Level.ERROR, own, message, key, 0, None, at, name, fails=True)
    excess = result.value - result.limit
    value, limit = value_and_limit(result)
    message = f"{result.key} is {value}, {amount(excess, result)} over its limit of {limit}."
    if result.grew_from is not None:
        message += f" It was {amount(result.grew_from, result)}."
    if result.contributors:
        label = contributors_label(result)
        largest = [
            f"{contributor_name(one, checked)} {contributor_size(result, size)}" for one, size in result.contributors
        ]
        message += f" {label[:1].upper()}{label[1:]}: {', '.join(map(str.rstrip, largest))}."
    for root in roots_of(result, checked):
        message += f" {root_sentence(root)}"
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
        fingerprint((BUDGET, _key(result), name.rsplit("/", 1)[-1])),
        0 if result.is_count else excess,
        None,
        SourceLocation(budgets.file, result.line),
        name,
        result.fails,
        None if waiver is None or result.fails else waiver.reason,
    )


def _key(result: BudgetResult) -> str:
    return result.key if result.grew_from is None else f"{result.key} (growth)"
