"""The source file of each row of a ledger, by the debug information of the files that own them."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from footprint.attribution.source_groups import SourceGroups
from footprint.elf.contents import read_contents
from footprint.elf.image import read_image
from footprint.errors import FootprintError
from footprint.model.row import OF_OBJECTS, Row, is_file
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.sources.debug_information import DebugInformation
from footprint.sources.debug_search import DebugSearch
from footprint.system.files import open_input

if TYPE_CHECKING:
    from footprint.model.audit import Audit


_Sources = dict[tuple[str | None, str | None], str]


def row_sources(
    audited: "Audit", groups: SourceGroups, debug: DebugSearch | None, root: str | None = None
) -> Callable[[Row], str | None]:
    """Return a function from rows to the groups of the source files that declare their variables.

    A file is read when the first of its rows is asked for; one that cannot be read declares nothing.
    """
    debug_files = DebugFiles(debug, root)
    pid = getattr(audited, "pid", None)
    folder = root or (f"/proc/{pid}/root" if pid else "")
    sources: dict[str, _Sources] = {}

    def source_of(row: Row) -> str | None:
        if row.symbol is None or row.kind not in OF_OBJECTS or not is_file(row.owner):
            return None
        if row.owner not in sources:
            sources[row.owner] = {}
            for path in (f"{folder}{row.owner}", row.owner):
                with suppress(FootprintError):
                    sources[row.owner] = _declared(path, debug_files)
                    break
        path_of = sources[row.owner].get((row.section, row.symbol))
        return None if path_of is None else groups.label(path_of)

    return source_of


def _declared(path: str, debug_files: DebugFiles) -> _Sources:
    """Return the source file of each variable of a file, by section and linker name."""
    image = read_image(open_input(path), path)
    paths = absolute_paths(path)
    contents, debug, _ = debug_files.read(image, read_contents, *paths)
    named, declared, _ = DebugInformation(debug_files, image, debug, *paths).sources(contents)
    sources: _Sources = {}
    for section in named.sections:
        for variable in section.variables:
            place = declared.of(section, variable)
            if place is not None and (source := place.defined_in or place.unit):
                sources[section.section.name, variable.name] = source
    return sources
