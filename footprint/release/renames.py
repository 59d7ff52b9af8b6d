"""Variables that are neither new nor gone, though only one of two audits has them.

Their files tell whether two variables of one size may be one variable with a new name. Names that only one audit has,
because only then a debug file was there, are no change; nor are variables that only one of two measured audits touched.

The variables of such an object are compared by section: those that both sides name, each by itself, all others as one
row.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from footprint.attribution.accounts import add_up
from footprint.attribution.symbol_ranges import NOT_PRIVATE
from footprint.dwarf.declared_variables import declaration_of
from footprint.dwarf.places import VariablePlace
from footprint.elf.contents import ResidueCause
from footprint.elf.image import read_image
from footprint.elf.initial import Initial, Initials
from footprint.elf.notes import DebugSearch
from footprint.elf.statics import read_statics
from footprint.elf.symbols import Symbol
from footprint.errors import FootprintError
from footprint.model.row import OF_OBJECTS, MemoryKind, Row
from footprint.release.matching import LEAST_RENAMED_BYTES, comparable_name
from footprint.sources.debug_files import DebugFiles, absolute_paths
from footprint.sources.debug_information import DebugInformation
from footprint.system.files import open_input
from footprint.system.roots import path_inside, reach_of

if TYPE_CHECKING:
    from footprint.model.audit import Audit

_NAMELESS: Final = f"[{ResidueCause.STRIPPED.value}]"
_Declared = tuple[str | None, str, str | None]
"""What distinguishes declarations: type, file and function. Lines do not: they move."""
_Identity = tuple[_Declared | None, Initial | None]
"""The declaration and the contents of a variable; None for what its file does not contain."""


def evenly_named(
    old: "Audit", new: "Audit", before: list[Row], now: list[Row], owner_names: dict[str, str]
) -> tuple[list[Row], list[Row], dict[str, str]]:
    """Take the names that only one side can have from the rows that differ, before and now.

    The third are the objects whose symbols only one side knows: their names before and now.

    Args:
        old: The audit before.
        new: The audit now.
        before: The rows of it that differ.
        now: The same of the audit now.
        owner_names: The names now of the owners before.
    """
    old_nameless, new_nameless = _nameless(before), _nameless(now)
    uneven = {
        owner: name for owner, name in owner_names.items() if (owner in old_nameless) is not (name in new_nameless)
    }
    if uneven:
        # Equal rows are in neither list.
        old_nameless, new_nameless = _nameless(old.ledger), _nameless(new.ledger)
        uneven = {
            owner: name for owner, name in uneven.items() if (owner in old_nameless) is not (name in new_nameless)
        }
    for owner, name in uneven.items():
        common = _symbols(before, owner) & _symbols(now, name)
        before, now = _by_section(before, owner, common), _by_section(now, name, common)
    return before, now, uneven


def _nameless(rows: Iterable[Row]) -> set[str]:
    """Return the owners of which no file names all variables."""
    return {row.owner for row in rows if row.name == _NAMELESS}


def _symbols(rows: Iterable[Row], owner: str) -> set[str]:
    return {comparable_name(row.symbol) for row in rows if row.owner == owner and row.symbol is not None}


def _by_section(rows: Sequence[Row], owner: str, common: set[str]) -> list[Row]:
    """Add up the rows of each section of an object, but those of common symbols."""
    kept, nameless = [], []
    for row in rows:
        is_data = row.owner == owner and row.kind in OF_OBJECTS and row.kind is not MemoryKind.TEXT
        if is_data and (row.symbol is None or comparable_name(row.symbol) not in common):
            nameless.append(row._replace(symbol=None, name=_NAMELESS))
        else:
            kept.append(row)
    return [*kept, *add_up(nameless)]


def likeness_of(
    old: "Audit", new: "Audit", root: str | None, debug: DebugSearch | None
) -> Callable[[Row, Row], bool] | None:
    """Return a function that decides whether two rows may be the same variable; None if no file can be read.

    They are the same if they begin with the same contents, or have the same type, source file and function. They are
    not the same if these differ. If neither is known, they may be the same.
    """
    before, now = (opener_of(audit, root) for audit in (old, new))
    if before is None or now is None:
        return None
    files = DebugFiles(debug)

    @cache
    def variables(path: str) -> _Variables | None:
        try:
            return _Variables(path, files)
        except FootprintError:
            return None

    def facts_of(path: str, row: Row) -> _Identity:
        file_variables = variables(path)
        return (None, None) if file_variables is None else file_variables.identity(row.symbol or "")

    def is_same(row: Row, other: Row) -> bool:
        declared, initial = facts_of(before(row.owner), row)
        other_declared, other_initial = facts_of(now(other.owner), other)
        has_contents = initial is not None and other_initial is not None
        if has_contents and initial == other_initial:
            return True
        if declared is not None and other_declared is not None:
            return declared == other_declared
        return not has_contents

    return is_same


def opener_of(audit: "Audit", root: str | None) -> Callable[[str], str] | None:
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
        counts = Counter(static.name for static in statics.statics)
        self._by_name = {
            s.name: s for s in statics.statics if counts[s.name] == 1 and s.size_bytes >= LEAST_RENAMED_BYTES
        }
        self._initials = Initials(statics)
        self._initials.prepare(self._by_name.values())
        information = DebugInformation(files, statics.image, statics.debug, *paths)
        self._declarations = information.declarations(
            _place(s) for s in self._by_name.values() if s.section_index in information.within
        )

    def identity(self, symbol: str) -> _Identity:
        """Return what the file contains about a variable; nothing for a name that several variables have."""
        static = self._by_name.get(symbol)
        if static is None:
            return None, None
        declared, initial = None, self._initials.of(static)
        declaration = declaration_of(static.name, self._declarations.get(_place(static), ()))
        if declaration is not None and declaration.defined_in is not None:
            function = None if declaration.function is None else comparable_name(declaration.function)
            declared = (declaration.type_name, os.path.basename(declaration.defined_in), function)
        return declared, None if initial is None or initial.is_blank else initial


def _place(static: Symbol) -> VariablePlace:
    return VariablePlace(static.vaddr, static.is_tls)


if TYPE_CHECKING:
    from footprint.model.audit import Audit


def evenly_touched(
    old: "Audit", new: "Audit", before: list[Row], now: list[Row], owner_names: Mapping[str, str]
) -> tuple[list[Row], list[Row]]:
    """Add to the rows that differ those of variables that only one side has touched.

    A ledger that was measured has no row for a variable without a private page: its bytes are in the row of what is not
    private. They are taken from there, where the file proves that the variable is there: it has the same build-id on
    both sides, or its section did not grow by as much.
    """
    if "prediction" in {old.source, new.source}:
        return before, now
    names_before = {name: owner for owner, name in owner_names.items()}
    old_builds = _build_ids(old)
    same_builds = {path for path, build_id in _build_ids(new) if (names_before.get(path, ""), build_id) in old_builds}
    before_places, now_places = _rows_by_section(before, owner_names), _rows_by_section(now, {})
    for place in before_places.keys() | now_places.keys():
        if place[0] not in names_before:
            continue
        sides = before_places.get(place, []), now_places.get(place, [])
        growth_bytes = None
        if place[0] not in same_builds:
            growth_bytes = sum(row.mapped_bytes for row in sides[1]) - sum(row.mapped_bytes for row in sides[0])
        before += _untouched_rows(before, *sides, names_before[place[0]], growth_bytes)
        now += _untouched_rows(now, *sides[::-1], place[0], None if growth_bytes is None else -growth_bytes)
    return before, now


def _build_ids(audit: "Audit") -> set[tuple[str, str]]:
    return {(linked.path, linked.build_id) for linked in audit.objects if linked.build_id}


def _rows_by_section(rows: Iterable[Row], names: Mapping[str, str]) -> dict[tuple[str, str | None], list[Row]]:
    places: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if row.kind in OF_OBJECTS and row.section is not None:
            places.setdefault((names.get(row.owner, row.owner), row.section), []).append(row)
    return places


def _untouched_rows(
    rows: list[Row], rows_before: Sequence[Row], others: Sequence[Row], owner: str, growth_bytes: int | None
) -> list[Row]:
    """Return the rows of variables of a section that only the other side has touched, and take them from the rest.

    `growth_bytes` is by how much the other side is larger; None where both are one build.
    """
    rest = next((row for row in rows_before if row.name == NOT_PRIVATE), None)
    if rest is None:
        return []
    name_of = _symbol_name if growth_bytes is None else _comparable
    rows_by_name = {name_of(row): row for row in rows_before if row.symbol is not None}
    left_bytes, untouched = rest.mapped_bytes, []
    for row in sorted(others, key=lambda row: (-row.mapped_bytes, row.symbol or "")):
        if row.symbol is None:
            continue
        there = rows_by_name.get(name_of(row))
        missing_bytes = row.mapped_bytes - (0 if there is None else there.mapped_bytes)
        if growth_bytes is not None and (there is not None or growth_bytes >= missing_bytes):
            # Of another build, a variable may have grown, and what is missing may be new.
            growth_bytes -= missing_bytes
        elif 0 < missing_bytes <= left_bytes:
            left_bytes -= missing_bytes
            if there is None:
                untouched.append(row._replace(owner=owner, bytes=0, pages=0, sole_pages=0, relocated_bytes=0))
            else:
                # Variables of one name are one row: some of them were touched.
                rows[rows.index(there)] = there._replace(mapped_bytes=row.mapped_bytes)
    rows[rows.index(rest)] = rest._replace(mapped_bytes=left_bytes)
    return untouched


def _symbol_name(row: Row) -> str:
    return row.symbol or ""


def _comparable(row: Row) -> str:
    return comparable_name(row.symbol or "")
