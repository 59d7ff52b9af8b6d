"""The file with the history of programs: an SQLite database.

Version 1 (`user_version`): a row of `recording` for each release of a program, its figures, and the part of each owner
in each figure.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote

from footprint.errors import AccessError, FootprintError, InputError, UnsupportedError, cause_of
from footprint.release.history import Recording, Release
from footprint.system.files import keep_input
from footprint.system.whole_file import refuse_shared_place

# "FPrt" marks the databases of footprint.
_APPLICATION_ID: Final = 0x46507274
_VERSION: Final = 1
_TABLES: Final = {
    "recording": "CREATE TABLE recording (id INTEGER PRIMARY KEY, program TEXT NOT NULL, version TEXT NOT NULL, "
    "is_commit INTEGER NOT NULL, time INTEGER NOT NULL, source TEXT NOT NULL, tool_version TEXT NOT NULL, "
    "UNIQUE (program, version))",
    "figure": "CREATE TABLE figure (recording INTEGER NOT NULL, name TEXT NOT NULL, amount INTEGER NOT NULL, "
    "PRIMARY KEY (recording, name)) WITHOUT ROWID",
    "part": "CREATE TABLE part (recording INTEGER NOT NULL, figure TEXT NOT NULL, owner TEXT NOT NULL, "
    "amount INTEGER NOT NULL, PRIMARY KEY (recording, figure, owner)) WITHOUT ROWID",
}
# How long to wait for another process that writes.
_LONGEST_WAIT_SECONDS: Final = 30
_MOST_RECORDINGS: Final = 100_000
_MOST_ROWS: Final = 5_000_000
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_T = TypeVar("_T")
_FAILS_BY_ACCESS: Final = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_AUTH,
)


def write_recording(path: str, recording: Recording) -> tuple[Release | None, int]:
    """Add a recording to a history, and create the history if there is none; the same version is replaced.

    Either everything is written, or nothing. The call waits for another process that writes.

    Returns:
        The release that was replaced, or None; and the number of releases of the program now.

    Raises:
        AccessError: If the file cannot be written.
        InputError: If it is damaged, or no history.
        UnsupportedError: If a newer footprint wrote it.
    """
    with _opened(path, "rwc") as database:
        # Lock before looking: of two processes that create the same file, only one must find it empty.
        database.execute("BEGIN IMMEDIATE")
        if _is_empty(database):
            for statement in _TABLES.values():
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {_VERSION}")
        _check(database, path)
        release = recording.release
        key = (release.program, release.version)
        row = database.execute(
            "SELECT program, version, is_commit, time, source, tool_version, id FROM recording "
            "WHERE program = ? AND version = ?",
            key,
        ).fetchone()
        replaced = None if row is None else _release(row[:-1], path)
        if row is not None:
            # Keep the number of the row, and with it the order among recordings of the same time.
            for table in ("figure", "part"):
                database.execute(f"DELETE FROM {table} WHERE recording = ?", row[-1:])  # noqa: S608 # two fixed names
            database.execute("DELETE FROM recording WHERE id = ?", row[-1:])
        number = database.execute(
            "INSERT INTO recording VALUES (?, ?, ?, ?, ?, ?, ?)",
            (None if row is None else row[-1], *release),
        ).lastrowid
        database.executemany(
            "INSERT INTO figure VALUES (?, ?, ?)", [(number, *figure) for figure in recording.figures.items()]
        )
        parts = [(number, figure, *part) for figure, owners in recording.parts.items() for part in owners.items()]
        database.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", parts)
        count = database.execute("SELECT COUNT(*) FROM recording WHERE program = ?", key[:1]).fetchone()[0]
        database.execute("COMMIT")
    return replaced, int(count)


def read_recordings(path: str) -> tuple[Recording, ...]:
    """Read the recordings of a history, in the order in which they were made.

    Raises:
        AccessError: If the file cannot be opened.
        InputError: If it is damaged, or no history.
        UnsupportedError: If a newer footprint wrote it.
    """
    with _opened(path, "ro") as database:
        # Read everything from one state of the file.
        database.execute("BEGIN")
        _check(database, path)
        releases = {
            _number(row[-1], path): _release(row[:-1], path)
            for row in _rows(
                database,
                "SELECT program, version, is_commit, time, source, tool_version, id FROM recording ORDER BY id",
                _MOST_RECORDINGS,
                path,
            )
        }
        figures: dict[int, dict[str, int]] = {number: {} for number in releases}
        parts: dict[int, dict[str, dict[str, int]]] = {number: {} for number in releases}
        for number, name, amount in _rows(database, "SELECT recording, name, amount FROM figure", _MOST_ROWS, path):
            _of(figures, number, path)[_text(name, path)] = _number(amount, path)
        for number, name, owner, amount in _rows(
            database, "SELECT recording, figure, owner, amount FROM part", _MOST_ROWS, path
        ):
            owners = _of(parts, number, path).setdefault(_text(name, path), {})
            owners[_text(owner, path)] = _number(amount, path)
    return tuple(Recording(release, figures[number], parts[number]) for number, release in releases.items())


@contextmanager
def _opened(path: str, mode: str) -> Iterator[sqlite3.Connection]:
    """Open a database; errors of SQLite become errors of footprint, and changes without a commit are undone."""
    try:
        # SQLite would cut the path at a NUL.
        if "\0" in path or (os.path.exists(path) and not os.path.isfile(path)):
            raise InputError(path, "it is not a file")
        # A file may be called `:memory:`, or have a `?` in its name.
        address = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode={mode}"
        if mode == "rwc":
            refuse_shared_place(path)
        if mode == "ro":
            with open(path, "rb", buffering=0) as file:
                keep_input(file.fileno())
        with closing(
            sqlite3.connect(address, timeout=_LONGEST_WAIT_SECONDS, isolation_level=None, uri=True)
        ) as database:
            yield database
    except FootprintError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise AccessError(path, f"another process has been writing to it for {_LONGEST_WAIT_SECONDS} s") from error
        if code in _FAILS_BY_ACCESS:
            raise AccessError(path, str(error)) from error
        raise InputError(path, f"it is not a history, or it is damaged: {error}") from error
    except MemoryError as error:
        # SQLite says so of a record that claims 4 GiB, whatever memory there is.
        raise InputError(path, "it is damaged, or larger than the memory that is left") from error
    except (OSError, ValueError) as error:
        raise AccessError(path, cause_of(error)) from error


def _is_empty(database: sqlite3.Connection) -> bool:
    return not _setting(database, "application_id") and not database.execute("SELECT 1 FROM sqlite_master").fetchone()


def _setting(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def _check(database: sqlite3.Connection, path: str) -> None:
    """Refuse other databases, newer versions and other tables."""
    if _is_empty(database):
        raise InputError(path, "it is empty: nothing was recorded there")
    if _setting(database, "application_id") != _APPLICATION_ID:
        raise InputError(path, "it is a database, but not a history of footprint")
    version = _setting(database, "user_version")
    if version > _VERSION:
        raise UnsupportedError(path, f"it is a history of version {version}; this footprint reads {_VERSION}")
    schema = database.execute(
        "SELECT name, sql FROM sqlite_master "
        # What SQLite adds: the index of a constraint, and the statistics of ANALYZE; no trigger or view by such a name.
        "WHERE NOT (name LIKE 'sqlite\\_%' ESCAPE '\\' AND (type = 'table' OR sql IS NULL))"
    ).fetchall()
    if version != _VERSION or dict(schema) != _TABLES or len(schema) != len(_TABLES):
        raise InputError(path, "its tables are not those of a history")


def _rows(database: sqlite3.Connection, query: str, most: int, path: str) -> Iterator[tuple[Any, ...]]:
    for count, row in enumerate(database.execute(query)):
        if count >= most:
            raise InputError(path, f"it has more than {most:,} rows, more than any history that footprint reads")
        yield row


def _of(rows: dict[int, _T], number: object, path: str) -> _T:
    try:
        return rows[number]  # type: ignore[index] # anything may stand there
    except (KeyError, TypeError):
        raise InputError(path, "it is damaged: a figure belongs to no release") from None


def _release(row: tuple[Any, ...], path: str) -> Release:
    program, version, is_commit, time, source, tool_version = row
    if is_commit not in {0, 1} or not 0 <= _number(time, path) <= _LAST_SECOND:
        raise InputError(path, "it is damaged: a recording has no time, or is neither a version nor a commit")
    if not program or not version:
        raise InputError(path, "it is damaged: a recording has no program, or no version")
    return Release(
        _text(program, path),
        _text(version, path),
        bool(is_commit),
        time,
        _text(source, path),
        _text(tool_version, path),
    )


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InputError(path, "it is damaged: a name in it is not a text")
    return value


def _number(value: object, path: str) -> int:
    # SQLite accepts values of any type in any column.
    if type(value) is not int or value < 0:
        raise InputError(path, "it is damaged: an amount in it is not a size or count")
    return value
