"""What a check tells a reviewer: exceeded budgets, and the findings beside them."""

from footprint.formats.issues import (
    BUDGET,
    RUN_FAILED,
    Issue,
    Issues,
    Level,
    applied_rules,
    finding_issue,
    fingerprint,
    growth_issues,
    ordered,
    root_sentence,
)
from footprint.model.audit import program_path
from footprint.model.finding import SourceLocation
from footprint.release.budget import RUN, UNTOLD, BudgetResult, Checked, roots_of
from footprint.verbs.check.text import (
    amount,
    check_verdict,
    contributor_name,
    contributor_size,
    contributors_label,
    limit_sentence,
    value_and_limit,
)


def issues_of_check(checked: Checked, name: str) -> Issues:
    """Return the limits that are exceeded, those that a waiver lets pass, and the findings beside them."""
    exceeded = [_of_result(result, checked, name) for result in checked.results if result.is_exceeded]
    issues = [finding_issue(f, name, checked.budgets.at_processes, fails=False) for f in checked.audit.findings]
    grown: tuple[Issue, ...] = ()
    if checked.comparison is not None:
        grown = tuple(growth_issues(checked.comparison, Level.WARNING if checked.failures else Level.NOTE))
    passed = tuple(_key(result) for result in checked.results if not result.is_exceeded)
    rules = (
        BUDGET,
        *dict.fromkeys(issue.rule for issue in grown),
        *applied_rules(checked.audit),
    )
    summary = f"{name}: {check_verdict(checked)}"
    return Issues(name, ordered([*exceeded, *grown, *issues]), passed, summary, rules, program_path(checked.audit))


def _of_result(result: BudgetResult, checked: Checked, name: str) -> Issue:
    budgets = checked.budgets
    if result.key == RUN:
        message = f"The run failed: {', '.join(cause for cause, _ in result.contributors)}."
        at, file = SourceLocation(name, None), name.rsplit("/", 1)[-1]
        key = fingerprint((RUN_FAILED, file))
        return Issue(RUN_FAILED, Level.ERROR, file, message, key, 0, None, at, name, fails=True, is_limit=True)
    if result.key in UNTOLD:
        message = f"{UNTOLD[result.key]}: {', '.join(why for why, _ in result.contributors)}."
        at, file = SourceLocation(name, None), name.rsplit("/", 1)[-1]
        key = fingerprint((BUDGET, result.key, file))
        return Issue(BUDGET, Level.ERROR, file, message, key, 0, None, at, name, fails=True, is_limit=True)
    excess = result.value - result.limit
    value, limit = value_and_limit(result)
    message = f"{result.key} is {value}, {amount(excess, result)} over its limit of {limit}."
    if result.grew_from is not None:
        message += f" It was {amount(result.grew_from, result)}."
    if result.contributors:
        label = contributors_label(result)
        largest = [
            f"{contributor_name(part, checked)} {contributor_size(result, size)}" for part, size in result.contributors
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
    message += f" {limit_sentence(result, budgets)}"
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
        is_limit=True,
    )


def _key(result: BudgetResult) -> str:
    return result.key if result.grew_from is None else f"{result.key} (growth)"
