"""What a report says, before anyone decides how it looks: headings, figures, tables, paragraphs."""

from enum import Enum
from typing import NamedTuple

__all__ = ("Block", "Document", "Facts", "Fold", "Heading", "Paragraph", "Table", "Verdict")


class Heading(NamedTuple):
    """What the following is about."""

    text: str


class Paragraph(NamedTuple):
    """Running text."""

    text: str


class Verdict(NamedTuple):
    """The line that matters most."""

    text: str


class Facts(NamedTuple):
    """Single figures: a label, the figure, and how it is known. An indented label is a part of the one above it."""

    rows: tuple[tuple[str, str, str], ...]


class Fold(Enum):
    """What plain text does with the last column of a table where it would go past the width of running text."""

    NEVER = "it stays in one line"
    NAMES = "its parts, two spaces apart, get lines of their own; of a name that is longer still its end is shown"
    TEXT = "it is wrapped as running text is"


class Table(NamedTuple):
    """Rows under column headings. The last column is text of any length; the others are figures or short words.

    Attributes:
        columns: The headings.
        rows: Cells, as many as columns.
        text_columns: Which columns before the last are words, and so stand at the left.
        footer: What the rows leave out, or their total; same columns.
        fold: What happens to a last column that is too long for plain text.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: frozenset[int] = frozenset()
    footer: tuple[tuple[str, ...], ...] = ()
    fold: Fold = Fold.NEVER


Block = Heading | Paragraph | Verdict | Facts | Table
Document = tuple[Block, ...]
