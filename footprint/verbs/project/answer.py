"""What `footprint project` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.model.audit import Audit

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("ProjectAnswer",)


@dataclass(frozen=True)
class ProjectAnswer:
    """What N processes cost.

    Attributes:
        found: The audit that has the projection.
        name: What was asked.
    """

    verb: ClassVar = "project"
    table: ClassVar = "projection"
    found: Audit
    name: str

    def document(self) -> "Document":
        from footprint.verbs.audit.text import projection_report

        return projection_report(self.found)

    def members(self) -> "Json":
        from footprint.verbs.project.json import project_members

        return project_members(self.found, __version__)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.audit.metrics import projection_metrics

        return projection_metrics(self.found.projection, self.found.target)
