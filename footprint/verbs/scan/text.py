"""The report of `footprint scan`."""

from footprint.formats.document import Block, Document, Paragraph, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.units import counted
from footprint.verbs.scan.call import Scanned

__all__ = ("scan_document",)

_MOST_NOTES = 10


def scan_document(found: Scanned) -> Document:
    """Write what was added to the dataset; the last line has the sums."""
    blocks: list[Block] = list(note_blocks(found.notes[:_MOST_NOTES]))
    if (rest := found.note_count - _MOST_NOTES) > 0:
        blocks.append(Paragraph(f"[{rest:,} more: the table `notes` of the dataset has all]"))
    added = [
        counted(count, what)
        for count, what in (
            (found.process_count, "process"),
            (found.program_count, "program"),
            (found.file_count, "ELF file"),
            (found.row_count, "row"),
        )
        if count
    ]
    verdict = f"{counted(found.input_count, 'input')} added to {found.folder}"
    if added:
        verdict += f": {', '.join(added)}"
    if found.known_count:
        verdict += f"; {counted(found.known_count, 'input')} had not changed"
    if found.unreadable_count:
        verdict += f"; {counted(found.unreadable_count, 'input')} could not be read"
    return (*blocks, Verdict(f"{verdict}."))
