"""Writes rows of the tables as Parquet files, and defines the tables in SQL. DuckDB does both (extra `fleet`)."""

import atexit
import gc
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Any, Final

from footprint.errors import AccessError, InputError, UsageError
from footprint.files import keep_input
from footprint.store.tables import PARTITION_COLUMN, TABLES, FleetTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = (
    "Known",
    "check_parts",
    "commit_part",
    "engine",
    "keep_dataset",
    "known_inputs",
    "open_dataset",
    "own_place",
    "reading",
    "remove_halves",
    "table_views",
    "unreadable",
    "whole_files",
    "write_part",
)

# DuckDB appends what the system says to its message, as JSON.
_ERRNO: Final = re.compile(r'"errno":"(\d{1,4})"')
_PART: Final = re.compile(r"[0-9a-f]{12}-(?:[0-9]{6,}[abx]*(?:-[0-9]+)?|notes)\.parquet")
"""The names of the files of a part, as a scan makes them."""
_LAST: Final = "inputs"
"""The table whose file says that a part is whole."""


def engine(*, thread_count: int = 1) -> "DuckDBPyConnection":
    """Start DuckDB in memory.

    Raises:
        AccessError: If it cannot be loaded, such as with too little memory.
        UsageError: If it is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415 # of an extra
    except ModuleNotFoundError:
        raise UsageError("a dataset needs DuckDB: pip install 'footprint-audit[fleet]'") from None
    except ImportError as error:
        raise AccessError("DuckDB", f"it cannot be loaded: {error}") from None
    # The command freezes the garbage before it exits: nanobind would report its types as leaks.
    atexit.register(gc.unfreeze)
    try:
        return duckdb.connect(config={"threads": thread_count, "autoinstall_known_extensions": False})
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error


def open_dataset(folder: str) -> "DuckDBPyConnection":
    """Return a connection with one view a table of the dataset; all of them are checked.

    Raises:
        AccessError: If there is no dataset.
        InputError: If a file of it is damaged, or of another version.
        UsageError: If DuckDB is not installed.
    """
    views = table_views(folder)
    connection = engine()
    for table, view in views.items():
        with reading(folder, table):
            connection.execute(view)
    return connection


def keep_dataset(folder: str) -> None:
    """Count the files of a dataset among those that were read.

    Raises:
        AccessError: If one is a link that leads nowhere, which DuckDB would leave out.
    """
    for path in chain.from_iterable(whole_files(folder).values()):
        if not os.path.exists(path):
            raise AccessError(path, "it is a link that leads nowhere")
        keep_input(path)


def own_place(folder: str) -> str:
    """Return the real path of the folder of a dataset.

    Raises:
        InputError: If its path would be read as columns or a pattern.
    """
    place = os.path.realpath(folder)
    if "=" in place:
        # DuckDB would take `/x/host=a` for a column, in place of the one in the files.
        raise InputError(folder, f"its path has a `=`, which stands for a column: move it: {place}")
    if pattern := next((one for one in place if one in "*?["), ""):
        # DuckDB compares what it may read with the path as it is written for a pattern of files.
        raise InputError(folder, f"its path has a `{pattern}`, which stands for other names: move it: {place}")
    return place


def whole_files(folder: str) -> dict[str, list[str]]:
    """Return by table the files of a dataset, without those of a part that a scan is about to move into it.

    Raises:
        AccessError: If there is no dataset.
        InputError: If it is of an earlier version.
    """
    _check_form(folder)
    parts = {os.path.basename(path) for path in _files(os.path.join(folder, _LAST))}
    found = {name: sorted(_files(os.path.join(folder, name))) for name in TABLES}
    return {name: [one for one in paths if os.path.basename(one) in parts] for name, paths in found.items()}


def _check_form(folder: str) -> None:
    if not os.path.isdir(os.path.join(folder, _LAST)):
        raise AccessError(folder, "it is no dataset of `footprint scan`")
    for name in TABLES:
        place = os.path.join(folder, name)
        if os.path.isdir(place) and any(one.startswith("host=") for one in os.listdir(place)):
            raise InputError(place, "it is of an earlier version of footprint, by host: scan into a new folder")


def table_views(folder: str, files: Mapping[str, Sequence[str]] | None = None) -> dict[str, str]:
    """Return by table of a dataset the SQL that makes it a view; a table without files is empty.

    Args:
        folder: The dataset.
        files: By table, the files that are read; None for patterns, which find those at the time of each query.

    Raises:
        AccessError: If there is no dataset.
        InputError: If it is of an earlier version.
    """
    _check_form(folder)
    views = {}
    for name, table in TABLES.items():
        if files is not None:
            patterns = list(map(_escaped, files[name]))
        else:
            has_files = any(True for _ in _files(os.path.join(folder, name)))
            patterns = [os.path.join(_escaped(folder), table.pattern)] if has_files else []
        views[name] = f"CREATE VIEW {_name(name)} AS {_selection(table, patterns)}"
    return views


@contextmanager
def reading(folder: str, table: str) -> Iterator[None]:
    """Raise errors of DuckDB in a block as errors of the dataset.

    Raises:
        InputError: If a file of it is damaged, or of another version.
    """
    from duckdb import BinderException, Error  # noqa: PLC0415 # of an extra

    try:
        yield
    # DuckDB puts names of the file into its messages, also those that are not UTF-8.
    except (Error, RuntimeError, UnicodeDecodeError) as error:
        if not isinstance(error, BinderException) or "not found" not in str(error):
            raise unreadable(folder, str(error)) from None
        cause = f"a column of {table} is missing, so it is of another version of footprint: scan into a new folder"
        raise InputError(folder, cause) from None


def unreadable(folder: str, message: str) -> InputError:
    """Return the error of a dataset that cannot be read. Where DuckDB does not name the file, it is found."""
    cause = message.strip().partition("\n")[0]
    path = None if os.path.realpath(folder) in cause else _damaged_file(folder)
    return InputError(path or folder, f"it cannot be read: {cause}")


def _damaged_file(folder: str) -> str | None:
    from duckdb import Error  # noqa: PLC0415 # of an extra

    with engine() as connection:
        for path in sorted(_files(folder)):
            try:
                connection.execute("SELECT max(hash(one)) FROM read_parquet(?) AS one", [_escaped(path)]).fetchall()
            except (Error, RuntimeError, UnicodeDecodeError):
                return path
    return None


def _selection(table: FleetTable, patterns: Sequence[str]) -> str:
    names = ", ".join(_name(one.name) for one in table.columns)
    if not patterns:
        empty = ", ".join(f"NULL::{one.sql_type} AS {_name(one.name)}" for one in table.columns)
        return f"SELECT {empty} WHERE false"
    options = "hive_partitioning=false"
    if table.is_partitioned:
        options = f"hive_partitioning=true, hive_types={{{PARTITION_COLUMN}: DATE}}"
    quoted = ", ".join(map(_text, patterns))
    quoted = f"[{quoted}]" if len(patterns) > 1 else quoted
    return f"SELECT {names} FROM read_parquet({quoted}, {options})"  # noqa: S608 # names of our own, and quoted paths


def _escaped(folder: str) -> str:
    """Escape a path for a pattern of files."""
    return "".join(f"[{one}]" if one in "*?[" else one for one in folder)


def _name(text: str) -> str:
    return f'"{text}"'


def _text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def write_part(folder: str, part: str, tables: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    """Write rows as the files of one part: all have the name of the part. Files with this name are replaced.

    Args:
        folder: The dataset, or a folder from which `commit_part` takes them.
        part: The name of the part.
        tables: By table, its rows.

    Raises:
        AccessError: If a file cannot be written.
        UsageError: If DuckDB is not installed.
    """
    with engine() as connection:
        try:
            for name, rows in tables.items():
                for place, some in _partitions(TABLES[name], rows):
                    target = os.path.join(folder, name, place)
                    os.makedirs(target, exist_ok=True)
                    path = os.path.join(target, f"{part}.parquet")
                    _write(connection, path, TABLES[name], some)
                    _to_disk(path)
        except OSError as error:
            raise AccessError(folder, error.strerror or str(error)) from error


def _partitions(table: FleetTable, rows: Sequence[tuple[Any, ...]]) -> Iterable[tuple[str, Sequence[tuple[Any, ...]]]]:
    """Yield the folder of each partition, with its rows, which are sorted by host."""
    if not rows:
        return
    if not table.is_partitioned:
        yield "", rows
        return
    names = [one.name for one in table.columns]
    host, day = names.index("host"), names.index(PARTITION_COLUMN)
    partitions = defaultdict[Any, list[tuple[Any, ...]]](list)
    for row in sorted(rows, key=itemgetter(host)):
        partitions[row[day]].append(row)
    for value, inner in partitions.items():
        yield f"{PARTITION_COLUMN}={value}", inner


def _write(connection: "DuckDBPyConnection", path: str, table: FleetTable, rows: Sequence[tuple[Any, ...]]) -> None:
    # By columns: an INSERT a row takes a hundred times as long.
    kept = [
        place for place, one in enumerate(table.columns) if not table.is_partitioned or one.name != PARTITION_COLUMN
    ]
    columns = [table.columns[place] for place in kept]
    selected = ", ".join(f"unnest(?::{one.sql_type}[]) AS {_name(one.name)}" for one in columns)
    values = [[row[place] for row in rows] for place in kept]
    statement = f"COPY (SELECT {selected}) TO {_text(path)} (FORMAT parquet, COMPRESSION zstd)"
    from duckdb import InvalidInputException, IOException  # noqa: PLC0415 # of an extra

    try:
        try:
            connection.execute(statement, values)
        except InvalidInputException:  # a name that is not UTF-8
            connection.execute(statement, [[_valid(one) for one in column] for column in values])
    except IOException as error:
        number = _ERRNO.search(str(error))
        raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from error


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


def commit_part(stage: str, folder: str, part: str) -> dict[str, list[str]]:
    """Move the files of a part into the dataset; return them by table. With that of `inputs`, the last, it is whole.

    Args:
        stage: The folder that has the part as `write_part` wrote it, below its name.
        folder: The dataset, on the same file system.
        part: The name of the part.

    Raises:
        AccessError: If they cannot be moved.
    """
    own = os.path.join(stage, part)
    found: dict[str, list[str]] = {}
    try:
        for path in sorted(_files(own), key=lambda one: os.path.relpath(one, own).startswith(f"{_LAST}/")):
            place = os.path.relpath(path, own)
            target = os.path.join(folder, place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(path, target)
            found.setdefault(place.partition("/")[0], []).append(target)
    except OSError as error:
        raise AccessError(folder, error.strerror or str(error)) from error
    return found


def _files(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from [os.path.join(place, name) for name in names if name.endswith(".parquet")]


def remove_halves(folder: str) -> None:
    """Remove the files of parts that a scan was about to move into the dataset when it ended, and no other files."""
    whole = {os.path.basename(path) for path in _files(os.path.join(folder, _LAST))}
    for name in TABLES:
        for path in _files(os.path.join(folder, name)):
            file = os.path.basename(path)
            if file not in whole and _PART.fullmatch(file):
                os.unlink(path)


class Known:
    """The inputs and files of a dataset. Of each it keeps a few words, since they are many."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[tuple[str, ...], str]] = {}
        self._records: set[int] = set()
        self._files: set[int] = set()

    def add_state(self, host: str, name: str, state: str, depends_on: Iterable[str], identity: str) -> None:
        """Add an input, with what it depends on."""
        self._states[hash((host, name, state))] = tuple(map(intern, depends_on)), identity

    def state_of(self, host: str, name: str, state: str) -> tuple[tuple[str, ...], str] | None:
        """Return what an input depends on, and its identity; None where the dataset does not have it so."""
        return self._states.get(hash((host, name, state)))

    def add_record(self, host: str, identity: str) -> bool:
        """Add the contents of an input of a host; return whether they are new."""
        return _is_new(self._records, hash((host, identity)))

    def has_file(self, file: str) -> bool:
        """Return whether an ELF file is known."""
        return hash(file) in self._files

    def forget_file(self, file: str) -> None:
        """Remove an ELF file that is not in the dataset after all."""
        self._files.discard(hash(file))

    def add_file(self, file: str) -> bool:
        """Add an ELF file; return whether it is new."""
        return _is_new(self._files, hash(file))


