"""Answers SQL about a dataset, which can read the dataset and nothing else: no other file, no network, no extension.

A question runs in a process of its own, which ends where it takes more time or memory than the limits allow.
"""

import os
import pickle
import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from traceback import format_exc
from typing import Final, NamedTuple, TypeVar

from footprint.errors import FootprintError, InputError, LimitError, UsageError
from footprint.process.two_processors import forked, usable_processor_count
from footprint.store.parquet import engine, own_place, reading, table_views, unreadable, whole_files
from footprint.store.tables import PARTITION_COLUMN, TABLES
from footprint.system.limits import Limits, draw_bytes, draw_entries, limits_in_force
from footprint.text.units import format_bytes

Cell = str | int | float | bool | None
"""A value of a row."""
_ROWS_AT_ONCE: Final = 10_000
# In this order: nothing can be allowed again after the last of them.
_LOCKS: Final = (
    "SET parquet_metadata_cache = true",
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
# One share for the engine, one for the texts of the answer, and one for what Python needs for them.
_MEMORY_SHARES: Final = 3
# What the engine and its threads take before they do anything.
_ENGINE_BYTES: Final = 256 << 20
_Done = TypeVar("_Done")


class QueryResult(NamedTuple):
    """The rows that SQL found.

    Attributes:
        columns: The names of the columns, each once.
        rows: The values, one for each column.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Dataset:
    """A dataset of `footprint scan` as it is now, opened for SQL. It has no tables until they are defined.

    Args:
        folder: The dataset.

    Attributes:
        files: By table of the dataset its files.
        views: By table the SQL that defines it.

    Raises:
        AccessError: If there is no dataset.
        InputError: If it is of an earlier version, or its path would be read as columns or a pattern.
        UsageError: If DuckDB is not installed.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._place = place = own_place(folder)
        self.files = whole_files(place)
        self.views = table_views(place, self.files)
        self._connection = engine(thread_count=usable_processor_count())
        doubled = place.replace("'", "''")
        settings = f"SET memory_limit = '{limits_in_force().size_bytes}B'", f"SET allowed_directories = ['{doubled}/']"
        for lock in (*settings, *_LOCKS):
            self._connection.execute(lock)

    def set_variables(self, values: Mapping[str, Cell]) -> None:
        """Set what `getvariable` returns in SQL."""
        for name, value in values.items():
            self._connection.execute(f"SET VARIABLE {name} = ?", [value])

    def define(self, table: str, statements: str) -> None:
        """Run the statements that define a table.

        Raises:
            InputError: If a file of the dataset is damaged, or of another version.
            LimitError: If it takes more memory than the limits allow.
        """
        with reading(self._folder, table), _memory_errors(self._folder):
            self._connection.execute(statements)

    def check_rows(self, tables: Iterable[str], parts: Iterable[tuple[str, str]]) -> None:
        """Check that tables have the files of parts that have rows on a day.

        Raises:
            InputError: If one has not.
        """
        wanted = list(parts)
        for table in tables:
            if not self.files[table]:
                raise InputError(
                    os.path.join(self._folder, table), "there are no Parquet files, but `inputs` tells of some"
                )
            present, is_by_day = set(self.files[table]), TABLES[table].is_partitioned
            place = os.path.join(self._place, table)
            names = [
                f"{PARTITION_COLUMN}={day}/{part}.parquet" if is_by_day else f"{part}.parquet" for day, part in wanted
            ]
            for missing in [name for name in names if os.path.join(place, name) not in present][:1]:
                cause = f"{missing} is missing, but `inputs` tells of processes in it: scan into a new folder"
                raise InputError(os.path.join(self._folder, table), cause)

    def fill(self, table: str, columns: Mapping[str, list[str]]) -> None:
        """Add rows of texts to a table in memory."""
        typed = ", ".join("unnest(?::VARCHAR[])" for _ in columns)
        self._connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {typed}", list(columns.values()))

    def run(self, sql: str) -> QueryResult:
        """Run SQL of footprint itself.

        Raises:
            InputError: If a file of the dataset is damaged.
            LimitError: If it finds more rows or texts than the limits allow.
        """
        return self._run(sql, self._folder, lambda cause: unreadable(self._folder, cause))

    def ask(self, sql: str) -> QueryResult:
        """Run one SELECT of somebody else.

        Raises:
            LimitError: If it finds more rows or texts than the limits allow.
            UsageError: If it is anything else than a SELECT, or fails.
        """
        import duckdb  # noqa: PLC0415 # of an extra

        try:
            kinds = [statement.type for statement in self._connection.extract_statements(sql)]
        except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:
            raise UsageError(f"--query: {_cause(error)}") from None
        if kinds != [duckdb.StatementType.SELECT]:
            raise UsageError("--query: write one SELECT: a dataset is only read")
        return self._run(sql, "--query", lambda cause: UsageError(f"--query: {cause}"))

    def _run(self, sql: str, subject: str, failed: Callable[[str], FootprintError]) -> QueryResult:
        import duckdb  # noqa: PLC0415 # of an extra

        rows: list[tuple[Cell, ...]] = []
        try:
            with _memory_errors(subject):
                result = self._connection.execute(sql)
                columns = tuple(described[0] for described in result.description or ())
                while some := result.fetchmany(_ROWS_AT_ONCE):
                    draw_entries(len(some), "the rows of the answer")
                    cells = [tuple(map(_cell, row)) for row in some]
                    text_count = sum(len(cell) for row in cells for cell in row if isinstance(cell, str))
                    draw_bytes(text_count, "the texts of the answer")
                    rows += cells
        except FootprintError:
            raise
        except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:
            cause = _cause(error)
            raise (
                unreadable(self._folder, cause) if self._place in cause and self._place not in sql else failed(cause)
            ) from None
        return QueryResult(_named_once(columns), tuple(rows))


@contextmanager
def _memory_errors(subject: str) -> Iterator[None]:
    import duckdb  # noqa: PLC0415 # of an extra

    try:
        yield
    except duckdb.OutOfMemoryException:
        most = limits_in_force().size_bytes
        more = format_bytes(2 * most)
        raise LimitError(subject, f"spent {format_bytes(most)} of memory", "bytes", more) from None


def _cause(error: Exception) -> str:
    """Return the first line of a message: those that follow repeat the SQL."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _named_once(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Number the columns whose names come again."""
    seen: dict[str, int] = {}
    unique = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(unique)


def _cell(value: object) -> Cell:
    """Return a value as JSON has it: times as texts, a list as its parts with commas."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return ", ".join(str(_cell(item)) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_cell(item)}" for key, item in value.items())
    return str(value)


def confined(work: Callable[[], _Done], subject: str) -> _Done:
    """Return what a call returns, or raise what it raises; the process of both is a copy of this one.

    An engine written in C++ sees neither Ctrl-C nor a timer while it works. A process can be ended at any moment.

    Args:
        work: The call. What it returns can be pickled.
        subject: What it is about, for errors.

    Raises:
        LimitError: Where it takes more than the limits in force allow.
    """
    limits = limits_in_force()
    caps = {
        resource.RLIMIT_CPU: limits.seconds,
        resource.RLIMIT_DATA: _data_bytes() + _ENGINE_BYTES + _MEMORY_SHARES * limits.size_bytes,
    }
    with forked(lambda: _packed_result(work), caps) as answer:
        payload, number = answer()
    if not payload:
        raise _end(number, limits, subject)
    done, error, trace = pickle.loads(payload)  # noqa: S301 # of our own process
    if error is None:
        return done  # type: ignore[no-any-return]
    raise error from (None if isinstance(error, FootprintError) else RuntimeError(trace))


def _packed_result(work: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps((work(), None, ""))
    except Exception as error:  # noqa: BLE001 # it is raised in the other process
        return pickle.dumps((None, error, format_exc()))


def _data_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _end(number: int, limits: Limits, subject: str) -> LimitError:
    """Return the error of a process that was ended before it told anything."""
    if number == signal.SIGXCPU:
        cause = f"spent {limits.seconds} of {limits.seconds} seconds of processor time"
        return LimitError(subject, cause, "seconds", str(2 * limits.seconds))
    cause = f"its process ended for want of memory (signal {number}), with {format_bytes(limits.size_bytes)} allowed"
    return LimitError(subject, cause, "bytes", format_bytes(2 * limits.size_bytes))
