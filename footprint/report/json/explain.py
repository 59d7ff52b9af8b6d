"""`explain --json`."""

from collections.abc import Iterable

from footprint.report.json.envelope import envelope, write
from footprint.words import Explanation

__all__ = ("explain_json",)


def explain_json(found: Iterable[Explanation], version: str) -> str:
    """Write what words mean."""
    rows = [one._asdict() for one in found]
    return write(envelope(version, {}, {"name": "words"}) | {"words": rows, "notes": []})
