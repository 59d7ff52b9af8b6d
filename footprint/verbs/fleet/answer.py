"""The answer of `fleet`: its JSON and its report."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_of
from footprint.formats.document import (
    Block,
    Document,
    Facts,
    Fold,
    Heading,
    Table,
    Verdict,
    cut_at,
    note_blocks,
    rest_rows,
)
from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import dataclass
from footprint.store.asking import Cell
from footprint.text.escape import printable, shortened, shortened_name
from footprint.text.units import counted, format_bytes
from footprint.verbs.fleet.call import Fleet, FleetCost
from footprint.verbs.fleet.questions import question_names, question_of

_LARGEST: Final = 3
_DEAREST: Final = 5
_LINE_CHARS: Final = 72
"""The room for names on a line of their own, in 80 columns, in a pipe and on a terminal."""
_IDENTIFIERS: Final = frozenset({"pid", "audit"})


def fleet_document(fleet: Fleet, *, top: int = 20, is_whole: bool = False) -> Document:
    """Show the rows that answer a question; `top` rows, 0 for all; whole names, or so that columns fit."""
    blocks: list[Block] = [Heading(f"The fleet in {fleet.dataset}")]
    if fleet.day is not None:
        rows = (
            ("hosts", f"{fleet.host_count:,}", ""),
            ("processes", f"{fleet.process_count:,}", ""),
            ("what they cost", format_bytes(fleet.total_bytes), ""),
            ("last day", str(fleet.day), ""),
        )
        blocks.append(Facts(rows))
    elif fleet.program_count:
        counts = (("hosts", fleet.host_count), ("programs", fleet.program_count))
        blocks.append(Facts(tuple([(title, f"{count:,}", "") for title, count in counts])))
    for noun, costs in (("program", fleet.program_costs), ("host", fleet.host_costs)):
        if costs:
            blocks += [Heading(f"What each {noun} costs"), _cost_table(costs, noun)]
    if fleet.is_overview:
        questions = tuple((name, question_of(name).title) for name in question_names())
        blocks += [Heading("Questions"), Table(("ask", "question"), questions, frozenset({0}))]
    if fleet.question is not None:
        blocks.append(Heading("The largest savings" if fleet.is_overview else fleet.question.title))
    if fleet.result.rows:
        blocks.append(_table(fleet, _LARGEST if fleet.is_overview else top, is_whole=is_whole))
    blocks += note_blocks(fleet.notes)
    return (*blocks, Verdict(_verdict(fleet)))


def _cost_table(costs: Sequence[FleetCost], noun: str) -> Table:
    shown, rest = cut_at(costs, _DEAREST)
    rows = tuple((format_bytes(cost.cost_bytes), f"{cost.process_count:,}", cost.name) for cost in shown)
    sums = (format_bytes(sum(cost.cost_bytes for cost in rest)), f"{sum(cost.process_count for cost in rest):,}")
    footer = ((*sums, f"[{len(rest):,} more: footprint fleet DIR {noun}s]"),) if rest else ()
    return Table(("cost", "processes", noun), rows, frozenset(), footer)


def _table(fleet: Fleet, top: int, *, is_whole: bool) -> Table:
    """Show the figures as columns, and behind them the texts, the last one first: it is what the row is about."""
    columns, (shown, rest) = fleet.result.columns, cut_at(fleet.result.rows, top)
    values = list(zip(*fleet.result.rows, strict=True))
    is_text = [any(isinstance(value, str) for value in column) for column in values]
    is_empty = [
        not name.endswith(("_bytes", "_count")) and name not in _IDENTIFIERS and not any(v is not None for v in column)
        for name, column in zip(columns, values, strict=True)
    ]
    figure_places = [place for place in range(len(columns) - 1) if not is_text[place] and not is_empty[place]]
    figure_count = max(figure_places, default=-1) + 1
    cells = [tuple(_shown(name, cell) for name, cell in zip(columns, row, strict=True)) for row in shown]
    titles = tuple(map(_title, columns))
    places = [place for place in range(len(columns) - 1, figure_count - 1, -1) if not is_empty[place]] or [-1]
    names = [tuple([row[place] for place in places]) for row in (titles, *cells)]
    # A table has one column of any length, so these stand aligned in it, where they are beside the figures and below.
    heading, *texts = _aligned(names) if len(names[0]) > 1 and not is_whole else ["  ".join(row) for row in names]
    rows = tuple((*row[:figure_count], text) for row, text in zip(cells, texts, strict=True))
    words = frozenset(place for place in range(figure_count) if is_text[place])
    fold = Fold.WHOLE if is_whole else Fold.NAMES if len(names[0]) == 1 else Fold.COLUMNS
    return Table((*titles[:figure_count], heading), rows, words, rest_rows(len(rest), figure_count + 1), fold)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the texts of rows as columns that have together the room of a line of 80 columns."""
    rows = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = _LINE_CHARS - 2 * (len(widths) - 1)
    least = [min(width, room // len(widths)) for width in widths]
    while sum(widths) > room:
        spare = [width - few for width, few in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return ["  ".join(f"{_cut(text, width):{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def _cut(text: str, most: int) -> str:
    return (shortened_name if "/" in text else shortened)(text, most)


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
        return str(cell) or "[no name]"
    if column.endswith("_bytes"):
        return f"-{format_bytes(-round(cell))}" if cell < 0 else format_bytes(round(cell))
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.2f}"


def _verdict(fleet: Fleet) -> str:
    result = fleet.result
    if not result.rows:
        has_inputs = fleet.day is not None or fleet.program_count
        if fleet.program_costs:
            dearest, count = fleet.program_costs[0], counted(fleet.process_count, "process")
            costs = f"{count} cost {format_bytes(fleet.total_bytes)}"
            return f"{costs}, {format_bytes(dearest.cost_bytes)} of it {dearest.name}; no saving is known."
        return "There is nothing to show." if has_inputs else "The dataset has no processes."
    if fleet.question is None:
        return f"{counted(len(result.rows), 'row')}."
    first = dict(zip(result.columns, result.rows[0], strict=True))
    if first[result.columns[0]] is None:
        return "What they cost is not known."
    sentence = re.sub(r"\{(\w+)\}", lambda match: _shown(match[1], first.get(match[1])), fleet.question.verdict)
    return re.sub(r"(?<= )1 (host|place|process|program)(e?s)\b", r"1 \1", sentence)


@answer_table
class FleetTarget:
    """The dataset, and the state of the fleet that was looked at."""

    dataset: str = column("The folder.")
    day: str | None = column(
        "The day; null where no process is known.", lambda fleet: None if fleet.day is None else fleet.day.isoformat()
    )
    host_count: int = column("The number of hosts with processes then.")
    process_count: int = column("The number of these processes.")
    program_count: int = column("The number of programs in a dataset without processes; else 0.")
    total_bytes: int = column("What these cost.")


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
        program_costs: In an overview, what each program costs, the dearest first.
        host_costs: The same of each host.
    """

    verb: Literal["fleet"] = "fleet"
    target: FleetTarget
    question: str | None
    sql: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Cell], ...]
    notes: tuple[Note, ...]
    program_costs: tuple[FleetCost, ...] = ()
    host_costs: tuple[FleetCost, ...] = ()


def fleet_members(fleet: Fleet, version: str) -> Json:
    """Return the members of the answer."""
    result = fleet.result
    return encode(
        FleetJson(
            tool=Tool("footprint", version),
            host={},
            target=row_of(FleetTarget, fleet),
            question=None if fleet.question is None else fleet.question.name,
            sql=fleet.sql,
            columns=result.columns,
            rows=tuple(dict(zip(result.columns, row, strict=True)) for row in result.rows),
            notes=fleet.notes,
            program_costs=fleet.program_costs,
            host_costs=fleet.host_costs,
        )
    )


def fleet_figures(fleet: Fleet) -> list[MetricFamily]:
    """Return the sizes and counts of the rows; their texts are labels, process IDs are none."""
    columns, rows = fleet.result.columns, fleet.result.rows
    labels = [place for place, name in enumerate(columns) if any(isinstance(row[place], str) for row in rows)]
    if fleet.question is not None:
        # Of processes that differ in their IDs alone the first one is the largest: a sum of medians means nothing.
        by_texts: dict[tuple[Cell, ...], tuple[Cell, ...]] = {}
        for row in rows:
            by_texts.setdefault(tuple([row[place] for place in labels]), row)
        rows = tuple(by_texts.values())
    prefix = "query" if fleet.question is None else fleet.question.name
    families = []
    for place, name in enumerate(columns):
        if place in labels or not name.endswith(("_bytes", "_count")):
            continue
        samples = [
            MetricSample({columns[label]: str(row[label]) for label in labels if row[label] is not None}, round(value))
            for row in rows
            if isinstance(value := row[place], int | float)
        ]
        unit = "bytes" if name.endswith("_bytes") else ""
        meaning = "Rows of a query." if fleet.question is None else fleet.question.title
        families.append(MetricFamily(f"fleet_{prefix}_{name.removesuffix('_bytes')}", meaning, samples, unit))
    return families
