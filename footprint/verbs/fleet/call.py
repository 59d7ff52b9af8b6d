"""`footprint.fleet`: questions about the programs and processes of many hosts."""

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.release.matching import comparable_name, matched_owners, matched_programs
from footprint.store.asking import Cell, Dataset, QueryResult, confined
from footprint.store.parquet import keep_dataset, own_place, prune
from footprint.store.remote import is_store, local_folder, locked_store, upload
from footprint.system.files import StrPath
from footprint.text.units import counted, format_bytes
from footprint.verbs.fleet.questions import (
    SAVINGS,
    FleetQuestion,
    definitions_of,
    fitting_question,
    question_of,
    with_sides,
)

_KEPT: Final = re.compile(r"([0-9]{1,5})d?")
_FIRST_DAY: Final = "SELECT min(day) FROM process_inputs"
_SILENT: Final = "SELECT getvariable('day'), count(*) FILTER (day < getvariable('first_day')), count(*) FROM host_days"
_PARTS: Final = """
SELECT DISTINCT day::VARCHAR, part FROM process_inputs
WHERE has_files AND day BETWEEN getvariable('first_day') AND getvariable('day')"""
_SIDES: Final = "SELECT getvariable('old_side'), getvariable('new_side')"
_GONE: Final = """
SELECT count(*), sum(private_bytes), arg_max(program, private_bytes) FROM (
    SELECT program, coalesce(sum(private_bytes), 0) AS private_bytes FROM compared_amounts
    WHERE side = 'old' AND program NOT IN (SELECT program FROM matched_owners) GROUP BY program
)"""
_WHOLE: Final = """
SELECT count(DISTINCT host), coalesce(sum(process_count), 0),
       coalesce(sum(cost_bytes), 0)
FROM current_processes"""
_COSTS: Final = """
SELECT sum(cost_bytes), sum(process_count), {name}
FROM current_processes GROUP BY {name} ORDER BY 1 DESC NULLS LAST, 3"""
_PROGRAMS: Final = "SELECT count(DISTINCT host), count(DISTINCT program) FROM current_programs"
_COVERAGE: Final = """
SELECT count(DISTINCT (program, build_id)) - count(DISTINCT (program, build_id)) FILTER (NOT is_known),
       count(DISTINCT (program, build_id)),
       count(DISTINCT host) FILTER (NOT is_known), count(DISTINCT host)
FROM program_coverage"""
_UNKNOWN: Final = (
    "SELECT program FROM program_coverage WHERE NOT is_known GROUP BY program ORDER BY count(*) DESC, program"
)
_MOST_UNKNOWN: Final = 10
"""How many programs a note names."""
_WITHOUT_MEMORY: Final = """
SELECT count(DISTINCT host) FROM current_processes
WHERE host NOT IN (SELECT host FROM current_hosts WHERE available_bytes IS NOT NULL)"""
_WITHOUT_KERNEL: Final = """
SELECT sum(process_count) FILTER (cost_bytes IS NOT NULL AND per_process_bytes IS NULL), sum(process_count)
FROM current_processes"""
_COMPARED_PRIVATE: Final = """
SELECT count(*) FILTER (NOT is_whole), count(*) FROM (
    SELECT bool_and(per_process_bytes IS NOT NULL) AS is_whole FROM processes
    WHERE build_id IS NOT NULL AND private_bytes IS NOT NULL AND day <= getvariable('day')
      AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
    GROUP BY program HAVING count(DISTINCT build_id) > 1
)"""
_ALONE: Final = """
SELECT count(*) FROM (
    SELECT program FROM current_processes WHERE process_count = 1 GROUP BY program HAVING count(*) < 5
)"""
_OF_PROCESSES: Final = ("hosts", "processes", "rows", "owners")
"""The tables that each process has rows in."""
_CUT: Final = re.compile(r"\nLIMIT ([0-9]+);")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class FleetCost(NamedTuple):
    """What the processes of one program, or of one host, cost.

    Attributes:
        cost_bytes: The bytes.
        process_count: How many they are.
        name: The program or the host.
    """

    cost_bytes: int
    process_count: int
    name: str


