"""The questions: each is a file of SQL in `sql/`, whose first lines say what it asks and how the answer is told."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from footprint.errors import UsageError
from footprint.store.asking import Cell
from footprint.store.parquet import table_views, whole_files
from footprint.store.tables import PARTITION_COLUMN

_ENDING: Final = ".sql"
_DEFINED: Final = re.compile(r"^CREATE (?:TABLE|VIEW|MACRO) (\w+)", re.MULTILINE)
_COMMENT: Final = re.compile(r"--.*")
_ALWAYS: Final = ("host_days", "current_processes")
"""What says of which day and processes each answer is."""
SAVINGS: Final = "savings"
"""The question whose largest answers are shown where none is asked."""


class FleetQuestion(NamedTuple):
    """A question about a fleet.

    Attributes:
        name: Its name on the command line.
        title: The question.
        verdict: How its first row is told: columns in braces.
        sql: The SQL that answers it.
        is_about_programs: Whether it is about programs that were scanned, where a dataset has no processes.
    """

    name: str
    title: str
    verdict: str
    sql: str
    is_about_programs: bool = False

    @property
    def compares(self) -> bool:
        """Return whether it compares two days, builds or package versions."""
        return "compared_" in self.sql

    @property
    def tells_savings(self) -> bool:
        """Return whether it is about findings of processes."""
        return "fleet_savings" in self.sql


@cache
def question_names() -> tuple[str, ...]:
    """Return the names of the questions."""
    names = (path.name for path in (files(__package__) / "sql").iterdir())
    return tuple(sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING) and name[0] != "_"))


def question_of(name: str) -> FleetQuestion:
    """Return a question.

    Raises:
        UsageError: If there is none of this name.
    """
    if name not in question_names():
        raise UsageError(f"there is no question {name[:80]!r}: ask {', '.join(question_names())}")
    return _read_question(name, files(__package__) / "sql")


def fitting_question(question: FleetQuestion, dataset_files: Mapping[str, Sequence[str]]) -> FleetQuestion:
    """Return the question as a dataset can answer it: by program, where it has no processes; itself where it cannot."""
    folder = files(__package__) / "sql" / "of_programs"
    is_answered = not dataset_files["processes"] and (folder / f"{question.name}{_ENDING}").is_file()
    if not dataset_files["programs"] or not is_answered:
        return question
    return _read_question(question.name, folder)._replace(is_about_programs=True)


def _read_question(name: str, folder: Traversable) -> FleetQuestion:
    sql = (folder / f"{name}{_ENDING}").read_text(encoding="utf-8")
    title, verdict = (line.removeprefix("-- ") for line in sql.split("\n", 2)[:2])
    return FleetQuestion(name, title, verdict, sql)


def shared_sql(name: str) -> str:
    """Return the SQL of a file in the folder."""
    return (files(__package__) / "sql" / f"{name}{_ENDING}").read_text(encoding="utf-8")


def definitions_of(question: FleetQuestion | None, tables: Mapping[str, str]) -> dict[str, str]:
    """Return by table what defines it, in order: what a question names, since each table is a search for files.

    Args:
        question: The question; None for all tables.
        tables: What defines the tables of the dataset.
    """
    blocks = {name: f"{view};" for name, view in tables.items()}
    for shared in ("_state", "_sides")[: 2 if question and question.compares else 1]:
        blocks |= {_DEFINED.findall(block)[-1]: block for block in shared_sql(shared).strip().split("\n\n")}
    coverage = ("program_coverage",) if question and question.tells_savings else ()
    named = " ".join(blocks if question is None else (question.sql, *_ALWAYS, *coverage))
    kept = set()
    for name, block in reversed(blocks.items()):
        if re.search(rf"\b{name}\b", _COMMENT.sub("", named)):
            kept.add(name)
            # Tables of the dataset name files alone.
            named += "" if name in tables else block
    return {name: block for name, block in blocks.items() if name in kept}


def with_sides(
    variables: Mapping[str, Cell], question: FleetQuestion | None, dataset_files: Mapping[str, Sequence[str]]
) -> Mapping[str, Cell]:
    """Return the variables of a question: the first and the last day are compared where no sides are named."""
    days = [path.rpartition(f"/{PARTITION_COLUMN}=")[2].partition("/")[0] for path in dataset_files["processes"]]
    if not days or question is None or not question.compares:
        return variables
    sides = {"old_side": min(days), "new_side": max(days)}
    return {**variables, **{name: variables[name] or day for name, day in sides.items()}}


def script_of(question: FleetQuestion, folder: str, variables: Mapping[str, Cell]) -> str:
    """Return SQL that answers a question in any DuckDB: tables, variables, the state of the fleet, the question.

    Raises:
        AccessError: If there is no dataset.
    """
    dataset_files = whole_files(folder)
    question = fitting_question(question, dataset_files)
    variables = with_sides(variables, question, dataset_files)
    settings = "\n".join(f"SET VARIABLE {name} = {_literal(value)};" for name, value in variables.items())
    definitions = definitions_of(question, table_views(folder)).values()
    return "\n\n".join((settings, *definitions, question.sql))


def _literal(value: Cell) -> str:
    if value is None:
        return "NULL"
    doubled = str(value).replace("'", "''")
    return f"'{doubled}'" if isinstance(value, str) else doubled
