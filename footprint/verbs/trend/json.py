"""The JSON of `trend`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.release.history import History, Release, Trend

__all__ = ("HistoryTarget", "TrendJson", "trend_members")


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


def trend_members(found: History, version: str) -> Json:
    """Return the members of the answer."""
    return encode(
        TrendJson(
            tool=Tool("footprint", version),
            host={},
            target=HistoryTarget(found.file),
            releases=tuple([one for of_one in found.releases.values() for one in of_one]),
            trends=found.trends,
            notes=found.notes,
        )
    )
