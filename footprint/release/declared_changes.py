"""The source lines that declare the variables that grew, by the debug information of the files of the audit now."""

import os
from collections.abc import Iterable, Mapping

from footprint.dwarf import Declaration, VariablePlace
from footprint.dwarf.declared_variables import declaration_of
from footprint.elf import read_image
from footprint.elf.statics import read_statics
from footprint.elf.symbols import Symbol
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

    A file of a saved audit may be another one by now: a variable counts only if it still has the name and size. Copies
    of one name have one line if it declares them all; else each line is listed, because nothing tells which copy grew.

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
        (owner, *variable): at
        for owner, grown in by_owner.items()
        for variable, at in _locations(path_of(owner), grown, files)
    }
    return found._replace(
        changes=tuple(
            [
                _placed(one, locations.get((one.owner, one.symbol or "", one.new_mapped_bytes), ()))
                for one in found.changes
            ]
        )
    )


def _placed(change: RowChange, lines: tuple[SourceLocation, ...]) -> RowChange:
    return change._replace(location=lines[0]) if len(lines) == 1 else change._replace(possible_locations=lines)


def _own_path(path: str) -> str:
    return path


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
    names = {one.symbol for one in grown}
    copies: dict[tuple[str, int], list[Symbol]] = {}
    for one in statics.statics:
        if one.name in names and one.section_index in information.within:
            copies.setdefault((one.name, one.section_index), []).append(one)
    variables = {(name, sum(one.size_bytes for one in same)): same for (name, _), same in copies.items()}
    wanted = {
        VariablePlace(one.vaddr, one.is_tls)
        for variable in variables.keys() & {(one.symbol, one.new_mapped_bytes) for one in grown}
        for one in variables[variable]
    }
    declared = information.declarations(wanted)
    for variable, same in variables.items():
        told = {_line_of(one, declared) for one in same}
        if None not in told:
            yield variable, tuple(sorted(filter(None, told)))


def _line_of(variable: Symbol, declared: Mapping[VariablePlace, tuple[Declaration, ...]]) -> SourceLocation | None:
    found = declaration_of(variable.name, declared.get(VariablePlace(variable.vaddr, variable.is_tls), ()))
    return (
        None if found is None or found.defined_in is None else SourceLocation(found.defined_in, found.defined_at_line)
    )
