"""What `footprint libraries` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.libraries.result import Libraries
from footprint.verbs.output import ViewOptions

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("LibrariesAnswer",)


@dataclass(frozen=True)
class LibrariesAnswer:
    """The objects of a program.

    Attributes:
        found: The objects.
        view: How the tables look.
        is_tree: Whether the text shows who brings whom in, instead of the load order.
        why: A library; the text shows the chains that lead to it instead.
    """

    verb: ClassVar = "libraries"
    table: ClassVar = "libraries"
    found: Libraries
    view: ViewOptions
    is_tree: bool = False
    why: str | None = None

    @property
    def name(self) -> str:
        return f"libraries {self.found.target}"

    def document(self) -> "Document":
        from footprint.verbs.libraries.text import chains_report, libraries_report

        if self.why is not None:
            return chains_report(self.found, self.why)
        view = self.view
        return libraries_report(self.found, top=view.top, is_tree=self.is_tree, has_whole_names=view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.libraries.json import libraries_members

        return libraries_members(self.found, __version__)

    def issues(self) -> "Issues":
        from footprint.findings.registry import Fact, rules_reading
        from footprint.formats.issues import issues_of_findings

        found = self.found
        binary = found.graph.objects[0].path
        rules = [one.name for one in rules_reading({Fact.GRAPH})]
        return issues_of_findings(found.findings, found.target, count=found.count, binary=binary, rules=rules)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.libraries.metrics import libraries_metrics

        return libraries_metrics(self.found)
