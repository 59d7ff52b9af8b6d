"""What `footprint audit --all` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.output import ViewOptions
from footprint.verbs.survey.result import Survey

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json
    from footprint.formats.metrics import MetricFamily

__all__ = ("SurveyAnswer",)


@dataclass(frozen=True)
class SurveyAnswer:
    """The programs of some folders.

    Attributes:
        found: The programs.
        view: How the text looks.
    """

    verb: ClassVar = "audit --all"
    table: ClassVar = "programs"
    found: Survey
    view: ViewOptions

    @property
    def name(self) -> str:
        return f"audit --all {' '.join(self.found.folders)}"

    def document(self) -> "Document":
        from footprint.verbs.survey.text import survey_report

        return survey_report(self.found, top=self.view.top)

    def members(self) -> "Json":
        from footprint.verbs.survey.json import survey_members

        return survey_members(self.found, __version__)

    def figures(self) -> "list[MetricFamily]":
        from footprint.verbs.survey.metrics import survey_metrics

        return survey_metrics(self.found)
