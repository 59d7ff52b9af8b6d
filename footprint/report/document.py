"""What a report says, before anyone decides how it looks: headings, figures, tables, paragraphs."""

from typing import NamedTuple

__all__ = ("Block", "Document", "Facts", "Heading", "Paragraph", "Table", "Verdict")


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


class Table(NamedTuple):
    """Rows under column headings. The last column is text of any length; the others are figures or short words.

    Attributes:
        columns: The headings.
        rows: Cells, as many as columns.
        text_columns: Which columns before the last are words, and so stand at the left.
        footer: What the rows leave out, or their total; same columns.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: frozenset[int] = frozenset()
    footer: tuple[tuple[str, ...], ...] = ()


Block = Heading | Paragraph | Verdict | Facts | Table
Document = tuple[Block, ...]
