"""The reports and the JSON of `footprint trend`, and of `footprint trend --add`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, rows_of
from footprint.formats.document import Block, Document, Heading, Paragraph, Table, Verdict, note_blocks
from footprint.formats.text import sparkline
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import Positive, dataclass
from footprint.model.figures import FIGURES, FigureUnit
from footprint.release.history import History, Release, Trend, TrendStep
from footprint.text.units import counted, format_bytes, format_us

if TYPE_CHECKING:  # few answers are of a release that is added
    from footprint.verbs.trend.recording import Recorded


_MOST_WIDE: Final = 40
_SHORT_COMMIT: Final = 12
# The first that is told is what a program is judged by.
_JUDGED: Final = ("per_process_bytes", "per_group_bytes", "private_bytes", "floor_bytes", "mapped_writable_bytes")


def record_document(made: "Recorded", file: str) -> Document:
    """Show what was recorded, and which release it replaced."""
    release = made.recording.release
    text = f"{release.program} {_version(release)} of {_day(release)} is recorded in {file}"
    text += (
        f", which has {counted(made.release_count, 'release')} of it now"
        if made.replaced is None
        else f", in place of what was recorded for it before, of {_day(made.replaced)}"
    )
    return (*note_blocks(made.notes, release.program), Verdict(f"{text}."))


def trend_document(history: History, *, has_blocks: bool) -> Document:
    """Show how the figures of each program went; `has_blocks` draws with block characters, else with ASCII."""
    blocks: list[Block] = [Heading(f"footprint trend: {history.file}")]
    for program, releases in history.releases.items():
        trends = [trend for trend in history.trends if trend.program == program]
        part = f", the part of {trends[0].owner}" if trends and trends[0].owner is not None else ""
        blocks.append(Heading(f"{program}{part}: {counted(len(releases), 'release')}"))
        span = f"From {_dated(releases[0])} to {_dated(releases[-1])}." if len(releases) > 1 else _dated(releases[0])
        blocks.append(Paragraph(span))
        if trends:
            rows = tuple(_row(trend, has_blocks=has_blocks) for trend in trends)
            blocks.append(Table(("first", "last", "change", "%", "trend", "figure"), rows, frozenset({4})))
        steps = tuple(_step(trend, trend.largest_step, releases) for trend in trends if trend.largest_step is not None)
        if steps:
            blocks.append(Heading(f"The largest steps of {program}"))
            blocks.append(Table(("change", "came with", "figure", "the most by"), steps, frozenset({1, 2})))
    blocks.extend(note_blocks(history.notes, history.file))
    return (*blocks, Verdict(_verdict(history)))


def _version(release: Release) -> str:
    return release.version[:_SHORT_COMMIT] if release.is_commit else release.version


def _day(release: Release) -> str:
    return release.time_text.partition("T")[0]


def _dated(release: Release) -> str:
    return f"{_version(release)} ({_day(release)})"


def _row(trend: Trend, *, has_blocks: bool) -> tuple[str, ...]:
    return (
        _amount(trend, trend.first),
        _amount(trend, trend.last),
        _signed(trend, trend.change),
        f"{trend.change / trend.first:+.1%}" if trend.first and trend.change else "",
        sparkline(trend.values, _MOST_WIDE, has_blocks=has_blocks),
        trend.figure,
    )


def _amount(trend: Trend, value: int) -> str:
    if trend.unit is FigureUnit.MICROSECONDS:
        return format_us(value)
    return format_bytes(value) if trend.unit is FigureUnit.BYTES else f"{value:,}"


def _signed(trend: Trend, value: int) -> str:
    return "-" if not value else f"{'+' if value > 0 else ''}{_amount(trend, value)}"


def _step(trend: Trend, step: TrendStep, releases: Sequence[Release]) -> tuple[str, ...]:
    share = "" if step.owner is None else f"{step.owner}  {_signed(trend, step.owner_delta)}"
    return (_signed(trend, step.delta), _version(_release(releases, step.after)), trend.figure, share)


def _verdict(history: History) -> str:
    texts = []
    for program, releases in history.releases.items():
        by_figure = {trend.figure: trend for trend in history.trends if trend.program == program}
        row = next((by_figure[name] for name in _JUDGED if name in by_figure), next(iter(by_figure.values()), None))
        if row is None:
            continue
        text = f"{program}: {_title(row)}{'' if row.owner is None else f' of {row.owner}'}"
        step = row.largest_step
        ago = f"{counted(len(releases) - 1, 'release')} ago"
        if len(releases) == 1:
            text += f" {_amount(row, row.last)}, in one release"
        elif not row.change:
            text += f" as {'before' if step is None else ago}, {_amount(row, row.last)}"
        else:
            text += f" {_signed(row, row.change)} since {ago}, {_amount(row, row.last)} now"
        if step is not None:
            text += f"; the largest step came with {_version(_release(releases, step.after))}"
            if step.owner is not None and row.owner is None:
                text += f", the most of it by {step.owner}"
        texts.append(f"{text}.")
    return " ".join(texts) or "Nothing is recorded."


def _title(trend: Trend) -> str:
    """Return what a sentence calls a figure."""
    title = FIGURES[trend.figure].title if trend.figure in FIGURES else trend.figure
    return {"per_process_bytes": "cost per process", "per_group_bytes": "cost per group"}.get(trend.figure, title)


def _release(releases: Sequence[Release], version: str) -> Release:
    return next(release for release in releases if release.version == version)


if TYPE_CHECKING:  # few answers are of a release that is added
    from footprint.verbs.trend.recording import Recorded


class HistoryTarget(NamedTuple):
    """The history file.

    Attributes:
        history: The file.
    """

    history: str


@dataclass(frozen=True, kw_only=True)
class TrendJson(Envelope):
    """The releases of programs, and how their figures changed.

    Attributes:
        target: The history file.
        releases: The releases, by program and in the order of time.
        trends: The figures.
        notes: What the reader of the figures must know.
    """

    verb: Literal["trend"] = "trend"
    target: HistoryTarget
    releases: tuple[Release, ...]
    trends: tuple[Trend, ...]
    notes: tuple[Note, ...]


def trend_members(history: History, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        TrendJson(
            tool=Tool("footprint", version),
            host={},
            target=HistoryTarget(history.file),
            releases=tuple([r for of_one in history.releases.values() for r in of_one]),
            trends=history.trends,
            notes=history.notes,
        )
    )


@answer_table
class RecordedFigure:
    """A figure of the release."""

    figure: str = column("The figure.", lambda item: item[0])
    value: int = column("Its value.", lambda item: item[1])
    unit: FigureUnit = column("What the value counts.", lambda item: FIGURES[item[0]].unit)


@dataclass(frozen=True, kw_only=True)
class RecordJson(Envelope):
    """The release that was recorded.

    Attributes:
        target: The history file.
        releases: The release.
        recorded: The figures that were kept.
        replaced: The release that it replaced; null where there was none.
        release_count: The number of releases that the program has now.
        notes: What the reader of the figures must know.
    """

    verb: Literal["trend"] = "trend"
    target: HistoryTarget
    releases: tuple[Release, ...]
    recorded: tuple[RecordedFigure, ...]
    replaced: Release | None
    release_count: Positive
    notes: tuple[Note, ...]


def record_members(made: "Recorded", file: str, version: str) -> Json:
    """Return the members of the answer about an added release."""
    recording = made.recording
    return encode(
        RecordJson(
            tool=Tool("footprint", version),
            host={},
            target=HistoryTarget(file),
            releases=(recording.release,),
            recorded=rows_of(RecordedFigure, recording.figures.items()),
            replaced=made.replaced,
            release_count=made.release_count,
            notes=made.notes,
        )
    )
