"""The JSON of `trend`, and of `trend --add`."""

from typing import TYPE_CHECKING, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, rows_of
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import Positive, dataclass
from footprint.model.figures import FIGURES, FigureUnit
from footprint.release.history import History, Release, Trend

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
