"""A table as CSV (RFC 4180) or tab-separated values: figures in bytes, names that no spreadsheet takes for formulas."""

from typing import Final

from footprint.formats.document import About
from footprint.formats.escape import printable
from footprint.formats.json import Json
from footprint.formats.tables import Cell, Rows, rows_of

__all__ = ("csv", "tsv")

# What a spreadsheet takes for a formula when a cell begins with it; and what a log of GitHub takes for a command.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "::")


def csv(members: Json, about: About) -> str:
    """Write one table with its header; lines end as the RFC has them."""
    rows = rows_of(members, about.table)
    return "".join(",".join(map(_quoted, line)) + "\r\n" for line in _lines(rows))


def tsv(members: Json, about: About) -> str:
    """Write one table with its header; tabs and line breaks in names are escapes, so nothing needs quotes."""
    rows = rows_of(members, about.table)
    return "".join("\t".join(line) + "\n" for line in _lines(rows))


def _lines(rows: Rows) -> list[list[str]]:
    return [[_shown(cell) for cell in row] for row in (rows.columns, *rows.rows)]


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return str(cell)
    # An apostrophe makes text of what stands behind it.
    return f"'{printable(cell)}" if cell.lstrip(" \u00a0").startswith(_FORMULA) else printable(cell)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(one in cell for one in ',"\r\n') else cell
