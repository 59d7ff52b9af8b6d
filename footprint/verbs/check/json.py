"""The JSON, the metrics, the HTML report and the issues of `check`: exceeded budgets, and the findings beside them."""

from typing import Literal

from footprint.elf.names import shown_name
from footprint.errors import Note
from footprint.formats.audit_rows import ProcessTotals, process_target, process_totals
from footprint.formats.group_json import GroupTotals, group_totals
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
from footprint.formats.metrics import MetricFamily, MetricSample, audit_metrics
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import ABSENT, Absent, Positive, dataclass
from footprint.model.audit import ProcessTarget, program_path
from footprint.model.figures import FigureUnit
from footprint.model.finding import SourceLocation
from footprint.release.budget import RUN, UNTOLD, BudgetResult, Checked, roots_of
from footprint.release.compare import RowChange
from footprint.release.new_libraries import NewRoot
from footprint.verbs.check.text import (
    amount,
    check_document,
    check_verdict,
    contributor_name,
    contributor_size,
    contributors_label,
    limit_sentence,
    value_and_limit,
)


@dataclass(frozen=True, kw_only=True)
class CheckJson(Envelope):
    """The budgets of a process, program or group, and whether they hold.

    Attributes:
        target: The process, program or group.
        budget_file: The budget file.
        count: The number of processes or groups that `total_at_count_bytes` is for.
        totals: The figures of the whole; the member is absent for a group.
        group: The figures of all processes of a group together; the member is absent for a single process.
        checks_failed: The number of budgets that fail.
        verdict: The result in a sentence: the limit that is exceeded by its largest part, and what makes it so.
        budgets: The limits, those that fail first, and of these the one that is exceeded by its largest part.
        roots: The libraries that are new since the baseline, with what each brought.
        grown_variables: The variables that are new or grew by 1 KiB or more since the baseline, with their lines.
        notes: What the reader of the figures must know.
    """

    verb: Literal["check"] = "check"
    target: ProcessTarget
    budget_file: str
    count: Positive
    totals: ProcessTotals | Absent = ABSENT
    group: GroupTotals | Absent = ABSENT
    checks_failed: int
    verdict: str
    budgets: tuple[BudgetResult, ...]
    roots: tuple[NewRoot, ...]
    grown_variables: tuple[RowChange, ...]
    notes: tuple[Note, ...]


def check_members(checked: Checked, version: str) -> Json:
    """Return the members of the answer."""
    audit, since = checked.audit, checked.comparison
    variables = () if since is None else since.grown_variables
    return encode(
        CheckJson(
            tool=Tool("footprint", version),
            host=audit.host,
            target=process_target(audit),
            budget_file=checked.budgets.file,
            count=checked.budgets.at_processes,
            totals=ABSENT if audit.is_group else process_totals(audit.totals),
            group=group_totals(audit) if audit.is_group else ABSENT,
            checks_failed=len(checked.failures),
            verdict=check_verdict(checked),
            budgets=checked.results,
            roots=() if since is None else since.roots,
            grown_variables=tuple([change._replace(name=shown_name(change.symbol or "")) for change in variables]),
            notes=checked.notes,
        )
    )


def check_metrics(checked: Checked) -> list[MetricFamily]:
    """Return the figures of what was checked, and the budgets beside what is measured."""
    families = []
    for what, unit, counted, scale in (
        ("budget", "bytes", FigureUnit.BYTES, 1),
        ("budget_count", "", FigureUnit.THINGS, 1),
        ("budget_time", "seconds", FigureUnit.MICROSECONDS, 1_000_000),
    ):
        results = [result for result in checked.results if result.unit is counted]
        if not results and counted is FigureUnit.MICROSECONDS:
            continue
        keys = [{"budget": r.key, "limit": "absolute" if r.grew_from is None else "growth"} for r in results]
        pairs = list(zip(keys, results, strict=True))
        values = [MetricSample(key, result.value if scale == 1 else result.value / scale) for key, result in pairs]
        limits = [MetricSample(key, result.limit if scale == 1 else result.limit / scale) for key, result in pairs]
        families.append(MetricFamily(f"{what}_used", "The measured value of what a budget limits.", values, unit))
        families.append(MetricFamily(f"{what}_limit", "The most that passes.", limits, unit))
    failed = MetricFamily(
        "budgets_exceeded", "Limits that are exceeded.", [MetricSample({}, len(checked.failures))], ""
    )
    return [*audit_metrics(checked.audit), *families, failed]


def check_html(checked: Checked, version: str, failure: str = "") -> str:
    """Write the HTML report of an audit with its budgets, as `audit_html` does."""
    from footprint.verbs.audit.html import audit_html  # noqa: PLC0415 # few answers are reports

    more = {"check": check_members(checked, version)}
    return audit_html(checked.audit, version, failure, more, check_document(checked))


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
