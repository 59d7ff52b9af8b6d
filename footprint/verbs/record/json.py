"""`record --json`."""

from collections.abc import Iterable

from footprint.errors import Note
from footprint.formats.escape import well_formed
from footprint.formats.json import Json, envelope, note_rows
from footprint.model.figures import FIGURES
from footprint.release.history import Recording, Release
from footprint.verbs.trend.json import release_row

__all__ = ("record_members",)


def record_members(
    made: Recording, replaced: Release | None, release_count: int, notes: Iterable[Note], file: str, version: str
) -> Json:
    """Give what was recorded, and what it took the place of."""
    return envelope(version, {}, {"history": well_formed(file)}) | {
        "releases": [release_row(made.release)],
        "recorded": [
            {"figure": name, "value": amount, "unit": FIGURES[name].unit.value} for name, amount in made.figures.items()
        ],
        "replaced": None if replaced is None else release_row(replaced),
        "release_count": release_count,
        "notes": note_rows(notes),
    }
