"""Writes rows of the tables as Parquet files, and defines the tables in SQL. DuckDB does both (extra `fleet`)."""

import atexit
import fcntl
import gc
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Any, Final

from footprint.errors import AccessError, InputError, UsageError, cause_of
from footprint.store.tables import PARTITION_COLUMN, TABLES, FleetTable
from footprint.system.files import keep_input
from footprint.system.whole_file import open_kept, own_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# DuckDB appends what the system says to its message, as JSON.
_ERRNO: Final = re.compile(r'"errno":"(\d{1,4})"')
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PART: Final = re.compile(r"[0-9a-f]{12}-(?:[0-9]{6,}[abx]*(?:-[0-9]+)?|notes)\.parquet")
"""The names of the files of a part, as a scan makes them."""
_LAST: Final = "inputs"
"""The table whose file says that a part is whole."""


def load_engine() -> None:
    """Import DuckDB.

    Raises:
        AccessError: If it cannot be loaded, such as with too little memory.
        UsageError: If it is not installed.
    """
    try:
        import duckdb  # noqa: F401, PLC0415 # of an extra
    except ModuleNotFoundError:
        raise UsageError("a dataset needs DuckDB: pip install 'footprint-audit[fleet]'") from None
    except ImportError as error:
        raise AccessError("DuckDB", f"it cannot be loaded: {error}") from None


def engine(*, thread_count: int = 1) -> "DuckDBPyConnection":
    """Start DuckDB in memory.

    Raises:
        AccessError: If it cannot be loaded, such as with too little memory.
        UsageError: If it is not installed.
    """
    load_engine()
    import duckdb  # noqa: PLC0415 # of an extra

    # The command freezes the garbage before it exits: nanobind would report its types as leaks.
    atexit.register(gc.unfreeze)
    try:
        connection = duckdb.connect(config={"threads": thread_count, "autoinstall_known_extensions": False})
        # In a program without a file, as the workers of a scan are, it would print a bar of progress between our lines.
        connection.execute("SET enable_progress_bar = false")
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    return connection


def open_dataset(folder: str) -> "DuckDBPyConnection":
    """Return a connection with one view a table of the dataset; all of them are checked.

    Raises:
        AccessError: If there is no dataset.
        InputError: If a file of it is damaged, or of another version.
        UsageError: If DuckDB is not installed.
    """
    views = table_views(folder)
    with ExitStack() as opened:
        connection = opened.enter_context(engine())
        for table, view in views.items():
            with reading(folder, table):
                connection.execute(view)
        # One that stays open breaks the engine of a process that is forked later.
        opened.pop_all()
    return connection


def keep_dataset(folder: str) -> None:
    """Count the files of a dataset among those that were read.

    Raises:
        AccessError: If one is a link that leads nowhere, which DuckDB would leave out.
    """
    own_place(folder)
    for path in chain.from_iterable(whole_files(folder).values()):
        if not os.path.exists(path):
            raise AccessError(path, "it is a link that leads nowhere")
        keep_input(path)


def own_place(folder: str) -> str:
    """Return the real path of the folder of a dataset.

    Raises:
        InputError: If its path would be read as columns or a pattern.
        UsageError: If it is the address of a store.
    """
    if scheme := _SCHEME.match(folder):
        raise UsageError(f"{folder}: there is no store {scheme[0]}: name a folder, or one of s3://, gs://, az://")
    place = os.path.realpath(folder)
    if "=" in place:
        # DuckDB would take `/x/host=a` for a column, in place of the one in the files.
        raise InputError(folder, f"its path has a `=`, which stands for a column: move it: {place}")
    if pattern := next((character for character in place if character in "*?["), ""):
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
    paths_by_table = {name: sorted(_files(os.path.join(folder, name))) for name in TABLES}
    return {name: [path for path in paths if os.path.basename(path) in parts] for name, paths in paths_by_table.items()}


def _check_form(folder: str) -> None:
    if not os.path.isdir(os.path.join(folder, _LAST)):
        raise AccessError(folder, "it is no dataset of `footprint scan`")
    for name in TABLES:
        place = os.path.join(folder, name)
        if os.path.isdir(place) and any(name.startswith("host=") for name in os.listdir(place)):
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
    names = ", ".join(_name(column.name) for column in table.columns)
    if not patterns:
        empty = ", ".join(f"NULL::{column.sql_type} AS {_name(column.name)}" for column in table.columns)
        return f"SELECT {empty} WHERE false"
    options = "hive_partitioning=false"
    if table.is_partitioned:
        options = f"hive_partitioning=true, hive_types={{{PARTITION_COLUMN}: DATE}}"
    quoted = ", ".join(map(_text, patterns))
    quoted = f"[{quoted}]" if len(patterns) > 1 else quoted
    return f"SELECT {names} FROM read_parquet({quoted}, {options})"  # noqa: S608 # names of our own, and quoted paths


