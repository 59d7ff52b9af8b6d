"""The JSON of `check`."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, ProcessTotals, process_target, process_totals
from footprint.formats.codec import encode, like
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Pattern, Positive, Signed
from footprint.model.figures import FigureUnit
from footprint.release.budget import Checked, Result

__all__ = ("CheckJson", "check_members")


class Contributor(NamedTuple):
    """A part of the value of a budget.

    Attributes:
        name: The owner, variable or finding.
        size_bytes: Its bytes, or how much it grew.
    """

    name: str
    size_bytes: Signed


class WaiverRow(NamedTuple):
    """The permission to exceed a budget for a time.

    Attributes:
        reason: Why it was given.
        expires: The last day on which it holds.
        is_expired: Whether that day is over.
    """

    reason: str
    expires: Annotated[str, Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    is_expired: bool


class BudgetRow(NamedTuple):
    """One limit of the budget file.

    Attributes:
        key: Its key in the file.
        value: The value of the audit.
        limit: The largest value that passes.
        unit: What both count.
        is_exceeded: Whether the value is larger than the limit.
        fails: Whether it is exceeded and no waiver holds.
        grew_from: The value of the baseline, where the limit is one of growth; else null.
        contributors: The largest parts of the value, or of its growth; at most three.
        waiver: The waiver of the budget; null where there is none.
        remark: What else there is to know; often empty.
        line: The line of the file; null where it is not known.
    """

    key: str
    value: int
    limit: int
    unit: FigureUnit
    is_exceeded: bool
    fails: bool
    grew_from: int | None
    contributors: tuple[Contributor, ...]
    waiver: WaiverRow | None
    remark: str
    line: Positive | None


@dataclass(frozen=True, kw_only=True)
class CheckJson(Envelope):
    """The budgets of a process or program, and whether they hold.

    Attributes:
        target: The process or program.
        budget_file: The budget file.
        count: The number of processes that `total_at_count_bytes` is for.
        totals: The figures of the whole.
        checks_failed: The number of budgets that fail.
        budgets: The limits, those that fail first.
        notes: What the reader of the figures must know.
    """

    verb: Literal["check"] = "check"
    target: ProcessTarget
    budget_file: str
    count: Positive
    totals: ProcessTotals
    checks_failed: int
    budgets: tuple[BudgetRow, ...]
    notes: tuple[Note, ...]


def check_members(checked: Checked, version: str) -> Json:
    """Return the members of the answer."""
    audit = checked.audit
    return encode(
        CheckJson(
            tool=Tool("footprint", version),
            host=audit.host,
            target=process_target(audit),
            budget_file=checked.budgets.file,
            count=checked.budgets.at_processes,
            totals=process_totals(audit.totals),
            checks_failed=len(checked.failures),
            budgets=tuple([_row(one) for one in checked.results]),
            notes=audit.notes,
        )
    )


def _row(one: Result) -> BudgetRow:
    waiver = one.waiver
    return like(
        BudgetRow,
        one,
        unit=FigureUnit.THINGS if one.is_count else FigureUnit.BYTES,
        contributors=tuple([Contributor(*part) for part in one.contributors]),
        waiver=None if waiver is None else WaiverRow(waiver.reason, waiver.expires.isoformat(), one.is_expired),
    )
