"""What `footprint run` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.output import ViewOptions
from footprint.verbs.run.result import RunResult

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.stacks import Stacks

__all__ = ("RunAnswer",)


@dataclass(frozen=True)
class RunAnswer:
    """The audit of a program that was started.

    Attributes:
        found: The audit, and how far the starts differ.
        view: How the text looks.
    """

    verb: ClassVar = "run"
    table: ClassVar = "ledger"
    found: RunResult
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"run {self.found.command[0]}"

    def document(self) -> "Document":
        from footprint.verbs.run.text import run_report

        view = self.view
        return run_report(self.found, by=view.by, top=view.top, has_whole_names=view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.run.json import run_members

        return run_members(self.found, __version__)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.audit.metrics import audit_metrics

        return audit_metrics(self.found.audit)

    def stacks(self) -> "Stacks":
        from footprint.formats.stacks import ledger_stacks

        return ledger_stacks(self.found.audit.ledger)
