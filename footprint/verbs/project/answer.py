"""What `footprint project` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.model.audit import Audit

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.figures import Family
    from footprint.formats.json import Json

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
        from footprint.verbs.audit.json import projection_members

        return projection_members(self.found, __version__)

    def figures(self) -> "list[Family]":
        from footprint.formats.figures import projection_figures

        return projection_figures(self.found.projection, self.found.target)
