"""What `footprint duplicates` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.duplicates.result import Duplicates
from footprint.verbs.output import ViewOptions

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("DuplicatesAnswer",)


@dataclass(frozen=True)
class DuplicatesAnswer:
    """What files hold several times.

    Attributes:
        found: The copies.
        count: How many processes to project to.
        view: How the tables look.
    """

    verb: ClassVar = "duplicates"
    table: ClassVar = "duplicates"
    found: Duplicates
    count: int
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"duplicates {' '.join(self.found.targets)}"

    def document(self) -> "Document":
        from footprint.verbs.duplicates.text import duplicates_report

        view = self.view
        return duplicates_report(self.found, count=self.count, top=view.top, has_linker_names=view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.duplicates.json import duplicates_members

        return duplicates_members(self.found, __version__, self.count)

    def issues(self) -> "Issues":
        from footprint.findings.registry import Fact, rules_reading
        from footprint.formats.issues import issues_of_findings

        found = self.found
        rules = [one.name for one in rules_reading({Fact.VARIABLES})]
        binary = found.files[0].file if found.files else ""
        names = " ".join(found.targets)
        return issues_of_findings(found.findings, names, count=self.count, binary=binary, rules=rules)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.duplicates.metrics import duplicates_metrics

        return duplicates_metrics(self.found)
