"""What `footprint audit` answers about several processes, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.model.group import Group
from footprint.verbs.output import ViewOptions

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily
    from footprint.formats.stacks import Stacks

__all__ = ("GroupAnswer",)


@dataclass(frozen=True)
class GroupAnswer:
    """The audit of several processes.

    Attributes:
        found: The group.
        name: What was asked.
        view: How the text looks.
    """

    verb: ClassVar = "audit of several"
    table: ClassVar = "ledger"
    found: Group
    name: str
    view: ViewOptions

    def document(self) -> "Document":
        from footprint.verbs.audit.group_text import group_report

        view = self.view
        return group_report(self.found, by=view.by, top=view.top, has_whole_names=view.has_whole_names)

    def members(self) -> "Json":
        from footprint.verbs.audit.group_json import group_members

        return group_members(self.found, __version__)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.audit.metrics import group_metrics

        return group_metrics(self.found)

    def stacks(self) -> "Stacks":
        from footprint.formats.stacks import ledger_stacks

        return ledger_stacks(self.found.ledger)
