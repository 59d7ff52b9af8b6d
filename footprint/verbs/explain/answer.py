"""What `footprint explain` answers, in each form that it can be written in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from footprint import __version__
from footprint.formats.words import Explanation, known_words

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("ExplainAnswer",)


@dataclass(frozen=True)
class ExplainAnswer:
    """What a word means.

    Attributes:
        found: Its meanings; None for all words.
        name: What was asked.
    """

    verb: ClassVar = "explain"
    table: ClassVar = "words"
    found: tuple[Explanation, ...] | None
    name: str

    def document(self) -> "Document":
        from footprint.verbs.explain.text import explain_report, words_report

        return words_report(known_words()) if self.found is None else explain_report(self.found)

    def members(self) -> "Json":
        from footprint.verbs.explain.json import explain_members

        rows = self.found or tuple(dict.fromkeys(one for each in known_words().values() for one in each))
        return explain_members(rows, __version__)
