"""The questions: each is a file of SQL in `sql/`, whose first lines say what it asks and how the answer is told."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from footprint.errors import UsageError
from footprint.store.parquet import table_views

__all__ = ("SAVINGS", "FleetQuestion", "question_names", "question_of", "script_of", "shared_sql")

_ENDING: Final = ".sql"
SAVINGS: Final = "savings"
"""The question whose largest answers are shown where none is asked."""


class FleetQuestion(NamedTuple):
    """A question about a fleet.

    Attributes:
        name: Its name on the command line.
        title: The question.
        verdict: How its first row is told: columns in braces.
        sql: The SQL that answers it.
    """

    name: str
    title: str
    verdict: str
    sql: str

    @property
    def compares(self) -> bool:
        """Return whether it compares two days, builds or package versions."""
        return "compared_" in self.sql


@cache
def question_names() -> tuple[str, ...]:
    """Return the names of the questions."""
    names = (one.name for one in (files(__package__) / "sql").iterdir())
    return tuple(sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING) and name[0] != "_"))


def question_of(name: str) -> FleetQuestion:
    """Return a question.

    Raises:
        UsageError: If there is none of this name.
    """
    if name not in question_names():
        raise UsageError(f"there is no question {name[:80]!r}: ask {', '.join(question_names())}")
    sql = shared_sql(name)
    title, verdict = (line.removeprefix("-- ") for line in sql.split("\n", 2)[:2])
    return FleetQuestion(name, title, verdict, sql)


def shared_sql(name: str) -> str:
    """Return the SQL of a file in the folder."""
    return (files(__package__) / "sql" / f"{name}{_ENDING}").read_text(encoding="utf-8")


def script_of(question: FleetQuestion, folder: str, variables: Mapping[str, str | float | None]) -> str:
    """Return SQL that answers a question in any DuckDB: tables, variables, the state of the fleet, the question.

    Raises:
        AccessError: If there is no dataset.
    """
    settings = [f"SET VARIABLE {name} = {_literal(value)};" for name, value in variables.items()]
    shared = ["_state", "_sides"] if question.compares else ["_state"]
    tables = [f"{view};" for view in table_views(folder).values()]
    return "\n".join((*tables, *settings, *(f"\n{shared_sql(name)}" for name in shared), question.sql))


def _literal(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    doubled = str(value).replace("'", "''")
    return f"'{doubled}'" if isinstance(value, str) else doubled
