"""Where a reviewer looks for what grew: the lines that declare variables, and those that link new libraries."""

from footprint.release.compare import Comparison
from footprint.sources.debug_search import DebugSearch


def with_places(
    comparison: Comparison, root: str | None, debug: DebugSearch | None, folder: str, linker_map: str | None
) -> Comparison:
    """Add to what grew its lines in the sources.

    Args:
        comparison: The comparison.
        root: The folder that the files of the audit take for `/`.
        debug: Where to look for debug files.
        folder: The folder of the project.
        linker_map: The map that GNU ld wrote of the program now.

    Raises:
        AccessError: If the map cannot be opened.
        UnsupportedError: If another linker wrote it.
    """
    if comparison.grown_variables:
        from footprint.release.declared_changes import with_locations  # noqa: PLC0415 # debug information

        comparison = with_locations(comparison, root, debug)
    if comparison.roots or linker_map is not None:
        from footprint.release.link_lines import with_link_lines  # noqa: PLC0415 # few changes bring libraries

        comparison = with_link_lines(comparison, folder, linker_map)
    return comparison
