"""`explain --json`."""

from collections.abc import Iterable

from footprint.formats.json import Json, envelope
from footprint.formats.words import Explanation

__all__ = ("explain_members",)


def explain_members(found: Iterable[Explanation], version: str) -> Json:
    """Return the meanings of words."""
    rows = [one._asdict() for one in found]
    return envelope(version, {}, {"name": "words"}) | {"words": rows, "notes": []}
