"""Writes rows of the tables as Parquet files, and opens a dataset for SQL. DuckDB does both (extra `fleet`)."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from footprint.errors import AccessError, UsageError
from footprint.store.tables import PARTITION, TABLES, FleetColumn, FleetTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ("engine", "open_dataset", "part_paths", "write_part")

_LAST: Final = "inputs"
"""The table whose file says that a part is whole."""

_TEMPORARY: Final = ".footprint-"


def engine(*, thread_count: int = 1) -> "DuckDBPyConnection":
    """Start DuckDB in memory.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415 # of an extra
    except ImportError:
        raise UsageError("it needs DuckDB: pip install 'footprint-audit[fleet]'") from None
    return duckdb.connect(config={"threads": thread_count, "autoinstall_known_extensions": False})


def open_dataset(folder: str, *, thread_count: int = 1) -> "DuckDBPyConnection":
    """Return a connection with one view a table of the dataset; a table without files is empty.

    Raises:
        AccessError: If there is no dataset.
        UsageError: If DuckDB is not installed.
    """
    if not os.path.isdir(os.path.join(folder, _LAST)):
        raise AccessError(folder, "it is no dataset of `footprint scan`")
    connection = engine(thread_count=thread_count)
    for table in TABLES.values():
        connection.execute(f"CREATE VIEW {_name(table.name)} AS {_selection(folder, table)}")
    return connection


def _selection(folder: str, table: FleetTable) -> str:
    names = ", ".join(_name(one.name) for one in table.columns)
    if not _has_file(os.path.join(folder, table.name)):
        empty = ", ".join(f"NULL::{one.sql_type} AS {_name(one.name)}" for one in table.columns)
        return f"SELECT {empty} WHERE false"
    options = "hive_partitioning=false"
    if table.is_partitioned:
        types = {one.name: one.sql_type for one in table.columns}
        hive = ", ".join(f"{name}: {types[name]}" for name in PARTITION)
        options = f"hive_partitioning=true, hive_types={{{hive}}}"
    return f"SELECT {names} FROM read_parquet({_text(os.path.join(_escaped(folder), table.pattern))}, {options})"


def _has_file(folder: str) -> bool:
    return any(name.endswith(".parquet") for _, _, names in os.walk(folder) for name in names)


def _escaped(folder: str) -> str:
    """Escape a path for a pattern of files."""
    return "".join(f"[{one}]" if one in "*?[" else one for one in folder)


def _name(text: str) -> str:
    return f'"{text}"'


def _text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def write_part(folder: str, part: str, tables: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    """Write rows as the files of one part: all have the name of the part, that of `inputs` is there last.

    A part that is written again replaces its files.

    Args:
        folder: The dataset.
        part: The name of the part.
        tables: By table, its rows.

    Raises:
        AccessError: If a file cannot be written.
        UsageError: If DuckDB is not installed.
    """
    moves: list[tuple[str, str]] = []
    try:
        with engine() as connection:
            for name in sorted(tables, key=lambda one: one == _LAST):
                for place, columns, rows in _split(TABLES[name], tables[name]):
                    target = os.path.join(folder, name, place)
                    os.makedirs(target, exist_ok=True)
                    temporary = os.path.join(target, f"{_TEMPORARY}{part}")
                    moves.append((temporary, os.path.join(target, f"{part}.parquet")))
                    _write(connection, temporary, columns, rows)
        for temporary, path in moves:
            _to_disk(temporary)
            os.replace(temporary, path)
    except OSError as error:
        raise AccessError(folder, error.strerror or str(error)) from error
    finally:
        for temporary, _ in moves:
            with suppress(OSError):
                os.unlink(temporary)


def _split(
    table: FleetTable, rows: Sequence[tuple[Any, ...]]
) -> Iterable[tuple[str, Sequence[FleetColumn], Sequence[tuple[Any, ...]]]]:
    """Yield the folder of each partition, with its columns and rows."""
    if not rows:
        return
    if not table.is_partitioned:
        yield "", table.columns, rows
        return
    count = len(PARTITION)
    partitions = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for row in rows:
        partitions[row[:count]].append(row[count:])
    for values, inner in partitions.items():
        place = [f"{name}={quote(str(value), safe='')}" for name, value in zip(PARTITION, values, strict=True)]
        yield os.path.join(*place), table.columns[count:], inner


def _write(
    connection: "DuckDBPyConnection", path: str, columns: Sequence[FleetColumn], rows: Sequence[tuple[Any, ...]]
) -> None:
    # By columns: an INSERT a row takes a hundred times as long.
    selected = ", ".join(f"unnest(?::{one.sql_type}[]) AS {_name(one.name)}" for one in columns)
    values = [list(column) for column in zip(*rows, strict=True)]
    statement = f"COPY (SELECT {selected}) TO {_text(path)} (FORMAT parquet, COMPRESSION zstd)"
    from duckdb import InvalidInputException  # noqa: PLC0415 # of an extra

    try:
        connection.execute(statement, values)
    except InvalidInputException:  # a name that is not UTF-8
        connection.execute(statement, [[_valid(one) for one in column] for column in values])


def _valid(value: Any) -> Any:  # noqa: ANN401 # any value of a row
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return tuple(map(_valid, value)) if isinstance(value, tuple) else value


def _to_disk(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def part_paths(folder: str) -> Iterable[tuple[str, str]]:
    """Yield each file of a dataset, with the name of its part; that of `inputs` come first."""
    for name in sorted(TABLES, key=lambda one: one != _LAST):
        for place, _, files in os.walk(os.path.join(folder, name)):
            for file in files:
                if file.endswith(".parquet") or file.startswith(_TEMPORARY):
                    yield file.removeprefix(_TEMPORARY).removesuffix(".parquet"), os.path.join(place, file)
