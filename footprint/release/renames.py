"""Decide from their files whether two variables of one size may be one variable with a new name."""

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from footprint.dwarf import VariablePlace
from footprint.dwarf.declared_variables import declaration_of
from footprint.elf import read_image
from footprint.elf.initial import Initial, Initials
from footprint.elf.statics import read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.files import open_input
from footprint.model.row import Row
from footprint.release.matching import LEAST_RENAMED_BYTES, comparable_name
from footprint.roots import path_inside, reach_of
from footprint.sources.debug_files import DebugFiles, DebugSearch, absolute_paths
from footprint.sources.debug_information import DebugInformation

if TYPE_CHECKING:
    from footprint.model.audited import Audited

__all__ = ("likeness_of", "opener_of")


class _Declared(NamedTuple):
    """What distinguishes declarations. Lines do not: they move."""

    type_name: str | None
    file_name: str
    function: str | None


_Said = tuple[_Declared | None, Initial | None]
"""The declaration and the contents of a variable; None for what its file does not contain."""


def likeness_of(
    old: "Audited", new: "Audited", root: str | None, debug: DebugSearch | None
) -> Callable[[Row, Row], bool] | None:
    """Return a function that decides whether two rows may be the same variable; None if no file can be read.

    They are the same if they begin with the same contents, or have the same type, source file and function. They are
    not the same if these differ. If neither is known, they may be the same.
    """
    before, now = (opener_of(one, root) for one in (old, new))
    if before is None or now is None:
        return None
    files = DebugFiles(debug)

    @cache
    def variables(path: str) -> _Variables | None:
        try:
            return _Variables(path, files)
        except FootprintError:
            return None

    def said(path: str, row: Row) -> _Said:
        found = variables(path)
        return (None, None) if found is None else found.said(row.symbol or "")

    def is_same(row: Row, other: Row) -> bool:
        declared, initial = said(before(row.owner), row)
        other_declared, other_initial = said(now(other.owner), other)
        has_contents = initial is not None and other_initial is not None
        if has_contents and initial == other_initial:
            return True
        if declared is not None and other_declared is not None:
            return declared == other_declared
        return not has_contents

    return is_same


def opener_of(audit: "Audited", root: str | None) -> Callable[[str], str] | None:
    """Return a function that finds the files of an audit; None for a saved audit, whose files may have changed."""
    if audit.saved_in is not None:
        return None
    if audit.source == "prediction":
        return lambda path: path if root is None else path_inside(root, path)
    return reach_of(audit.pid) if audit.is_live and audit.pid is not None else None


class _Variables:
    """The declarations and contents of the variables of one file.

    Raises:
        AccessError: If the file cannot be opened.
        InputError: If it is damaged.
    """

    def __init__(self, path: str, files: DebugFiles) -> None:
        image = read_image(open_input(path), path)
        paths = absolute_paths(path)
        statics, _, _ = files.read(image, read_statics, *paths)
        counts = Counter(one.name for one in statics.statics)
        self._by_name = {
            one.name: one for one in statics.statics if counts[one.name] == 1 and one.size_bytes >= LEAST_RENAMED_BYTES
        }
        self._initials = Initials(statics)
        self._initials.prepare(self._by_name.values())
        information = DebugInformation(files, statics.image, statics.debug, *paths)
        self._declarations = information.declarations(
            _place(one) for one in self._by_name.values() if one.section_index in information.within
        )

    def said(self, symbol: str) -> _Said:
        """Return what the file contains about a variable; nothing for a name that several variables have."""
        static = self._by_name.get(symbol)
        if static is None:
            return None, None
        declared, initial = None, self._initials.of(static)
        found = declaration_of(static.name, self._declarations.get(_place(static), ()))
        if found is not None and found.defined_in is not None:
            function = None if found.function is None else comparable_name(found.function)
            declared = _Declared(found.type_name, os.path.basename(found.defined_in), function)
        return declared, None if initial is None or initial.is_blank else initial


def _place(static: Symbol) -> VariablePlace:
    return VariablePlace(static.vaddr, static.is_tls)