class Fleet(NamedTuple):
    """The answer to a question about a fleet.

    Attributes:
        dataset: The folder.
        question: The question; None for SQL of the user's, and where none was asked.
        sql: The SQL that found the rows.
        day: The day of the state of the fleet; None where no process is known.
        host_count: The number of hosts with processes then; of a dataset without processes those with programs.
        process_count: The number of these processes.
        program_count: The number of programs in a dataset without processes; else 0.
        total_bytes: What these cost.
        result: The rows.
        is_overview: Whether nothing was asked: the rows are those of the largest savings.
        notes: What the reader of the figures must know.
        program_costs: What each program costs, with its processes and its name, the dearest first; only in an overview.
            The private memory alone where the rest is not known.
        host_costs: The same of each host.
    """

    dataset: str
    question: FleetQuestion | None
    sql: str
    day: date | None
    host_count: int
    process_count: int
    program_count: int
    total_bytes: int
    result: QueryResult
    is_overview: bool
    notes: tuple[Note, ...]
    program_costs: tuple[FleetCost, ...] = ()
    host_costs: tuple[FleetCost, ...] = ()


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
    known_question = None if query is not None else question_of(question or SAVINGS)
    if not (known_question and known_question.compares) and (before, after) != (None, None):
        raise UsageError("--from and --to go with the question `growth`")
    name = os.fspath(dataset)
    variables = variables_of(day, before, after, count, program)

    def answered() -> Fleet:
        return _answered(folder, known_question, query, variables, is_overview=query is None and question is None)

    with local_folder(name) as folder:
        keep_dataset(folder)
        result = confined(answered, folder if query is None else "--query")
    notes = [Note(*(text.replace(folder, name) for text in note)) for note in result.notes]
    return result._replace(dataset=name, notes=tuple(notes))


def prune_dataset(dataset: str, question: str | None, keep: str | None) -> str:
    """Remove old days of a dataset, and return a line that says so.

    Raises:
        AccessError: If there is no dataset, or a scan writes to it.
        InputError: If a file of it is damaged.
        UsageError: If the words do not say how many days are kept.
    """
    days = _KEPT.fullmatch(keep or "")
    if question != "prune" or days is None:
        raise UsageError("remove old days with `footprint fleet FOLDER prune --keep 90d`")
    if is_store(dataset):
        with locked_store(dataset), local_folder(dataset, is_written=True) as copy:
            first, count = prune(copy, int(days[1]))
            upload(dataset, copy)
    else:
        own_place(dataset)
        first, count = prune(dataset, int(days[1]))
    if first is None:
        return "The dataset has no processes.\n"
    return f"The processes of {counted(count, 'input')} before {first} are gone; programs and files stay.\n"


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
    folder: str, named: FleetQuestion | None, query: str | None, variables: Mapping[str, Cell], *, is_overview: bool
) -> Fleet:
    opened = Dataset(folder)
    if named is not None:
        named = fitting_question(named, opened.files)
    opened.set_variables(with_sides(variables, named, opened.files))
    for name, statements in definitions_of(named, opened.views).items():
        opened.define(name, statements)
    notes: list[Note] = []
    day = _last_day(opened, notes)
    if named is not None and named.compares:
        _compare(opened, notes)
    sql = named.sql if named is not None else query or ""
    result = opened.ask(sql) if named is None else opened.run(sql)
    if named is not None:
        _tell_left_out(opened, named, len(result.rows), notes)
    ((hosts, processes, total),) = opened.run(_WHOLE).rows
    programs: Cell = 0
    if named is not None and named.is_about_programs:
        ((hosts, programs),) = opened.run(_PROGRAMS).rows
        detail = "figures are predictions from files, for one process of each program: scan captures, or --processes"
        notes.append(Note("fleet-programs-alone", folder, detail))
    counts = int(hosts or 0), int(processes or 0), int(programs or 0), int(total or 0)
    costs = [_costs(opened, name) if is_overview and day is not None else () for name in ("program", "host")]
    return Fleet(folder, named, sql, day, *counts, result, is_overview, tuple(notes), *costs)


def _costs(opened: Dataset, name: str) -> tuple[FleetCost, ...]:
    """Return what each program, or each host, costs."""
    rows = opened.run(_COSTS.format(name=name)).rows
    return tuple(FleetCost(int(size or 0), int(count or 0), str(of or "")) for size, count, of in rows)


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
    if str(day) > datetime.now(UTC).date().isoformat():
        detail = "the last day is yet to come, as of a host whose clock is ahead: --day asks about the fleet of today"
        notes.append(Note("fleet-day-ahead", str(day), detail))
    if silent_count:
        detail = f"they were not scanned in the seven days until {day}: they are left out"
        notes.append(Note("fleet-hosts-silent", counted(int(silent_count), "host"), detail))
    return date.fromisoformat(str(day))


