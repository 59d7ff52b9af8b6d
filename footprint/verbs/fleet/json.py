"""The JSON of `fleet`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.store.asking import Cell
from footprint.verbs.fleet.call import Fleet

__all__ = ("fleet_members",)


class FleetTarget(NamedTuple):
    """The dataset, and the state of the fleet that was looked at.

    Attributes:
        dataset: The folder.
        day: The day; null where no process is known.
        host_count: The number of hosts with processes then.
        process_count: The number of these processes.
        total_bytes: What these cost.
    """

    dataset: str
    day: str | None
    host_count: int
    process_count: int
    total_bytes: int


@dataclass(frozen=True, kw_only=True)
class FleetJson(Envelope):
    """The answer to a question about a fleet.

    Attributes:
        target: The dataset.
        question: The name of the question; null for a query of the user's.
        sql: The SQL that found the rows.
        columns: The names of the columns, in their order.
        rows: The rows: by column a text, a number, true, false or null. Columns whose names end with `_bytes` have
            bytes.
        notes: What the reader of the figures must know.
    """

    verb: Literal["fleet"] = "fleet"
    target: FleetTarget
    question: str | None
    sql: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Cell], ...]
    notes: tuple[Note, ...]


def fleet_members(fleet: Fleet, version: str) -> Json:
    """Return the members of the answer."""
    day = None if fleet.day is None else fleet.day.isoformat()
    found = fleet.found
    return encode(
        FleetJson(
            tool=Tool("footprint", version),
            host={},
            target=FleetTarget(fleet.dataset, day, fleet.host_count, fleet.process_count, fleet.total_bytes),
            question=None if fleet.question is None else fleet.question.name,
            sql=fleet.sql,
            columns=found.columns,
            rows=tuple(dict(zip(found.columns, row, strict=True)) for row in found.rows),
            notes=fleet.notes,
        )
    )
