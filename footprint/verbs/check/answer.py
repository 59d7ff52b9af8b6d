"""What `footprint check` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.release.budget import Checked
from footprint.verbs.audit.answer import lasting_name

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("CheckAnswer",)


@dataclass(frozen=True)
class CheckAnswer:
    """Which budgets are exceeded.

    Attributes:
        found: The budgets, and how they came out.
        target: What the user named.
        baseline: The baseline that was just written; None if none was.
    """

    verb: ClassVar = "check"
    table: ClassVar = "budgets"
    found: Checked
    target: str
    baseline: str | None = None

    @property
    def name(self) -> str:
        return f"check {lasting_name(self.found.audit, self.target)}"

    def document(self) -> "Document":
        from footprint.verbs.check.text import check_report

        return check_report(self.found, baseline=self.baseline)

    def members(self) -> "Json":
        from footprint.verbs.check.json import check_members

        return check_members(self.found, __version__)

    def issues(self) -> "Issues":
        from footprint.verbs.check.issues import issues_of_check

        return issues_of_check(self.found, lasting_name(self.found.audit, self.target))

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.check.metrics import check_metrics

        return check_metrics(self.found)

    def report(self) -> str:
        from footprint.verbs.check.html import check_html

        return check_html(self.found, __version__)
