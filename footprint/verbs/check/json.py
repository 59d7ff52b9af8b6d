"""The JSON, the metrics and the HTML report of `check`."""

from typing import Literal

from footprint.elf.names import shown_name
from footprint.errors import Note
from footprint.formats.audit_rows import ProcessTotals, process_target, process_totals
from footprint.formats.group_json import GroupTotals, group_totals
from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import ABSENT, Absent, Positive, dataclass
from footprint.model.audit import ProcessTarget
from footprint.model.figures import FigureUnit
from footprint.release.budget import BudgetResult, Checked
from footprint.release.compare import RowChange
from footprint.release.new_libraries import NewRoot
from footprint.verbs.audit.metrics import audit_metrics
from footprint.verbs.check.text import check_document, check_verdict


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
