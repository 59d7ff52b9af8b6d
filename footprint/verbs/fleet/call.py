"""`footprint.fleet`: questions about the programs and processes of many hosts."""

import os
import re
from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.files import StrPath
from footprint.store.asking import Cell, Dataset, Found
from footprint.store.confined import confined
from footprint.store.parquet import keep_dataset
from footprint.units import counted, format_bytes
from footprint.verbs.fleet.matches import add_matches
from footprint.verbs.fleet.questions import SAVINGS, FleetQuestion, definitions_of, question_of

__all__ = ("Fleet", "fleet", "variables_of")

_FIRST_DAY: Final = "SELECT min(day) FROM inputs WHERE process_count > 0"
_SILENT: Final = "SELECT getvariable('day'), count(*) FILTER (day < getvariable('first_day')), count(*) FROM host_days"
_PARTS: Final = """
SELECT DISTINCT day::VARCHAR, part FROM inputs
WHERE row_count > 0 AND kind <> 'series' AND day BETWEEN getvariable('first_day') AND getvariable('day')"""
_SIDES: Final = "SELECT getvariable('old_side'), getvariable('new_side')"
_GONE: Final = """
SELECT count(*), sum(private_bytes)::BIGINT, arg_max(program, private_bytes) FROM (
    SELECT program, coalesce(sum(private_bytes), 0) AS private_bytes FROM compared_amounts
    WHERE side = 'old' AND program NOT IN (SELECT program FROM matched_owners) GROUP BY program
)"""
_WHOLE: Final = """
SELECT count(DISTINCT host), coalesce(sum(process_count), 0)::BIGINT, coalesce(sum(per_process_bytes), 0)::BIGINT
FROM current_processes"""
_ALONE: Final = """
SELECT count(*) FROM (
    SELECT program FROM current_processes WHERE process_count = 1 GROUP BY program HAVING count(*) < 5
)"""
_OF_PROCESSES: Final = ("hosts", "processes", "rows", "owners")
"""The tables that each process has rows in."""
_CUT: Final = re.compile(r"\nLIMIT ([0-9]+);")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class Fleet(NamedTuple):
    """The answer to a question about a fleet.

    Attributes:
        dataset: The folder.
        question: The question; None for SQL of the user's, and where none was asked.
        sql: The SQL that found the rows.
        day: The day of the state of the fleet; None where no process is known.
        host_count: The number of hosts with processes then.
        process_count: The number of these processes.
        total_bytes: What these cost.
        found: The rows.
        is_overview: Whether nothing was asked: the rows are those of the largest savings.
        notes: What the reader of the figures must know.
    """

    dataset: str
    question: FleetQuestion | None
    sql: str
    day: date | None
    host_count: int
    process_count: int
    total_bytes: int
    found: Found
    is_overview: bool
    notes: tuple[Note, ...]


def fleet(
    dataset: StrPath,
    question: str | None = None,
    *,
    query: str | None = None,
    day: str | None = None,
    before: str | None = None,
    after: str | None = None,
    count: int = 1,
    program: str | None = None,
) -> Fleet:
    """Answer a question about the fleet that a dataset of `footprint scan` describes.

    The fleet of a day has of each host the last day of the seven days until then, and of each process the last moment
    of it.

    Args:
        dataset: The folder.
        question: The name of a question; None for the largest savings.
        query: SQL to answer instead: one SELECT.
        day: The day, such as `2026-11-23`; None for the last one.
        before: What is compared: a day, the beginning of a build-id, or the version of a package; None for the first
            day.
        after: What it is compared with; None for the last day.
        count: The number N of processes, for `more`.
        program: A pattern of the programs that are looked at; None for all.

    Raises:
        AccessError: If there is no dataset.
        InputError: If a file of it is damaged.
        LimitError: If it takes more time, memory or rows than the limits allow.
        UsageError: If DuckDB is not installed, there is no such question or day, or the SQL is no SELECT or fails.
    """
    if question is not None and query is not None:
        raise UsageError("ask a question, or write a query of your own")
    asked = None if query is not None else question_of(question or SAVINGS)
    if not (asked and asked.compares) and (before, after) != (None, None):
        raise UsageError("--from and --to go with the question `growth`")
    folder = os.fspath(dataset)
    variables = variables_of(day, before, after, count, program)

    def answered() -> Fleet:
        return _answered(folder, asked, query, variables, is_overview=query is None and question is None)

    keep_dataset(folder)
    return confined(answered, folder if query is None else "--query")