def _is_new(known: set[int], one: int) -> bool:
    before = len(known)
    known.add(one)
    return len(known) > before


def known_inputs(folder: str) -> Known:
    """Return the inputs and files of a dataset.

    Raises:
        UsageError: If DuckDB is not installed.
    """
    known = Known()
    if not os.path.isdir(os.path.join(folder, _LAST)):
        engine().close()
        return known
    with open_dataset(folder) as connection, reading(folder, "inputs or files"):
        found = connection.execute("SELECT host, input, state, depends_on, identity FROM inputs ORDER BY moment")
        while some := found.fetchmany(_AT_ONCE):
            for host, name, state, depends_on, identity in some:
                known.add_state(host, name, state, depends_on, identity)
                known.add_record(host, identity)
        found = connection.execute("SELECT file FROM files")
        while some := found.fetchmany(_AT_ONCE):
            for (file,) in some:
                known.add_file(file)
    return known


def check_parts(folder: str, parts: Iterable[Mapping[str, Sequence[str]]]) -> None:
    """Check that the rows of parts add up to the totals of their audits.

    Args:
        folder: The dataset, for errors.
        parts: The files of each part by table, as `commit_part` returns them.

    Raises:
        InputError: If they do not.
    """
    waiting = list(parts)
    with engine(thread_count=2) as connection:
        for start in range(0, len(waiting), _PARTS_AT_ONCE):
            some = waiting[start : start + _PARTS_AT_ONCE]
            paths = {name: [path for part in some for path in part.get(name, ())] for name in _SUMS}
            sums = {name: _sums(connection, name, own) for name, own in paths.items()}
            for what, *columns in _EQUAL:
                figures = {name: sums[name][column] for name, column in columns}
                if len(set(figures.values())) > 1:
                    told = ", ".join(f"{amount:,} in {name}" for name, amount in figures.items())
                    raise InputError(folder, f"the tables do not agree on {what}: {told}")


