"""What `footprint heap` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from footprint import __version__
from footprint.errors import UsageError
from footprint.verbs.heap.call import HeapProfiles

if TYPE_CHECKING:
    from footprint.attribution.heap_usage import HeapUsage
    from footprint.formats.document import Document
    from footprint.formats.issues import Issues
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.stacks import Stacks

__all__ = ("HeapAnswer", "HeapComparisonAnswer", "HeapViewOptions")


class HeapViewOptions(NamedTuple):
    """How a text about heap profiles looks.

    Attributes:
        by: What amounts are added up by.
        threshold_percent: From which share on a call is in a tree.
        top: How many rows a table has; 0 for all.
        has_whole_names: Whether names and paths are shown whole.
    """

    by: str = "function"
    threshold_percent: float = 1.0
    top: int = 20
    has_whole_names: bool = False


@dataclass(frozen=True)
class HeapComparisonAnswer:
    """Several heap profiles, compared with the first.

    Attributes:
        found: The profiles.
        name: What was asked.
        view: How the text looks.
    """

    verb: ClassVar = "heap of several"
    table: ClassVar = "heap"
    found: HeapProfiles
    name: str
    view: HeapViewOptions

    @property
    def _files(self) -> "tuple[HeapUsage, ...]":
        """The profiles; one that is compared with itself is in tables once, which have it by the name of its file."""
        return tuple({one.file: one for one in self.found.files}.values())

    def document(self) -> "Document":
        from footprint.verbs.heap.text import heap_report

        found, view = self.found, self.view
        return heap_report(
            found.files,
            found.notes,
            found.findings,
            by=view.by,
            threshold_percent=view.threshold_percent,
            top=view.top,
            is_whole=view.has_whole_names,
        )

    def members(self) -> "Json":
        from footprint.verbs.heap.json import heap_members

        return heap_members(self._files, self.found.notes, __version__, by=self.view.by, findings=self.found.findings)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.heap.metrics import heap_metrics

        return heap_metrics(self._files)

    def report(self) -> str:
        from footprint.verbs.heap.html import heap_html

        return heap_html(self._files, self.found.notes, __version__, self.found.findings)


@dataclass(frozen=True)
class HeapAnswer(HeapComparisonAnswer):
    """One heap profile.

    Attributes:
        binary: The program, if it was named.
    """

    verb: ClassVar = "heap"
    binary: str = ""

    def issues(self) -> "Issues":
        from footprint.findings.registry import Fact, rules_reading
        from footprint.formats.issues import issues_of_findings
        from footprint.heap import Counted

        usage = self.found.files[0]
        if usage.profile.counted is not Counted.HEAP:
            raise UsageError(f"{usage.file} says nothing of memory in use: there is nothing to find in it")
        rules = [one.name for one in rules_reading({Fact.HEAP})]
        return issues_of_findings(self.found.findings, usage.file, binary=self.binary, rules=rules)

    def stacks(self) -> "Stacks":
        from footprint.formats.stacks import heap_stacks

        return heap_stacks(self.found.files[0])