def variables_of(
    day: str | None, before: str | None, after: str | None, count: int, program: str | None
) -> dict[str, Cell]:
    """Return what the SQL of the questions reads with `getvariable`.

    Raises:
        UsageError: If the day is none.
    """
    if day is not None:
        try:
            date.fromisoformat(day)
        except ValueError:
            raise UsageError(f"{day[:40]!r} is no day: write it like 2026-11-23") from None
    return {"day": day, "old_side": before, "new_side": after, "count": count, "program": program}


def _answered(
    folder: str, asked: FleetQuestion | None, query: str | None, variables: Mapping[str, Cell], *, is_overview: bool
) -> Fleet:
    opened = Dataset(folder)
    opened.set_variables(variables)
    for name, statements in definitions_of(asked, opened.views).items():
        opened.define(name, statements)
    notes: list[Note] = []
    day = _last_day(opened, notes)
    if asked is not None and asked.compares:
        _compare(opened, notes)
    sql = asked.sql if asked is not None else query or ""
    found = opened.ask(sql) if asked is None else opened.run(sql)
    if asked is not None:
        _tell_left_out(opened, asked, len(found.rows), notes)
    ((hosts, processes, total),) = opened.run(_WHOLE).rows
    counts = int(hosts or 0), int(processes or 0), int(total or 0)
    return Fleet(folder, asked, sql, day, *counts, found, is_overview, tuple(notes))


def _last_day(opened: Dataset, notes: list[Note]) -> date | None:
    """Return the day of the fleet's state; note the hosts that were not scanned for long.

    Raises:
        InputError: If a table is gone.
        UsageError: If the dataset begins later.
    """
    ((day, silent_count, host_count),) = opened.run(_SILENT).rows
    if not host_count:
        ((earliest,),) = opened.run(_FIRST_DAY).rows
        if earliest is not None:
            raise UsageError(f"the dataset begins on {earliest}")
        return None
    opened.check_rows(_OF_PROCESSES, [(str(day), str(part)) for day, part in opened.run(_PARTS).rows])
    if silent_count:
        detail = f"they were not scanned in the seven days until {day}: they are left out"
        notes.append(Note("fleet-hosts-silent", counted(int(silent_count), "host"), detail))
    return date.fromisoformat(str(day))


def _tell_left_out(opened: Dataset, asked: FleetQuestion, row_count: int, notes: list[Note]) -> None:
    """Note what the question does not look at, or does not show."""
    cut = _CUT.search(asked.sql)
    if cut and row_count == int(cut[1]):
        detail = "no more are told: smaller ones may be left out; --program and --query show others"
        notes.append(Note("fleet-rows-left-out", f"{row_count:,} rows", detail))
    if asked.name == "outliers":
        ((alone_count,),) = opened.run(_ALONE).rows
        if alone_count:
            detail = "they have fewer than 5 processes, so there is nothing usual to compare them with"
            notes.append(Note("fleet-few-siblings", counted(int(alone_count), "program"), detail))


def _compare(opened: Dataset, notes: list[Note]) -> None:
    """Match what is compared; note what is not.

    Raises:
        UsageError: If no process is of one of the two sides.
    """
    ((old, new),) = opened.run(_SIDES).rows
    sides_known = {side for (side,) in opened.run("SELECT DISTINCT side FROM compared_processes").rows}
    if old == new:
        if old is not None:
            notes.append(
                Note("fleet-one-day", str(old), "both sides are the same: there is nothing to compare it with")
            )
        return
    for side, wanted in (("old", str(old)), ("new", str(new))):
        if side not in sides_known:
            kind = "on" if _DAY.fullmatch(wanted) else "with the build or version"
            raise UsageError(f"no process is known {kind} {wanted[:80]}")
    add_matches(opened)
    ((gone_count, gone_bytes, largest),) = opened.run(_GONE).rows
    if gone_count:
        held = format_bytes(int(gone_bytes or 0))
        detail = f"no process of them is on the new side; they held {held}, most of it {largest}"
        notes.append(Note("fleet-programs-gone", counted(int(gone_count), "program"), detail))
