"""The answer of `scan`: its JSON and its text."""

from dataclasses import fields
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.document import Block, Document, Paragraph, Verdict, note_blocks
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import dataclass
from footprint.text.units import counted
from footprint.verbs.scan.call import Scanned

_MOST_NOTES = 10


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


def scan_members(scanned: Scanned, version: str) -> Json:
    """Return the members of the answer."""
    names = [field.name for field in fields(scanned) if field.name.endswith("_count")]
    return encode(
        ScanJson(
            tool=Tool("footprint", version),
            host={},
            target=DatasetTarget(scanned.folder),
            scanned=tuple([ScannedCount(name, getattr(scanned, name)) for name in names]),
            notes=scanned.notes,
        )
    )


def scan_document(scanned: Scanned) -> Document:
    """Show what was added to the dataset; the last line has the sums."""
    notes = scanned.notes[:_MOST_NOTES]
    blocks: list[Block] = list(note_blocks(notes))
    if scanned.note_count > len(notes):
        blocks.append(
            Paragraph(f"[{scanned.note_count:,} in all: the table `notes` of the dataset has each with its host]")
        )
    added = [
        counted(count, what)
        for count, what in (
            (scanned.process_count, "process"),
            (scanned.program_count, "program"),
            (scanned.file_count, "ELF file"),
            (scanned.row_count, "row"),
        )
        if count
    ]
    verdict = f"{counted(scanned.input_count, 'input')} added to {scanned.folder}"
    if added:
        verdict += f": {', '.join(added)}"
    if scanned.known_count:
        verdict += f"; {counted(scanned.known_count, 'input')} had not changed"
    if scanned.is_nothing_read and not scanned.input_count:
        verdict = f"Nothing could be read: the note{'s say' if scanned.note_count > 1 else ' says'} why"
    elif scanned.is_nothing_read:
        verdict = f"Nothing could be read: {counted(scanned.input_count, 'input')} left a note each in {scanned.folder}"
    elif scanned.unreadable_count:
        verdict += f"; {counted(scanned.unreadable_count, 'input')} could not be read"
    return (*blocks, Verdict(f"{verdict}."))
