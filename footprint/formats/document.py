"""The content of a report, before a format decides on its looks: headings, figures, tables, paragraphs."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from footprint.errors import Note
from footprint.members import NamedTuple
from footprint.model.row import Evidence

_EVIDENCE: Final = tuple(Evidence)


class About(NamedTuple):
    """What a format needs to know besides the answer itself.

    Attributes:
        name: What was asked, such as `audit ./server`.
        version: The version of footprint.
        folder: Paths below this folder are written relative to it.
        table: The name of the table that a format with room for one table writes.
    """

    name: str
    version: str
    folder: str = ""
    table: str = ""


class Heading(NamedTuple):
    """The title of the blocks that follow."""

    text: str


class Paragraph(NamedTuple):
    """Running text."""

    text: str


class Verdict(NamedTuple):
    """The most important line.

    Attributes:
        text: The line.
        is_failure: Whether it says that something failed or is exceeded.
        at_count: The part of the text about the number of processes that was asked for: the HTML report says it
            itself, for any number.
    """

    text: str
    is_failure: bool = False
    at_count: str = ""


class Facts(NamedTuple):
    """Single figures: label, figure, and how it is known. An indented label is a part of the label above it.

    Attributes:
        rows: The cells.
        figure: The heading for the second column.
    """

    rows: tuple[tuple[str, str, str], ...]
    figure: str = "figure"

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings for the columns; the third column has none where all of it is empty."""
        details = {detail for _, _, detail in self.rows if detail}
        title = "how it is known" if any(detail.startswith(_EVIDENCE) for detail in details) else "detail"
        return ("what", self.figure, title) if details else ("what", self.figure)


class Fold(Enum):
    """What plain text does with a last column that is wider than running text."""

    WHOLE = "all of the text is shown, on more lines"
    NAMES = (
        "each part of the text, two spaces apart, gets its own line, and so does the text after a colon; "
        "a name that is still too long loses its beginning"
    )
    COLUMNS = "the text is columns of names that stay together: beside the figures, or else on the line below them"
    TEXT = "the text is wrapped"
    ONE_LINE = "the text loses its end, and a path its beginning"


class Table(NamedTuple):
    """Rows under column headings. The last column is text of any length; the others are figures or short words.

    Attributes:
        columns: The headings.
        rows: The cells, one for each column.
        text_columns: The columns before the last one that hold words; they are aligned left.
        footer: The sum of the rows that are left out, or the total; same columns.
        fold: What plain text does with a last column that is too wide.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: frozenset[int] = frozenset()
    footer: tuple[tuple[str, ...], ...] = ()
    fold: Fold = Fold.WHOLE


class GraphPoint(NamedTuple):
    """The memory at one moment.

    Attributes:
        time: The moment, in the unit of the graph.
        size_bytes: The memory from this moment until the next point.
        mark: `#` at the peak, `@` where the call tree is known, else a space.
    """

    time: float
    size_bytes: int
    mark: str = " "


class Graph(NamedTuple):
    """Memory over time.

    Attributes:
        points: In the order of time; at least one.
        time_unit: The unit of time: `i` (instructions), `ms`, `s`, `B` (bytes allocated), or another.
        legend: What the marks mean.
    """

    points: tuple[GraphPoint, ...]
    time_unit: str
    legend: str


Block = Heading | Paragraph | Verdict | Facts | Table | Graph
Document = tuple[Block, ...]


NOTES: Final = "Notes"


def note_blocks(notes: Sequence[Note], target: str = "") -> list[Block]:
    """List the notes; a note on the whole target does not repeat its name."""
    lines = note_lines(notes, target)
    return [Heading(NOTES), *(Paragraph(line) for line in lines)] if lines else []


def note_lines(notes: Sequence[Note], target: str = "") -> list[str]:
    """Format each note in one line; a note on the whole target does not repeat its name."""
    about = {"", target, f"pid {target}"}
    return [
        f"{note.slug}: {note.detail}" if note.subject in about else f"{note.slug}: {note.subject}: {note.detail}"
        for note in notes
    ]