def _tell_left_out(opened: Dataset, question: FleetQuestion, row_count: int, notes: list[Note]) -> None:
    """Note what the question does not look at, or does not show."""
    cut = _CUT.search(question.sql)
    if cut and row_count == int(cut[1]):
        detail = "no more are told: smaller ones may be left out; --program and --query show others"
        notes.append(Note("fleet-rows-left-out", f"{row_count:,} rows", detail))
    if question.tells_savings:
        _tell_coverage(opened, notes)
    _tell_kernel_unknown(opened, question, notes)
    if question.name == "fit":
        ((unknown_count,),) = opened.run(_WITHOUT_MEMORY).rows
        if unknown_count:
            detail = "how much memory they have is not known: capture them with this version"
            notes.append(Note("fleet-memory-unknown", counted(int(unknown_count), "host"), detail))
    if question.name == "outliers":
        ((alone_count,),) = opened.run(_ALONE).rows
        if alone_count:
            detail = "they have fewer than 5 processes, so there is nothing usual to compare them with"
            notes.append(Note("fleet-few-siblings", counted(int(alone_count), "program"), detail))


def _tell_kernel_unknown(opened: Dataset, question: FleetQuestion, notes: list[Note]) -> None:
    """Note where private memory alone counts."""
    if question.name == "releases":
        sql, noun = _COMPARED_PRIVATE, "program"
        detail = "texts do not tell the kernel memory of some of their builds: private memory alone is compared"
    elif "cost_bytes" in question.sql:
        sql, noun = _WITHOUT_KERNEL, "process"
        detail = "their kernel memory is not known, as texts do not tell it: their private memory counts alone"
    else:
        return
    ((private_count, count),) = opened.run(sql).rows
    if private_count:
        notes.append(Note("fleet-kernel-unknown", f"{private_count:,} of {counted(int(count or 0), noun)}", detail))


def _tell_coverage(opened: Dataset, notes: list[Note]) -> None:
    """Note of how many programs the findings are known, and which are to be scanned."""
    ((known_count, count, lacking_count, host_count),) = opened.run(_COVERAGE).rows
    names = [str(name) for (name,) in opened.run(_UNKNOWN).rows]
    if names:
        more = f" and {len(names) - _MOST_UNKNOWN:,} more" if len(names) > _MOST_UNKNOWN else ""
        where = f"{lacking_count:,} of {host_count:,} hosts run others"
        detail = f"findings are known of all processes of these; {where}: scan {', '.join(names[:_MOST_UNKNOWN])}{more}"
        notes.append(
            Note("fleet-findings-unknown", f"{known_count:,} of {counted(int(count or 0), 'program')}", detail)
        )


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
    _add_matches(opened)
    ((gone_count, gone_bytes, largest),) = opened.run(_GONE).rows
    if gone_count:
        size = format_bytes(int(gone_bytes or 0))
        detail = f"no process of them is on the new side; they held {size}, most of it {largest}"
        notes.append(Note("fleet-programs-gone", counted(int(gone_count), "program"), detail))


def _add_matches(dataset: Dataset) -> None:
    """Fill the tables `matched_owners` and `matched_symbols`: what has another name on the new side."""
    owners: dict[str, dict[str, set[str]]] = {"old": defaultdict(set), "new": defaultdict(set)}
    for side, program, owner in dataset.run("SELECT DISTINCT side, program, owner FROM compared_amounts").rows:
        owners[str(side)][str(program)].add(str(owner))
    rows = []
    for program, new_program in matched_programs(owners["old"].keys(), owners["new"].keys()).items():
        before, now = owners["old"][program], owners["new"][new_program]
        names = matched_owners(before, now) | {program: new_program}
        rows += [("old", program, owner, new_program, names.get(owner, owner)) for owner in sorted(before)]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    keys = ("side", "program", "owner", "new_program", "new_owner")
    dataset.fill("matched_owners", {name: list(column) for name, column in zip(keys, columns, strict=True)})
    symbols = dataset.run(
        "SELECT symbol FROM compared_amounts WHERE symbol IS NOT NULL GROUP BY symbol HAVING count(DISTINCT side) = 1"
    )
    names_by_symbol = {symbol: comparable_name(symbol) for (symbol,) in symbols.rows if isinstance(symbol, str)}
    changed = {symbol: name for symbol, name in names_by_symbol.items() if symbol != name}
    dataset.fill("matched_symbols", {"symbol": list(changed), "name": list(changed.values())})
