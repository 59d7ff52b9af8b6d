"""A table as CSV (RFC 4180), tab-separated values, or JSON lines. Figures are bytes; a name is no formula."""

import json
from typing import Final

from footprint.formats.document import About
from footprint.formats.tables import Cell, Rows, rows_of
from footprint.json.answer import Json
from footprint.text.escape import printable

# A spreadsheet takes a cell that begins with one of these for a formula; a log of GitHub takes `::` for a command.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "::")


def csv(members: Json, about: About) -> str:
    """Format one table with its header; lines end with CR and LF, as the RFC says."""
    rows = rows_of(members, about.table)
    return "".join(",".join(map(_quoted, line)) + "\r\n" for line in _lines(rows))


def tsv(members: Json, about: About) -> str:
    """Format one table with its header; nothing needs quotes, since tabs and line breaks in names are escapes."""
    rows = rows_of(members, about.table)
    return "".join("\t".join(line) + "\n" for line in _lines(rows))


def jsonl(members: Json, about: About) -> str:
    """Format one table as JSON lines: an object for each row, whose keys are the columns."""
    columns, rows = rows_of(members, about.table)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def _lines(rows: Rows) -> list[list[str]]:
    return [[_shown(cell) for cell in row] for row in (rows.columns, *rows.rows)]


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return str(cell)
    # An apostrophe turns the rest of the cell into text.
    return f"'{printable(cell)}" if cell.lstrip(" \u00a0").startswith(_FORMULA) else printable(cell)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell
