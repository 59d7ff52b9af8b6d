"""`footprint.fleet`: questions about the programs and processes of many hosts."""

import os
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.files import StrPath
from footprint.store.asking import Cell, Dataset, Found
from footprint.units import counted, format_bytes
from footprint.verbs.fleet.matches import add_matches
from footprint.verbs.fleet.questions import SAVINGS, FleetQuestion, question_of, shared_sql

__all__ = ("Fleet", "fleet")

_SILENT_DAYS: Final = 7
_DAYS: Final = "SELECT min(day), max(day) FROM inputs WHERE process_count > 0"
_LAST_DAYS: Final = """
SELECT max(day) FROM inputs
WHERE process_count > 0 AND (getvariable('day') IS NULL OR day <= getvariable('day')) GROUP BY host"""
_GONE: Final = """
SELECT count(*), sum(private_bytes)::BIGINT, arg_max(program, private_bytes) FROM (
    SELECT program, coalesce(sum(private_bytes), 0) AS private_bytes FROM compared_amounts
    WHERE side = 'old' AND program NOT IN (SELECT program FROM matched_owners) GROUP BY program
)"""
_WHOLE: Final = """
SELECT count(DISTINCT host), coalesce(sum(process_count), 0)::BIGINT, coalesce(sum(per_process_bytes), 0)::BIGINT
FROM current_processes"""
_NOTHING: Final = "?"
"""A name that no day, build or version has."""
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
        LimitError: If there are more rows than the limits allow.
        UsageError: If DuckDB is not installed, there is no such question or day, or the SQL is no SELECT or fails.
    """
    if question is not None and query is not None:
        raise UsageError("ask a question, or write a query of your own")
    asked = None if query is not None else question_of(question or SAVINGS)
    if not (asked and asked.compares) and (before, after) != (None, None):
        raise UsageError("--from and --to go with the question `growth`")
    opened = Dataset(os.fspath(dataset))
    notes: list[Note] = []
    state, silent_count = _state(opened, day)
    if silent_count:
        detail = f"they were not scanned in the {_SILENT_DAYS} days until {state['day']}: they are left out"
        notes.append(Note("fleet-hosts-silent", counted(silent_count, "host"), detail))
    opened.set_variables({**state, "count": count, "program": program})
    opened.run(shared_sql("_state"))
    if asked is not None and asked.compares:
        _compare(opened, before, after, notes)
    sql = asked.sql if asked is not None else query or ""
    found = opened.ask(sql) if asked is None else opened.run(sql)
    ((hosts, processes, total),) = opened.run(_WHOLE).rows
    last = state["day"]
    return Fleet(
        os.fspath(dataset),
        asked,
        sql,
        last if isinstance(last, date) else None,
        int(hosts or 0),
        int(processes or 0),
        int(total or 0),
        found,
        query is None and question is None,
        tuple(notes),
    )


def _state(opened: Dataset, day: str | None) -> tuple[Mapping[str, Cell | date], int]:
    """Return the days of the fleet's state, and how many hosts were not seen in them.

    Raises:
        UsageError: If there is no such day.
    """
    chosen = None if day is None else _day_of(day)
    opened.set_variables({"day": chosen})
    last_days = [date.fromisoformat(str(last)) for (last,) in opened.run(_LAST_DAYS).rows]
    if not last_days:
        ((earliest, _),) = opened.run(_DAYS).rows
        if earliest is not None:
            raise UsageError(f"the dataset begins on {earliest}")
        return {"day": None, "first_day": None}, 0
    until = chosen or max(last_days)
    since = until - timedelta(days=_SILENT_DAYS - 1)
    seen = [last for last in last_days if last >= since]
    return {"day": until, "first_day": min(seen, default=until)}, len(last_days) - len(seen)


def _day_of(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is no day: write it like 2026-11-23") from None


def _compare(opened: Dataset, before: str | None, after: str | None, notes: list[Note]) -> None:
    """Add the tables of what is compared.

    Raises:
        UsageError: If no process is of one of the two sides.
    """
    ((first, last),) = opened.run(_DAYS).rows
    old, new = before or str(first), after or str(last)
    if old == new:
        notes.append(Note("fleet-one-day", old, "both sides are the same: there is nothing to compare it with"))
        old = new = _NOTHING
    sides = {"old_side": old, "new_side": new}
    opened.set_variables(sides)
    opened.run(shared_sql("_sides"))
    sides_known = {side for (side,) in opened.run("SELECT DISTINCT side FROM compared_processes").rows}
    for side, wanted in zip(("old", "new"), sides.values(), strict=True):
        if side not in sides_known and wanted not in {"None", _NOTHING}:
            kind = "on" if _DAY.fullmatch(wanted) else "with the build or version"
            raise UsageError(f"no process is known {kind} {wanted[:80]}")
    add_matches(opened)
    ((gone_count, gone_bytes, largest),) = opened.run(_GONE).rows
    if gone_count:
        held = format_bytes(int(gone_bytes or 0))
        detail = f"no process of them is on the new side; they held {held}, most of it {largest}"
        notes.append(Note("fleet-programs-gone", counted(int(gone_count), "program"), detail))