def _escaped(folder: str) -> str:
    """Escape a path for a pattern of files."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in folder)


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
                    own_folder(target)
                    path = os.path.join(target, f"{part}.parquet")
                    _write(connection, path, TABLES[name], some)
                    _to_disk(path)
        except OSError as error:
            raise AccessError(folder, cause_of(error)) from error


def _partitions(table: FleetTable, rows: Sequence[tuple[Any, ...]]) -> Iterable[tuple[str, Sequence[tuple[Any, ...]]]]:
    """Yield the folder of each partition, with its rows, which are sorted by host."""
    if not rows:
        return
    if not table.is_partitioned:
        yield "", rows
        return
    names = [column.name for column in table.columns]
    host, day = names.index("host"), names.index(PARTITION_COLUMN)
    partitions = defaultdict[Any, list[tuple[Any, ...]]](list)
    for row in sorted(rows, key=itemgetter(host)):
        partitions[row[day]].append(row)
    for value, inner in partitions.items():
        yield f"{PARTITION_COLUMN}={value}", inner


def _write(connection: "DuckDBPyConnection", path: str, table: FleetTable, rows: Sequence[tuple[Any, ...]]) -> None:
    # By columns: an INSERT a row takes a hundred times as long.
    kept = [
        place for place, kept in enumerate(table.columns) if not table.is_partitioned or kept.name != PARTITION_COLUMN
    ]
    columns = [table.columns[place] for place in kept]
    selected = ", ".join(f"unnest(?::{column.sql_type}[]) AS {_name(column.name)}" for column in columns)
    values = [[row[place] for row in rows] for place in kept]
    statement = f"COPY (SELECT {selected}) TO {_text(path)} (FORMAT parquet, COMPRESSION zstd)"
    from duckdb import InvalidInputException, IOException  # noqa: PLC0415 # of an extra

    try:
        try:
            connection.execute(statement, values)
        except InvalidInputException:  # a name that is not UTF-8
            connection.execute(statement, [[_valid(cell) for cell in column] for column in values])
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
    staged = os.path.join(stage, part)
    moved: dict[str, list[str]] = {}
    try:
        for path in sorted(_files(staged), key=lambda file: os.path.relpath(file, staged).startswith(f"{_LAST}/")):
            place = os.path.relpath(path, staged)
            target = os.path.join(folder, place)
            own_folder(os.path.dirname(target))
            os.replace(path, target)
            moved.setdefault(place.partition("/")[0], []).append(target)
    except OSError as error:
        raise AccessError(folder, cause_of(error)) from error
    return moved


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


def remove_damaged(folder: str) -> dict[str, int]:
    """Remove the parts that miss a file, so that their inputs are read again; return of each how many inputs it had.

    Raises:
        InputError: If a file of the dataset is damaged, or of another version.
    """
    if not os.path.isdir(os.path.join(folder, _LAST)):
        return {}
    files = whole_files(folder)
    by_day = {
        name: {path.removeprefix(os.path.join(folder, name, "")) for path in paths} for name, paths in files.items()
    }
    parts = {name: {os.path.basename(path) for path in paths} for name, paths in files.items()}
    with open_dataset(folder) as connection, reading(folder, _LAST):
        listed = connection.execute(_LISTED).fetchall()
    damaged: dict[str, int] = {}
    for part, day, is_series, process_count, row_count, program_count, _ in listed:
        tables = {
            "hosts": process_count + program_count,
            "processes": process_count,
            "rows": row_count,
            "owners": row_count,
            "programs": program_count,
        }
        for name in (name for name, needed in tables.items() if needed):
            is_by_day = TABLES[name].is_partitioned and not is_series
            path = f"{PARTITION_COLUMN}={day}/{part}.parquet" if is_by_day else f"{part}.parquet"
            if path not in (by_day if is_by_day else parts)[name]:
                damaged[part] = 0
    for part in damaged:
        damaged[part] = sum(count for name, *_, count in listed if name == part)
        # First that of `inputs`: a part without it is half a part, which the next scan removes.
        for path in chain.from_iterable(files[name] for name in (_LAST, *TABLES)):
            if os.path.basename(path) == f"{part}.parquet" and os.path.exists(path):
                os.unlink(path)
    return damaged


@contextmanager
def locked_dataset(folder: str) -> Iterator[None]:
    """Make the dataset if it is not there, and keep other scans out of it.

    Raises:
        AccessError: If it cannot be written, or another scan is at work.
    """
    try:
        own_folder(folder)
        descriptor = open_kept(os.path.join(folder, ".lock"), mode=0o666)
    except OSError as error:
        raise AccessError(folder, cause_of(error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise AccessError(folder, "another scan writes to it") from None
    try:
        yield
    finally:
        os.close(descriptor)


def prune(folder: str, keep_days: int) -> tuple[date | None, int]:
    """Remove the processes of days that lie further behind the last one; programs and files stay.

    Their inputs stay known, so that no scan reads them again. A part goes when all of its days are too old. A day that
    is yet to come is taken for today: one host whose clock is wrong must not cost the days of all others.

    Args:
        folder: The dataset.
        keep_days: How many days before the last one are kept.

    Returns:
        The first day that is kept, and the number of inputs whose rows went.

    Raises:
        AccessError: If there is no dataset, it cannot be written, or a scan writes to it.
        InputError: If a file of it is damaged, or of another version.
    """
    _check_form(folder)
    with locked_dataset(folder), open_dataset(folder) as connection, reading(folder, _LAST):
        ((last,),) = connection.execute("SELECT max(day) FROM inputs WHERE process_count > 0").fetchall()
        if last is None:
            return None, 0
        last = min(last, datetime.now(UTC).date())
        first = last - min(timedelta(days=keep_days), last - date.min)
        files = whole_files(folder)
        own_names = set(map(os.path.basename, files[_LAST]))
        # A dataset may be anybody's: what it calls a part need not be one.
        parts = [
            part for part in connection.execute(_OLD_PARTS, [first]).fetchall() if f"{part[0]}.parquet" in own_names
        ]
        try:
            for part in [name for name, count in parts if count]:
                _empty(connection, os.path.join(folder, _LAST), f"{part}.parquet")
            names = {f"{part}.parquet" for part, _ in parts}
            for path in chain.from_iterable(paths for name, paths in files.items() if name != _LAST):
                if os.path.basename(path) in names:
                    os.unlink(path)
        except OSError as error:
            raise AccessError(folder, cause_of(error)) from error
    return first, sum(count for _, count in parts)


def _empty(connection: "DuckDBPyConnection", folder: str, name: str) -> None:
    """Take the processes out of a file of inputs.

    It comes before the rows: where this ends in between, what is left of them goes the next time.
    """
    path, new = os.path.join(folder, name), os.path.join(folder, f".{name}.new")
    connection.execute(f"COPY ({_EMPTIED}) TO {_text(new)} (FORMAT parquet, COMPRESSION zstd)", [_escaped(path)])
    os.replace(new, path)


class DatasetInputs:
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


def _is_new(numbers: set[int], number: int) -> bool:
    before = len(numbers)
    numbers.add(number)
    return len(numbers) > before


def known_inputs(folder: str) -> DatasetInputs:
    """Return the inputs and files of a dataset.

    Raises:
        UsageError: If DuckDB is not installed.
    """
    inputs = DatasetInputs()
    if not os.path.isdir(os.path.join(folder, _LAST)):
        load_engine()
        return inputs
    with open_dataset(folder) as connection, reading(folder, "inputs or files"):
        result = connection.execute("SELECT host, input, state, depends_on, identity, kind FROM inputs ORDER BY moment")
        while some := result.fetchmany(_AT_ONCE):
            for host, name, state, depends_on, identity, kind in some:
                for place in (host, "") if kind in {"record", "series"} else (host,):
                    inputs.add_state(place, name, state, depends_on, identity)
                inputs.add_record(host, identity)
        result = connection.execute("SELECT file FROM files")
        while some := result.fetchmany(_AT_ONCE):
            for (file,) in some:
                inputs.add_file(file)
    return inputs


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
            sums = {name: _sums(connection, name, path) for name, path in paths.items()}
            for what, *columns in _EQUAL:
                figures = {name: sums[name][column] for name, column in columns}
                if len(set(figures.values())) > 1:
                    counts = ", ".join(f"{amount:,} in {name}" for name, amount in figures.items())
                    raise InputError(folder, f"the tables do not agree on {what}: {counts}")


def _sums(connection: "DuckDBPyConnection", table: str, paths: Sequence[str]) -> list[int]:
    if not paths:
        return [0] * 5
    query = f"SELECT {_SUMS[table]} FROM read_parquet(?, hive_partitioning=false)"  # noqa: S608 # of the table above
    result = connection.execute(query, [list(paths)])
    return [int(amount or 0) for amount in result.fetchall()[0]]


_AT_ONCE: Final = 10_000
_PARTS_AT_ONCE: Final = 64
_OLD_PARTS: Final = """
SELECT part, count(*) FILTER (process_count > 0) FROM inputs GROUP BY part
HAVING max(day) < ? AND count(*) FILTER (kind IN ('program', 'file', 'other')) = 0"""
_EMPTIED: Final = """
SELECT * REPLACE (0 AS process_count, 0 AS row_count, 0 AS private_bytes, 0 AS kernel_bytes, 0 AS per_process_bytes)
FROM read_parquet(?, hive_partitioning=false)"""
_LISTED: Final = """
SELECT part, day, kind = 'series', sum(process_count), sum(row_count),
       count(*) FILTER (kind = 'program' AND note_count = 0), count(*)
FROM inputs GROUP BY ALL"""
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
