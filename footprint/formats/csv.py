"""The tables of a JSON answer as CSV (RFC 4180), TSV, or JSON lines. Figures are bytes; a name is no formula."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from footprint.errors import UsageError
from footprint.formats.document import About
from footprint.formats.words import SCHEMA_PATH
from footprint.json.answer import Json, in_memory
from footprint.text.escape import printable, runner_safe

Cell = str | int | float | bool | None

_NO_TABLES: Final = frozenset({"schema", "tool"})


class Rows(NamedTuple):
    """One table.

    Attributes:
        columns: The names of the columns.
        rows: The cells, one for each column.
    """

    columns: tuple[str, ...]
    rows: list[list[Cell]]


def rows_of(members: Json, name: str) -> Rows:
    """Return one table of an answer: a list of objects, or one object as a table of one row.

    An object in a cell becomes columns of its own (`location.file`); a list becomes its JSON.

    Args:
        members: The whole answer.
        name: The name of the table; `projection.terms` for a table inside another.

    Raises:
        UsageError: The answer has no table of that name.
    """
    members = in_memory(members)
    names = table_names(members)
    if name not in names:
        raise UsageError(f"there is no table {name!r} in this answer: it has {', '.join(names)}")
    outer, _, inner = name.partition(".")
    member = members[outer][inner] if inner else members[outer]
    flat = [dict(_flat(row)) for row in (member if isinstance(member, list) else [member])]
    columns = tuple(dict.fromkeys(key for row in flat for key in row)) or tuple(_schema_columns(outer, inner))
    return Rows(columns, [[row.get(column) for column in columns] for row in flat])


def table_names(members: Json) -> list[str]:
    """Return the names of the tables of an answer."""
    names = []
    for key, value in members.items():
        if key in _NO_TABLES or not isinstance(value, dict | list):
            continue
        if isinstance(value, dict):
            names.append(key)
            names += [f"{key}.{inner}" for inner, rows in value.items() if _is_table(rows)]
        elif not value or _is_table(value):
            names.append(key)
    return names


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Cell]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", runner_safe(json.dumps(value), is_json=True) if isinstance(value, list) else value


def _schema_columns(outer: str, inner: str) -> Iterable[str]:
    """Return the columns that a table without rows would have, as the schema has them."""
    from importlib.resources import files  # noqa: PLC0415 # few tables have no rows

    definitions: Json = json.loads((files("footprint.json") / SCHEMA_PATH.name).read_text(encoding="utf-8"))["$defs"]
    for answer in definitions.values():
        part_schema = answer["properties"].get(outer, {}) if "verb" in answer["properties"] else {}
        for part in ("properties", inner, "items") if inner else ("items",):
            part_schema = _resolved(part_schema, definitions).get(part, {})
        if part_schema:
            return list(_resolved(part_schema, definitions).get("properties", ()))
    return ()


def _resolved(schema: Json, definitions: Json) -> Json:
    resolved: Json = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return resolved


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
