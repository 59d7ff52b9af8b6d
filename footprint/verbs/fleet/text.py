"""The report of `footprint fleet`."""

import re
from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Document, Facts, Fold, Heading, Table, Verdict
from footprint.formats.sections.notes import note_blocks
from footprint.formats.sections.rest import cut_at, rest_rows
from footprint.store.asking import Cell
from footprint.units import counted, format_bytes
from footprint.verbs.fleet.call import Fleet
from footprint.verbs.fleet.questions import question_names, question_of

__all__ = ("fleet_document",)

_LARGEST: Final = 3
_NAMED: Final = 3
"""How many texts of the last column its heading names: more do not fit."""
_IDENTIFIERS: Final = frozenset({"pid", "audit"})


def fleet_document(fleet: Fleet, *, top: int = 20) -> Document:
    """Show the rows that answer a question; `top` rows, 0 for all."""
    blocks: list[Block] = [Heading(f"The fleet in {fleet.dataset}")]
    if fleet.day is not None:
        rows = (
            ("hosts", f"{fleet.host_count:,}", ""),
            ("processes", f"{fleet.process_count:,}", ""),
            ("what they cost", format_bytes(fleet.total_bytes), ""),
            ("last day", str(fleet.day), ""),
        )
        blocks.append(Facts(rows))
    if fleet.is_overview:
        questions = tuple((name, question_of(name).title) for name in question_names())
        blocks += [Heading("Questions"), Table(("ask", "question"), questions, frozenset({0}))]
    if fleet.question is not None:
        blocks.append(Heading("The largest savings" if fleet.is_overview else fleet.question.title))
    if fleet.found.rows:
        blocks.append(_table(fleet, _LARGEST if fleet.is_overview else top))
    blocks += note_blocks(fleet.notes)
    return (*blocks, Verdict(_verdict(fleet)))


def _table(fleet: Fleet, top: int) -> Table:
    """Show the figures as columns, and the texts behind them as one column: names are long."""
    columns, (shown, rest) = fleet.found.columns, cut_at(fleet.found.rows, top)
    is_text = [any(isinstance(row[place], str) for row in fleet.found.rows) for place in range(len(columns))]
    figure_count = max((place + 1 for place, text in enumerate(is_text[:-1]) if not text), default=0)
    rows = tuple(
        (
            *(_shown(name, cell) for name, cell in zip(columns[:figure_count], row[:figure_count], strict=True)),
            "  ".join(_shown(name, cell) for name, cell in _named(columns[figure_count:], row[figure_count:])),
        )
        for row in shown
    )
    named = [_title(name) for name in reversed(columns[figure_count:])]
    heading = ", ".join((*named[:_NAMED], "...") if len(named) > _NAMED else named)
    titles = (*map(_title, columns[:figure_count]), heading)
    texts = frozenset(place for place in range(figure_count) if is_text[place])
    return Table(titles, rows, texts, rest_rows(len(rest), len(titles)), Fold.NAMES)


def _named(columns: Sequence[str], row: Sequence[Cell]) -> list[tuple[str, Cell]]:
    """Return the texts that are there, the last one first: it is what the row is about."""
    return [(name, cell) for name, cell in zip(reversed(columns), reversed(row), strict=True) if cell is not None]


def _title(column: str) -> str:
    noun = column.removesuffix("_count")
    plural = noun if noun == column else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return plural.removesuffix("_bytes").replace("_", " ")


def _shown(column: str, cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str) or column in _IDENTIFIERS:
        return str(cell)
    if column.endswith("_bytes"):
        return f"-{format_bytes(-round(cell))}" if cell < 0 else format_bytes(round(cell))
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.2f}"


def _verdict(fleet: Fleet) -> str:
    found = fleet.found
    if not found.rows:
        return "There is nothing to show." if fleet.day is not None else "The dataset has no processes."
    if fleet.question is None:
        return f"{counted(len(found.rows), 'row')}."
    first = dict(zip(found.columns, found.rows[0], strict=True))
    told = re.sub(r"\{(\w+)\}", lambda match: _shown(match[1], first.get(match[1])), fleet.question.verdict)
    return re.sub(r"(?<= )1 (host|place|process)(e?s)\b", r"1 \1", told)