def _sums(connection: "DuckDBPyConnection", table: str, paths: Sequence[str]) -> list[int]:
    if not paths:
        return [0] * 5
    query = f"SELECT {_SUMS[table]} FROM read_parquet(?, hive_partitioning=false)"  # noqa: S608 # of the table above
    found = connection.execute(query, [list(paths)])
    return [int(one or 0) for one in found.fetchall()[0]]


_AT_ONCE: Final = 10_000
_PARTS_AT_ONCE: Final = 64
_SUMS: Final = {
    "inputs": "sum(process_count), sum(row_count), sum(private_bytes), sum(kernel_bytes), sum(per_process_bytes)",
    "processes": "sum(process_count), 0, sum(private_bytes), sum(kernel_bytes), sum(per_process_bytes)",
    "rows": "0, count(*), sum(private_bytes) FILTER (kind <> 'kernel'), sum(private_bytes) FILTER (kind = 'kernel'), 0",
    "owners": "0, 0, sum(private_bytes), sum(kernel_bytes), 0",
}
_EQUAL: Final = (
    ("the number of processes", ("inputs", 0), ("processes", 0)),
    ("the number of rows", ("inputs", 1), ("rows", 1)),
    ("private bytes", ("inputs", 2), ("processes", 2), ("rows", 2), ("owners", 2)),
    ("kernel memory", ("inputs", 3), ("processes", 3), ("rows", 3), ("owners", 3)),
    ("the cost of the processes", ("inputs", 4), ("processes", 4)),
)
"""What must agree: its name, and the columns of `_SUMS` by table."""
