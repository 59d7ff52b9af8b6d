"""The JSON of `record`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import Positive
from footprint.model.figures import FIGURES, FigureUnit
from footprint.release.history import Recording, Release
from footprint.verbs.trend.json import HistoryTarget

__all__ = ("RecordJson", "record_members")


class RecordedFigure(NamedTuple):
    """A figure of the release.

    Attributes:
        figure: The figure.
        value: Its value.
        unit: What the value counts.
    """

    figure: str
    value: int
    unit: FigureUnit


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

    verb: Literal["record"] = "record"
    target: HistoryTarget
    releases: tuple[Release, ...]
    recorded: tuple[RecordedFigure, ...]
    replaced: Release | None
    release_count: Positive
    notes: tuple[Note, ...]


def record_members(
    made: Recording, replaced: Release | None, release_count: int, notes: Iterable[Note], file: str, version: str
) -> Json:
    """Return the members of the answer."""
    return encode(
        RecordJson(
            tool=Tool("footprint", version),
            host={},
            target=HistoryTarget(file),
            releases=(made.release,),
            recorded=tuple([RecordedFigure(name, amount, FIGURES[name].unit) for name, amount in made.figures.items()]),
            replaced=replaced,
            release_count=release_count,
            notes=tuple(notes),
        )
    )
