"""The JSON of `explain`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.formats.words import Explanation

__all__ = ("ExplainJson", "explain_members")


class WordsTarget(NamedTuple):
    """The vocabulary of answers.

    Attributes:
        name: Always `words`.
    """

    name: Literal["words"] = "words"


@dataclass(frozen=True, kw_only=True)
class ExplainJson(Envelope):
    """The meanings of words.

    Attributes:
        target: The vocabulary.
        words: The words.
        notes: Always empty.
    """

    verb: Literal["explain"] = "explain"
    target: WordsTarget
    words: tuple[Explanation, ...]
    notes: tuple[Note, ...]


def explain_members(found: Iterable[Explanation], version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        ExplainJson(tool=Tool("footprint", version), host={}, target=WordsTarget(), words=tuple(found), notes=())
    )
