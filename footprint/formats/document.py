"""What a report says, before anyone decides how it looks: headings, figures, tables, paragraphs."""

from enum import Enum
from typing import NamedTuple

__all__ = ("About", "Block", "Document", "Facts", "Fold", "Graph", "Heading", "Paragraph", "Point", "Table", "Verdict")


class About(NamedTuple):
    """What a format tells beside the answer itself.

    Attributes:
        name: What was asked, such as `audit ./server`.
        version: That of footprint.
        folder: Paths below it are written as they are called from there.
        table: Which of the tables, for formats that hold one.
    """

    name: str
    version: str
    folder: str = ""
    table: str = ""


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
    NAMES = (
        "its parts, two spaces apart, get lines of their own, and so does what a long one says behind a colon; "
        "of a name that is longer still its end is shown"
    )
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


class Point(NamedTuple):
    """The memory at one moment.

    Attributes:
        time: When.
        size_bytes: How much there was from then on.
        mark: `#` at the peak, `@` where more is known of it, else a space.
    """

    time: float
    size_bytes: int
    mark: str = " "


class Graph(NamedTuple):
    """Memory over time.

    Attributes:
        points: In the order of time, at least one.
        time_unit: The unit of time: `i` (instructions), `ms`, `s`, `B` (bytes allocated), or another.
        legend: What the marks mean.
    """

    points: tuple[Point, ...]
    time_unit: str
    legend: str


Block = Heading | Paragraph | Verdict | Facts | Table | Graph
Document = tuple[Block, ...]
