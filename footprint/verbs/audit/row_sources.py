"""The source file of each row of a ledger, by the debug information of the files that own them."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from footprint.attribution.source_groups import SourceGroups
from footprint.elf import read_contents, read_image
from footprint.errors import FootprintError
from footprint.files import open_input
from footprint.model.owner import is_file
from footprint.model.row import OF_OBJECTS, Row
from footprint.sources.debug_files import DebugFiles, DebugSearch, absolute_paths
from footprint.sources.debug_information import DebugInformation

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("row_sources",)

_Sources = dict[tuple[str | None, str | None], str]


def row_sources(
    audited: "Audited", groups: SourceGroups, debug: DebugSearch | None, root: str | None = None
) -> Callable[[Row], str | None]:
    """Return a function from rows to the groups of the source files that declare their variables.

    A file is read when the first of its rows is asked for; one that cannot be read declares nothing.
    """
    debug_files = DebugFiles(debug, root)
    pid = getattr(audited, "pid", None)
    folder = root or (f"/proc/{pid}/root" if pid else "")
    known: dict[str, _Sources] = {}

    def source_of(row: Row) -> str | None:
        if row.symbol is None or row.kind not in OF_OBJECTS or not is_file(row.owner):
            return None
        if row.owner not in known:
            known[row.owner] = {}
            for path in (f"{folder}{row.owner}", row.owner):
                with suppress(FootprintError):
                    known[row.owner] = _declared(path, debug_files)
                    break
        path_of = known[row.owner].get((row.section, row.symbol))
        return None if path_of is None else groups.label(path_of)

    return source_of


def _declared(path: str, debug_files: DebugFiles) -> _Sources:
    """Return the source file of each variable of a file, by section and linker name."""
    image = read_image(open_input(path), path)
    paths = absolute_paths(path)
    contents, debug, _ = debug_files.read(image, read_contents, *paths)
    named, declared, _ = DebugInformation(debug_files, image, debug, *paths).sources(contents)
    found: _Sources = {}
    for section in named.sections:
        for variable in section.variables:
            said = declared.of(section, variable)
            if said is not None and (source := said.defined_in or said.unit):
                found[section.section.name, variable.name] = source
    return found
