"""The names of source files, from the header of a line table; the lines themselves are not read.

Source: DWARF 5, section 6.2.4 (The Line Number Program Header), and that of versions 2 to 4.
"""

import posixpath
from functools import partial
from typing import Final

from footprint.dwarf import dw
from footprint.dwarf.encoding import Tables, UnitFormat
from footprint.dwarf.sections import DebugSection
from footprint.dwarf.units import Unit
from footprint.members import NamedTuple, lazy_pattern

_LEB: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_OLD_DIRECTORY: Final = lazy_pattern(rb"([^\x00]++)\x00")
# A name; its directory, time and size.
_OLD_FILE: Final = lazy_pattern(rb"([^\x00]++)\x00(%(leb)b)%(leb)b%(leb)b" % {b"leb": _LEB})
_MADE_BY_LINKER: Final = "<artificial>"
_MOST_COLUMNS: Final = 16
_MOST_KEPT: Final = 1 << 17
# A unit of the largest programs includes some thousands.
_MOST_NAMES: Final = 1 << 17


class _Names(NamedTuple):
    """The directories of a line table, and its files with the number of the directory of each."""

    directories: list[str]
    files: list[tuple[str, int]]
    first_file: int


class SourceFiles:
    """Resolves the file numbers of units."""

    def __init__(self) -> None:
        self._tables: dict[DebugSection, Tables[_Names]] = {}
        self._paths: dict[tuple[Unit, int], str | None] = {}
        self._same: dict[str, str] = {}
        self._primary: dict[Unit, str] = {}

    def path(self, unit: Unit, number: int) -> str | None:
        """Return the path of a file of a unit, joined with its directory and the compilation folder."""
        key = unit, number
        if key not in self._paths:
            path = self._path(unit, number)
            # All units that include a header share one string for its path.
            self._paths[key] = None if path is None else self._same.setdefault(path, path)
        return self._paths[key]

    def primary(self, unit: Unit) -> str:
        """Return the path of the source file of a unit.

        It is empty for a unit that others share, and for one that the linker made (LTO): its entries refer to others.
        """
        primary = self._primary.get(unit)
        if primary is None:
            name = unit.text(unit.root, dw.AT_NAME)
            primary = self._primary[unit] = (
                _joined(compilation_folder(unit), name) if name and name != _MADE_BY_LINKER else ""
            )
        return primary

    def _path(self, unit: Unit, number: int) -> str | None:
        at = unit.number(unit.root, dw.AT_STMT_LIST)
        if at is not None:
            at += unit.shifts.get(dw.SECT_LINE, 0)
        if at is None and unit.skeleton is not None:
            # A split unit numbers its files as the line table of the linked file does.
            unit = unit.skeleton
            at = unit.number(unit.root, dw.AT_STMT_LIST)
        if at is None:
            return None
        section = unit.debug.sections.get(".debug_line")
        if section not in self._tables:
            self._tables[section] = Tables(section, _MOST_KEPT)
        names = self._tables[section].at(at, partial(_read_names, unit))
        number -= names.first_file
        if not 0 <= number < len(names.files):
            return None
        name, directory = names.files[number]
        # Before version 5 the compilation folder has number 0, and is not in the table.
        directory -= names.first_file
        inside = names.directories[directory] if 0 <= directory < len(names.directories) else ""
        folder = compilation_folder(unit)
        # Directory 0 of version 5 is that folder itself, also where a prefix map has made it relative.
        is_folder = directory == names.first_file == 0 and inside == folder
        return _joined("" if is_folder else folder, inside, name)


def _read_names(unit: Unit, tables: Tables[_Names], start: int) -> tuple[_Names, int]:
    section = tables.section
    number = section.unsigned
    _, offset_bytes, at = section.initial_length(start)
    version, at = number(at, 2), at + 2
    if not 2 <= version <= 5:
        raise section.damage(f"a line table of version {version}", start)
    address_bytes = unit.format.address_bytes
    if version == 5:
        address_bytes, at = number(at, 1), at + 2
    end = at + offset_bytes + number(at, offset_bytes)
    if end > section.size_bytes:
        raise section.damage("a line table reaches beyond its end", start)
    tables.spend(end - start, start)
    # Before opcode_base stand fields of fixed size: lengths, defaults and ranges.
    opcode_base_at = at + offset_bytes + (4 if version < 4 else 5)
    at = opcode_base_at + max(number(opcode_base_at, 1), 1)
    if version < 5:
        names = _old_names(section, at, end)
    else:
        form = UnitFormat(version, offset_bytes, address_bytes)
        directories, at = _entries(unit, section, form, at, end)
        files, _ = _entries(unit, section, form, at, end)
        names = _Names([name for name, _ in directories], files, 0)
    return names, len(names.directories) + len(names.files)


def compilation_folder(unit: Unit) -> str:
    """Return the folder that the compiler ran in."""
    folder = unit.text(unit.root, dw.AT_COMP_DIR)
    if folder is None and unit.skeleton is not None:
        folder = unit.skeleton.text(unit.skeleton.root, dw.AT_COMP_DIR)
    return folder or ""


def _joined(*parts: str) -> str:
    return posixpath.normpath(posixpath.join(*parts))


def _old_names(section: DebugSection, at: int, end: int) -> _Names:
    directories: list[str] = []
    while at < end and len(directories) < _MOST_NAMES and (match := _OLD_DIRECTORY.match(section.data, at, end)):
        directories.append(match[1].decode("utf-8", "surrogateescape"))
        at = match.end()
    at += 1
    files: list[tuple[str, int]] = []
    while at < end and len(files) < _MOST_NAMES and (match := _OLD_FILE.match(section.data, at, end)):
        directory = match[2][0] if len(match[2]) == 1 else section.uleb(match.start(2))[0]
        files.append((match[1].decode("utf-8", "surrogateescape"), directory))
        at = match.end()
    return _Names(directories, files, 1)


def _entries(
    unit: Unit, section: DebugSection, form: UnitFormat, at: int, end: int
) -> tuple[list[tuple[str, int]], int]:
    """Read a table of version 5: the format of its entries, then the entries."""
    columns, at = section.unsigned(at, 1), at + 1
    if columns > _MOST_COLUMNS:
        raise section.damage(f"a table of files with {columns} columns", at)
    described = []
    for _ in range(columns):
        kind, at = section.uleb(at)
        code, at = section.uleb(at)
        described.append((kind, code))
    count, at = section.uleb(at)
    if count > _MOST_NAMES:
        raise section.damage(f"a table of {count} files", at)
    entries: list[tuple[str, int]] = []
    for _ in range(count):
        before = at
        name, directory = "", 0
        for kind, code in described:
            start, at = at, form.end(section, code, at)
            if kind == dw.LNCT_PATH:
                name = unit.text_of(section, form, code, start) or ""
            elif kind == dw.LNCT_DIRECTORY_INDEX:
                size_bytes = form.size_bytes(code)
                directory = section.uleb(start)[0] if size_bytes is None else section.unsigned(start, size_bytes)
        if not before < at <= end:
            raise section.damage("a table of files reaches beyond its end", before)
        entries.append((name, directory))
    return entries, at
