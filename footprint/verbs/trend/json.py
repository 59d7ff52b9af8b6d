"""The JSON of `trend`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode, like
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import NOT_EMPTY, Pattern, Signed
from footprint.model.figures import FigureUnit
from footprint.release.history import History, Release, Trend, TrendStep

__all__ = ("HistoryTarget", "ReleaseRow", "TrendJson", "release_row", "trend_members")


class HistoryTarget(NamedTuple):
    """The history file.

    Attributes:
        history: The file.
    """

    history: str


class ReleaseRow(NamedTuple):
    """One release that was recorded.

    Attributes:
        program: The program.
        version: The name of the release: a version, or a commit.
        is_commit: Whether it is a commit.
        time: The time when it was made or audited (UTC); releases are in this order.
        source: What was read: `prediction`, `smaps`, ...
        tool_version: The version of footprint that audited or recorded it.
    """

    program: Annotated[str, NOT_EMPTY]
    version: Annotated[str, NOT_EMPTY]
    is_commit: bool
    time: Annotated[str, Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    source: str
    tool_version: str


class TrendRow(NamedTuple):
    """The values of one figure of a program.

    Attributes:
        program: The program.
        figure: The figure.
        owner: The owner that was asked for; null for the whole.
        unit: What the values count.
        values: One value for each release of the program, in the order of `releases`; null where it is not known.
        first: The first value that is known.
        last: The last value that is known.
        change: The last value less the first.
        largest_step: The largest change from one release to the next; null where nothing changed.
    """

    program: Annotated[str, NOT_EMPTY]
    figure: Annotated[str, Pattern("^[a-z_]+_(bytes|count)$")]
    owner: str | None
    unit: FigureUnit
    values: Annotated[tuple[int | None, ...], NOT_EMPTY]
    first: int
    last: int
    change: Signed
    largest_step: TrendStep | None


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
    releases: tuple[ReleaseRow, ...]
    trends: tuple[TrendRow, ...]
    notes: tuple[Note, ...]


def trend_members(found: History, version: str) -> Json:
    """Return the members of the answer."""
    members: Json = encode(
        TrendJson(
            tool=Tool("footprint", version),
            host={},
            target=HistoryTarget(found.file),
            releases=tuple([release_row(one) for of_one in found.releases.values() for one in of_one]),
            trends=tuple([_trend(one) for one in found.trends]),
            notes=found.notes,
        )
    )
    return members


def release_row(one: Release) -> ReleaseRow:
    """Return the row of a release."""
    return like(ReleaseRow, one, time=datetime.fromtimestamp(one.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _trend(one: Trend) -> TrendRow:
    return like(TrendRow, one, unit=FigureUnit.THINGS if one.is_count else FigureUnit.BYTES)
