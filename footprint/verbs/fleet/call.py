"""`footprint.fleet`: questions about the programs and processes of many hosts."""

import os
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.files import StrPath
from footprint.store.asking import Cell, Dataset, Found
from footprint.units import counted
from footprint.verbs.fleet.matches import add_matches
from footprint.verbs.fleet.questions import SAVINGS, FleetQuestion, question_of, shared_sql

__all__ = ("Fleet", "fleet")

_SILENT_DAYS: Final = 7
_DAYS: Final = "SELECT min(day), max(day) FROM inputs WHERE process_count > 0"
_WHOLE: Final = """
SELECT count(DISTINCT host), coalesce(sum(process_count), 0)::BIGINT, coalesce(sum(per_process_bytes), 0)::BIGINT
FROM current_processes"""
_NOTHING: Final = "?"
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
    last_days = [
        (date.fromisoformat(str(first)), date.fromisoformat(str(last)))
        for first, last in opened.run(
            "SELECT min(day), max(day) FROM inputs WHERE process_count > 0 GROUP BY host"
        ).rows
    ]
    if not last_days:
        return {"day": None, "first_day": None}, 0
    if chosen is not None and chosen < (earliest := min(first for first, _ in last_days)):
        raise UsageError(f"the dataset begins on {earliest}")
    until = chosen or max(last for _, last in last_days)
    since = until - timedelta(days=_SILENT_DAYS - 1)
    # Only for the last day is it known here which days of the hosts are needed; an earlier one reads all seven.
    seen = [min(last, until) for first, last in last_days if first <= until and last >= since]
    first_day = min(seen, default=until) if chosen is None else since
    return {"day": until, "first_day": first_day}, sum(
        1 for first, last in last_days if first <= until and last < since
    )


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
    is_one_day = before is None and after is None and first == last
    if is_one_day:
        notes.append(Note("fleet-one-day", str(last), "the dataset has one day: there is nothing to compare it with"))
    # A name that no day, build or version has.
    sides = {
        "old_side": before or (_NOTHING if is_one_day else str(first)),
        "new_side": after or (_NOTHING if is_one_day else str(last)),
    }
    opened.set_variables(sides)
    opened.run(shared_sql("_sides"))
    sides_known = {side for (side,) in opened.run("SELECT DISTINCT side FROM compared_processes").rows}
    for side, wanted in zip(("old", "new"), sides.values(), strict=True):
        if side not in sides_known and wanted not in {"None", _NOTHING}:
            kind = "on" if _DAY.fullmatch(wanted) else "with the build or version"
            raise UsageError(f"no process is known {kind} {wanted[:80]}")
    add_matches(opened)
