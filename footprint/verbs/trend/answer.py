"""What `footprint trend` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.release.history import History

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("TrendAnswer",)


@dataclass(frozen=True)
class TrendAnswer:
    """How the figures of releases went.

    Attributes:
        found: The releases.
        name: What was asked.
        has_blocks: Whether the text may have small charts.
    """

    verb: ClassVar = "trend"
    table: ClassVar = "trends"
    found: History
    name: str
    has_blocks: bool

    def document(self) -> "Document":
        from footprint.verbs.trend.text import trend_report

        return trend_report(self.found, has_blocks=self.has_blocks)

    def members(self) -> "Json":
        from footprint.verbs.trend.json import trend_members

        return trend_members(self.found, __version__)
