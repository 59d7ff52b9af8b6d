"""The source lines that declare the variables that grew, by the debug information of the files of the audit now."""

import os
from collections.abc import Iterable, Mapping

from footprint.dwarf.declared_variables import declaration_of
from footprint.dwarf.description import Declaration
from footprint.dwarf.places import VariablePlace
from footprint.elf.image import read_image
from footprint.elf.notes import DebugSearch
from footprint.elf.statics import read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.model.finding import SourceLocation
from footprint.release.compare import Comparison, RowChange
from footprint.release.renames import opener_of
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.sources.debug_information import DebugInformation
from footprint.system.files import open_input


def with_locations(comparison: Comparison, root: str | None, debug: DebugSearch | None) -> Comparison:
    """Add to the variables that grew where they are declared.

    A file of a saved audit may be another one by now: a variable counts only if it still has the name and size. Copies
    of one name have one line if it declares them all; else each line is listed, because nothing tells which copy grew.

    Args:
        comparison: The comparison.
        root: The folder that the files of the audit take for `/`.
        debug: Where to look for debug files.
    """
    by_owner: dict[str, list[RowChange]] = {}
    for grown_variable in comparison.grown_variables:
        by_owner.setdefault(grown_variable.owner, []).append(grown_variable)
    if not by_owner:
        return comparison
    files, path_of = DebugFiles(debug), opener_of(comparison.new, root) or str
    locations = {
        (owner, *variable): at
        for owner, grown in by_owner.items()
        for variable, at in _locations(path_of(owner), grown, files)
    }
    return comparison._replace(
        changes=tuple(
            [
                _placed(change, locations.get((change.owner, change.symbol or "", change.new_mapped_bytes), ()))
                for change in comparison.changes
            ]
        )
    )


def _placed(change: RowChange, lines: tuple[SourceLocation, ...]) -> RowChange:
    return change._replace(location=lines[0]) if len(lines) == 1 else change._replace(possible_locations=lines)


def _locations(
    path: str, grown: Iterable[RowChange], files: DebugFiles
) -> Iterable[tuple[tuple[str, int], tuple[SourceLocation, ...]]]:
    """Find where the variables of one file, by name and size, are declared; nothing of a file that cannot be read."""
    if not os.path.isfile(path):
        return
    try:
        image, paths = read_image(open_input(path), path), absolute_paths(path)
        statics, _, _ = files.read(image, read_statics, *paths)
        information = DebugInformation(files, statics.image, statics.debug, *paths)
    except FootprintError:
        return
    names = {row.symbol for row in grown}
    copies: dict[tuple[str, int], list[Symbol]] = {}
    for static in statics.statics:
        if static.name in names and static.section_index in information.within:
            copies.setdefault((static.name, static.section_index), []).append(static)
    variables = {(name, sum(static.size_bytes for static in same)): same for (name, _), same in copies.items()}
    wanted = {
        VariablePlace(static.vaddr, static.is_tls)
        for variable in variables.keys() & {(row.symbol, row.new_mapped_bytes) for row in grown}
        for static in variables[variable]
    }
    declared = information.declarations(wanted)
    for variable, same in variables.items():
        lines = {_line_of(static, declared) for static in same}
        if None not in lines:
            yield variable, tuple(sorted(filter(None, lines)))


def _line_of(variable: Symbol, declared: Mapping[VariablePlace, tuple[Declaration, ...]]) -> SourceLocation | None:
    place = declaration_of(variable.name, declared.get(VariablePlace(variable.vaddr, variable.is_tls), ()))
    return (
        None if place is None or place.defined_in is None else SourceLocation(place.defined_in, place.defined_at_line)
    )
