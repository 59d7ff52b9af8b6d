"""The source lines that declare the variables that grew, by the debug information of the files of the audit now."""

import os
from collections.abc import Iterable

from footprint.dwarf import VariablePlace
from footprint.dwarf.declared_variables import declaration_of
from footprint.elf import read_image
from footprint.elf.statics import read_statics
from footprint.errors import FootprintError
from footprint.files import open_input
from footprint.model.finding import SourceLocation
from footprint.release.compare import Comparison, RowChange
from footprint.release.renames import opener_of
from footprint.sources.debug_files import DebugFiles, DebugSearch, absolute_paths
from footprint.sources.debug_information import DebugInformation

__all__ = ("with_locations",)


def with_locations(found: Comparison, root: str | None, debug: DebugSearch | None) -> Comparison:
    """Add to the variables that grew where they are declared.

    A file of a saved audit may be another one by now: a variable counts only if it still has the name and size.

    Args:
        found: The comparison.
        root: The folder that the files of the audit take for `/`.
        debug: Where to look for debug files.
    """
    by_owner: dict[str, list[RowChange]] = {}
    for one in found.grown_variables:
        by_owner.setdefault(one.owner, []).append(one)
    if not by_owner:
        return found
    files, path_of = DebugFiles(debug), opener_of(found.new, root) or _own_path
    locations = {
        (owner, symbol): at
        for owner, grown in by_owner.items()
        for symbol, at in _locations(path_of(owner), grown, files)
    }
    return found._replace(
        changes=tuple(
            [
                one._replace(location=at) if (at := locations.get((one.owner, one.symbol or ""))) is not None else one
                for one in found.changes
            ]
        )
    )


def _own_path(path: str) -> str:
    return path


def _locations(path: str, grown: Iterable[RowChange], files: DebugFiles) -> Iterable[tuple[str, SourceLocation]]:
    """Find where the variables of one file are declared; nothing of a file that cannot be read."""
    if not os.path.isfile(path):
        return
    try:
        image, paths = read_image(open_input(path), path), absolute_paths(path)
        statics, _, _ = files.read(image, read_statics, *paths)
        information = DebugInformation(files, statics.image, statics.debug, *paths)
    except FootprintError:
        return
    sizes = {one.symbol: one.new_mapped_bytes for one in grown}
    wanted = {
        VariablePlace(one.vaddr, one.is_tls): one.name
        for one in statics.statics
        if sizes.get(one.name) == one.size_bytes and one.section_index in information.within
    }
    for place, declared in information.declarations(wanted).items():
        symbol = wanted.get(place)
        said = None if symbol is None else declaration_of(symbol, declared)
        if symbol is not None and said is not None and said.defined_in is not None:
            yield symbol, SourceLocation(said.defined_in, said.defined_at_line)
