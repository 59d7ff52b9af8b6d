"""What `footprint diff` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.release.compare import Comparison
from footprint.verbs.audit.answer import applied_rules, lasting_name, program_path
from footprint.verbs.output import ViewOptions

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("DiffAnswer",)


@dataclass(frozen=True)
class DiffAnswer:
    """What changed between two audits.

    Attributes:
        found: The comparison.
        view: How the text looks.
    """

    verb: ClassVar = "diff"
    table: ClassVar = "diff"
    found: Comparison
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"diff {lasting_name(self.found.old)} {lasting_name(self.found.new)}"

    def document(self) -> "Document":
        from footprint.verbs.diff.text import diff_report

        return diff_report(self.found, top=self.view.top, has_whole_names=self.view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.diff.json import diff_members

        return diff_members(self.found, __version__)

    def issues(self) -> "Issues":
        from footprint.formats.issues import issues_of_findings

        found = self.found
        before = applied_rules(found.old)
        rules = [one for one in applied_rules(found.new) if one in before]
        name, binary = lasting_name(found.new), program_path(found.new)
        return issues_of_findings(found.new_findings, name, count=found.count, binary=binary, rules=rules)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.diff.metrics import diff_metrics

        return diff_metrics(self.found)

    def report(self) -> str:
        from footprint.verbs.diff.html import diff_html

        return diff_html(self.found, __version__)
