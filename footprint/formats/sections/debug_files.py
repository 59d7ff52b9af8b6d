"""The section on the debug files that name the variables of stripped objects."""

from collections.abc import Mapping as Dict

from footprint.formats.document import Block, Paragraph
from footprint.formats.sections.names import Names

__all__ = ("debug_file_blocks",)

_FEW = 3


def debug_file_blocks(debug_files: Dict[str, str], names: Names, *, is_whole: bool) -> list[Block]:
    """Name the debug file of each owner; only count them where there are many and `is_whole` is false."""
    if len(debug_files) > _FEW and not is_whole:
        return [Paragraph(f"The names in {len(debug_files)} stripped objects are from debug files: -v shows which.")]
    return [
        Paragraph(f"The names in {names.owner(owner)}, which is stripped, are from {path}.")
        for owner, path in debug_files.items()
    ]
