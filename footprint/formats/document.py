"""The content of a report, before a format decides on its looks: headings, figures, tables, paragraphs.

At the end stands what reports of several verbs show alike: names of owners, the end of a long table, limits.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from enum import Enum
from typing import Final, TypeVar

from footprint.errors import Note
from footprint.members import NamedTuple, lazy_pattern
from footprint.model.projection import FitLimit, LimitUnit
from footprint.model.row import Evidence
from footprint.text.units import format_bytes

_EVIDENCE: Final = tuple(Evidence)
NOTES: Final = "Notes"
_T = TypeVar("_T")
_OPTION: Final = lazy_pattern(r": (?:-v|--top 0) (?=shows (?:it|them|all|which))")
_FEW = 3


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


def cache_remark(limits: Sequence[FitLimit]) -> str:
    """Describe what page cache means for how many fit: beside it, fewer may."""
    beside_count = min([limit.beside_cache_count for limit in limits])
    remark = "files that they map; the kernel drops it where memory is short"
    return remark if beside_count == limits[0].count else f"{remark}, {beside_count:,} fit beside it"


def limit_blocks(limits: Sequence[FitLimit], noun: str) -> list[Block]:
    """Show how many fit into each limit, the one that is hit first at the top.

    Args:
        limits: The limits in this order.
        noun: What fits: `processes`, `groups`.
    """
    if len(limits) < 2:
        return []

    def amount(limit: FitLimit, value: int) -> str:
        return format_bytes(value) if limit.unit is LimitUnit.BYTES else f"{value:,}"

    rows = tuple(
        (
            f"{limit.count:,}",
            amount(limit, limit.most),
            amount(limit, limit.taken) if limit.taken else "-",
            amount(limit, limit.each),
            limit.name,
        )
        for limit in limits
    )
    return [
        Heading("Limits, the one that is hit first at the top"),
        Table((noun, "limit", "taken", "each", "name"), rows),
    ]


def cut_at(rows: Sequence[_T], top: int) -> tuple[Sequence[_T], Sequence[_T]]:
    """Return the first `top` rows, or all for 0, and the rest."""
    count = top or len(rows)
    return rows[:count], rows[count:]


def more(count: int) -> str:
    """Return the label of the row that stands for those that are left out."""
    return f"[{count:,} more: --top 0 shows all]"


def without_options(text: str) -> str:
    """Name JavaScript in place of the option that shows what is left out: a report in a browser takes no options."""
    return _OPTION.sub(": with JavaScript this page ", text)


def rest_rows(count: int, column_count: int, *figures: str) -> tuple[tuple[str, ...], ...]:
    """Return the row that stands for `count` others, with their sums in its first columns; none for 0."""
    return (sum_row(more(count), column_count, *figures),) if count else ()


def sum_row(label: str, column_count: int, *figures: str) -> tuple[str, ...]:
    """Return a row with figures in its first columns and a label in the last one."""
    return (*figures, *[""] * (column_count - len(figures) - 1), label)


class Names:
    """Short names of owners and demangled names of symbols; or full paths and linker names.

    Args:
        owners: All owners of the report. A path is cut to its last part where no other owner has the same last part.
        is_whole: Whether to show full paths and linker names.
    """

    def __init__(self, owners: Iterable[str], *, is_whole: bool) -> None:
        self.is_whole = is_whole
        last_parts: dict[str, set[str]] = {}
        for owner in () if is_whole else owners:
            if owner.startswith("/"):
                last_parts.setdefault(owner.rsplit("/", 1)[-1], set()).add(owner)
        self._short = {paths.pop(): last for last, paths in last_parts.items() if last and len(paths) == 1}

    def owner(self, owner: str) -> str:
        """Return the name to show for an owner."""
        return self._short.get(owner, owner)

    def symbol(self, name: str) -> str:
        """Return the name to show for a linker name, or for a remainder in brackets."""
        if self.is_whole:
            return name
        from footprint.elf.names import shown_name  # noqa: PLC0415 # many reports name owners alone

        return shown_name(name)


def debug_file_blocks(debug_files: Dict[str, str], names: Names, *, is_whole: bool) -> list[Block]:
    """Name the debug file of each owner; only count them where there are many and `is_whole` is false."""
    if len(debug_files) > _FEW and not is_whole:
        return [Paragraph(f"The names in {len(debug_files)} stripped objects are from debug files: -v shows which.")]
    return [
        Paragraph(f"The names in {names.owner(owner)}, which is stripped, are from {path}.")
        for owner, path in debug_files.items()
    ]
