"""The JSON of `scan`."""

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.verbs.scan.call import Scanned

__all__ = ("ScanJson", "scan_members")


class DatasetTarget(NamedTuple):
    """The dataset that the scan added to.

    Attributes:
        folder: Its folder.
    """

    folder: str


class ScannedCount(NamedTuple):
    """A number of things that the scan added or found.

    Attributes:
        name: What was counted: `input_count` for inputs that were read, `known_count` for those that the dataset had,
            `process_count`, `program_count`, `file_count`, `row_count`, `unreadable_count`, `note_count`.
        count: How many there were.
    """

    name: str
    count: int  # type: ignore[assignment] # tuple.count is not missed


@dataclass(frozen=True, kw_only=True)
class ScanJson(Envelope):
    """What a scan added to a dataset.

    Attributes:
        target: The dataset.
        scanned: How much of what was added.
        notes: The first of the notes; the dataset has all of them.
    """

    verb: Literal["scan"] = "scan"
    target: DatasetTarget
    scanned: tuple[ScannedCount, ...]
    notes: tuple[Note, ...]


def scan_members(found: Scanned, version: str) -> Json:
    """Return the members of the answer."""
    names = [one.name for one in fields(found) if one.name.endswith("_count")]
    return encode(
        ScanJson(
            tool=Tool("footprint", version),
            host={},
            target=DatasetTarget(found.folder),
            scanned=tuple([ScannedCount(name, getattr(found, name)) for name in names]),
            notes=found.notes,
        )
    )
