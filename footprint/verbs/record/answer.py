"""What `footprint record` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.verbs.record.call import Recorded

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("RecordAnswer",)


@dataclass(frozen=True)
class RecordAnswer:
    """What was recorded.

    Attributes:
        found: The recording.
        name: What was asked.
        history: The file of the history.
    """

    verb: ClassVar = "record"
    table: ClassVar = "recorded"
    found: Recorded
    name: str
    history: str

    def document(self) -> "Document":
        from footprint.verbs.trend.text import record_report

        made = self.found
        return record_report(made.recording.release, made.replaced, made.release_count, self.history, made.notes)

    def members(self) -> "Json":
        from footprint.verbs.record.json import record_members

        made = self.found
        return record_members(made.recording, made.replaced, made.release_count, made.notes, self.history, __version__)
