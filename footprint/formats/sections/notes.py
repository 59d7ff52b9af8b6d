"""The section on notes, at the end of a report."""

from collections.abc import Sequence
from typing import Final

from footprint.errors import Note
from footprint.formats.document import Block, Heading, Paragraph

__all__ = ("NOTES", "note_blocks")

NOTES: Final = "Notes"


def note_blocks(notes: Sequence[Note], target: str = "") -> list[Block]:
    """List the notes; a note on the whole target does not repeat its name."""
    if not notes:
        return []
    about = {"", target, f"pid {target}"}
    lines = [
        f"{note.slug}: {note.detail}" if note.subject in about else f"{note.slug}: {note.subject}: {note.detail}"
        for note in notes
    ]
    return [Heading(NOTES), *(Paragraph(line) for line in lines)]
