"""The JSON of `check`."""

from dataclasses import dataclass
from typing import Literal

from footprint.elf import shown_name
from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, ProcessTotals, process_target, process_totals
from footprint.formats.codec import encode
from footprint.formats.group_json import GroupTotals, group_totals
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Positive
from footprint.model.audit import Audit
from footprint.release.budget import BudgetResult, Checked
from footprint.release.compare import RowChange
from footprint.release.new_libraries import NewRoot

__all__ = ("CheckJson", "GroupCheckJson", "check_members")


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
        roots: The libraries that are new since the baseline, with what each retains.
        grown_variables: The variables that are new or grew by 1 KiB or more since the baseline, with their lines.
        notes: What the reader of the figures must know.
    """

    verb: Literal["check"] = "check"
    target: ProcessTarget
    budget_file: str
    count: Positive
    totals: ProcessTotals
    checks_failed: int
    budgets: tuple[BudgetResult, ...]
    roots: tuple[NewRoot, ...]
    grown_variables: tuple[RowChange, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class GroupCheckJson(Envelope):
    """The budgets of a group of processes, and whether they hold.

    Attributes:
        target: The group.
        budget_file: The budget file.
        count: The number of groups that `total_at_count_bytes` is for.
        group: The figures of all processes together.
        checks_failed: The number of budgets that fail.
        budgets: The limits, those that fail first.
        roots: The libraries that are new since the baseline, with what each retains.
        grown_variables: The variables that are new or grew by 1 KiB or more since the baseline, with their lines.
        notes: What the reader of the figures must know.
    """

    verb: Literal["check"] = "check"
    target: ProcessTarget
    budget_file: str
    count: Positive
    group: GroupTotals
    checks_failed: int
    budgets: tuple[BudgetResult, ...]
    roots: tuple[NewRoot, ...]
    grown_variables: tuple[RowChange, ...]
    notes: tuple[Note, ...]


def check_members(checked: Checked, version: str) -> Json:
    """Return the members of the answer."""
    audit = checked.audit
    tool, target, count = Tool("footprint", version), process_target(audit), checked.budgets.at_processes
    failed, since = len(checked.failures), checked.comparison
    roots = () if since is None else since.roots
    variables = () if since is None else since.grown_variables
    grown = tuple([one._replace(name=shown_name(one.symbol or "")) for one in variables])
    if isinstance(audit, Audit):
        return encode(
            CheckJson(
                tool=tool,
                host=audit.host,
                target=target,
                budget_file=checked.budgets.file,
                count=count,
                totals=process_totals(audit.totals),
                checks_failed=failed,
                budgets=checked.results,
                roots=roots,
                grown_variables=grown,
                notes=checked.notes,
            )
        )
    return encode(
        GroupCheckJson(
            tool=tool,
            host=audit.host,
            target=target,
            budget_file=checked.budgets.file,
            count=count,
            group=group_totals(audit),
            checks_failed=failed,
            budgets=checked.results,
            roots=roots,
            grown_variables=grown,
            notes=checked.notes,
        )
    )
