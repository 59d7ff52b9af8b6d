"""Whether two variables of one size may be one that got another name, by what the files say that hold them."""

import os
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from footprint.audit.audit import Audit
from footprint.audit.ledger import Row
from footprint.audit.matching import comparable_name
from footprint.elf import read_image
from footprint.elf.initial import Initial, Initials
from footprint.elf.sources import Place, said_of
from footprint.elf.statics import Static, Statics, read_statics
from footprint.errors import FootprintError
from footprint.files import open_input
from footprint.verbs.debug_files import DebugFiles, DebugSearch, absolute_paths
from footprint.verbs.debug_information import DebugInformation
from footprint.verbs.process_files import reach_of
from footprint.verbs.saved_files import path_inside

__all__ = ("likeness_of",)


class _Declared(NamedTuple):
    """What tells declarations apart; lines do not, for they move."""

    type_name: str | None
    file_name: str
    function: str | None


class _Said(NamedTuple):
    """What a file says of a variable, each None where it does not."""

    declared: _Declared | None
    initial: Initial | None


_NOTHING = _Said(None, None)


def likeness_of(
    old: Audit, new: Audit, root: str | None, debug: DebugSearch | None
) -> Callable[[Row, Row], bool] | None:
    """Give what tells whether a row before and one now may be the same variable; None where no file can be asked.

    It is the same where it begins with the same contents, or is declared with the same type in the same file and
    function; it is not where these differ. What neither is known of, may be.
    """
    before, now = (_opener(one, root) for one in (old, new))
    if before is None or now is None:
        return None
    files = DebugFiles(debug)

    @cache
    def said(path: str, symbol: str) -> _Said:
        try:
            return _said(path, symbol, files)
        except FootprintError:
            return _NOTHING

    def is_same(row: Row, other: Row) -> bool:
        first, second = said(before(row.owner), row.symbol or ""), said(now(other.owner), other.symbol or "")
        has_contents = first.initial is not None and second.initial is not None
        if has_contents and first.initial == second.initial:
            return True
        if first.declared is not None and second.declared is not None:
            return first.declared == second.declared
        return not has_contents

    return is_same


def _opener(audit: Audit, root: str | None) -> Callable[[str], str] | None:
    """Give where the files of an audit are; None of one that was saved: others may have their paths by now."""
    if audit.saved_in is not None:
        return None
    if audit.source == "prediction":
        return lambda path: path if root is None else path_inside(root, path)
    return reach_of(audit.pid) if audit.is_live and audit.pid is not None else None


def _said(path: str, symbol: str, files: DebugFiles) -> _Said:
    image = read_image(open_input(path), path)
    statics, _, _ = files.read(image, read_statics, *absolute_paths(path))
    named = [one for one in statics.statics if one.name == symbol]
    if len(named) != 1:
        return _NOTHING
    initials = Initials(statics)
    initials.prepare(named)
    initial = initials.of(named[0])
    return _Said(_declared(statics, named[0], files), None if initial is None or initial.is_blank else initial)


def _declared(statics: Statics, static: Static, files: DebugFiles) -> _Declared | None:
    information = DebugInformation(files, statics.image, statics.debug, *absolute_paths(statics.image.file))
    if static.section_index not in information.within:
        return None
    place = Place(static.vaddr, static.is_tls)
    said = said_of(static.name, information.declarations((place,)).get(place, ()))
    if said is None or said.defined_in is None:
        return None
    function = None if said.function is None else comparable_name(said.function)
    return _Declared(said.type_name, os.path.basename(said.defined_in), function)
