"""The tables of an answer in JSON, as rows of plain cells."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from footprint.errors import UsageError
from footprint.formats.json import SCHEMA_PATH, Json

__all__ = ("Cell", "Rows", "rows_of", "table_names")

Cell = str | int | float | bool | None

_NO_TABLES: Final = frozenset({"schema", "tool"})


class Rows(NamedTuple):
    """One table.

    Attributes:
        columns: What each cell is.
        rows: As many cells as columns each.
    """

    columns: tuple[str, ...]
    rows: list[list[Cell]]


def rows_of(members: Json, name: str) -> Rows:
    """Give one table of an answer: a list of objects, or one object as a table of one row.

    Objects in a cell become columns of their own (`location.file`), lists become their JSON.

    Args:
        members: The whole answer.
        name: The table; `projection.terms` for one inside another.

    Raises:
        UsageError: Where there is none of that name.
    """
    names = table_names(members)
    if name not in names:
        raise UsageError(f"there is no table {name!r} in this answer: it has {', '.join(names)}")
    outer, _, inner = name.partition(".")
    found = members[outer][inner] if inner else members[outer]
    flat = [dict(_flat(row)) for row in (found if isinstance(found, list) else [found])]
    columns = tuple(dict.fromkeys(key for row in flat for key in row)) or tuple(_told_columns(outer, inner))
    return Rows(columns, [[row.get(column) for column in columns] for row in flat])


def table_names(members: Json) -> list[str]:
    """Give the names of the tables of an answer."""
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
            yield f"{prefix}{key}", json.dumps(value) if isinstance(value, list) else value


def _told_columns(outer: str, inner: str) -> Iterable[str]:
    """Give the columns that a table without rows would have, as the schema has them."""
    schema = _schema()
    found = schema["properties"].get(outer, {})
    for part in (inner,) if inner else ():
        found = found.get("properties", {}).get(part, {})
    items = found.get("items", {})
    if "$ref" in items:
        items = schema["$defs"][items["$ref"].rsplit("/", 1)[-1]]
    return list(items.get("properties", ()))


@cache
def _schema() -> Json:
    schema: Json = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return schema
