"""Drawing a report on a terminal, with rich."""

import io
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from footprint.formats.document import Document, Facts, Fold, Graph, Heading, Paragraph, Table, Verdict
from footprint.text.escape import printable

_EVIDENCE_STYLES = {
    "measured": "green",
    "derived": "green",
    "predicted": "cyan",
    "estimated": "yellow",
    "virtual": "red",
}

# Names get so many columns at least: in a narrower terminal they stand on lines of their own.
_LEAST_NAME: Final = 14
_LEAST_REMARK: Final = 22


def draw(document: Document, width: int, *, has_colour: bool, has_blocks: bool = True) -> str:
    """Format a report for a terminal: names that are too long are folded within their column.

    Args:
        document: The report.
        width: The width of the terminal, in columns.
        has_colour: Whether the terminal shows colours.
        has_blocks: Whether the terminal shows block characters; else graphs are drawn in ASCII.
    """
    text = io.StringIO()
    console = Console(
        file=text,
        width=width,
        force_terminal=has_colour,
        no_color=not has_colour,
        color_system="standard" if has_colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for block in document:
        if isinstance(block, Graph):
            _print_graph(console, block, width, has_blocks=has_blocks)
        else:
            _print(console, block, width)
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


def _print_graph(console: Console, graph: Graph, width: int, *, has_blocks: bool) -> None:
    from footprint.formats.graph import graph_lines  # noqa: PLC0415 # only the verb `heap` has graphs

    for line in graph_lines(graph, width, has_blocks=has_blocks):
        console.print(Text(line, style="cyan"), overflow="ignore", no_wrap=True)


def _print(console: Console, block: Heading | Verdict | Paragraph | Facts | Table, width: int) -> None:
    if isinstance(block, Heading):
        console.print(Text("\n" + printable(block.text), style="bold"))
    elif isinstance(block, Verdict):
        console.print(Text("\n" + printable(block.text), style="bold red" if block.is_failure else "bold green"))
    elif isinstance(block, Paragraph):
        console.print(Padding(Text(printable(block.text)), (0, 0, 0, 2)))
    elif isinstance(block, Facts):
        console.print(_facts(block, width))
    elif _is_too_wide(block, width):
        console.print("")
        for line, style in _stacked(block, width):
            console.print(Text(line, style=style), overflow="ignore", no_wrap=True)
        console.print("")
    else:
        console.print(_table(block))


def _facts(facts: Facts, width: int) -> RichTable:
    _, figures, remarks = (max(map(len, column), default=0) for column in zip(("", "", ""), *facts.rows, strict=True))
    label_width = max(_LEAST_NAME, width - figures - min(remarks, _LEAST_REMARK) - 6)
    grid = RichTable.grid(padding=(0, 2, 0, 0), pad_edge=True)
    # Labels are wrapped below, and only the remarks give way.
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", style="bold", no_wrap=True)
    grid.add_column()
    for label, figure, remark in facts.rows:
        style = _EVIDENCE_STYLES.get(remark.split(" ", 1)[0].rstrip(":,"), "")
        indent = " " * (len(label) - len(label.lstrip()) + 2)
        lines = wrap(printable(label.strip()), label_width, initial_indent=indent, subsequent_indent=indent + "  ")
        grid.add_row("\n".join(lines), printable(figure), Text(printable(remark), style=style))
    return grid


def _cells(table: Table) -> list[list[str]]:
    return [[printable(cell) for cell in row] for row in (table.columns, *table.rows, *table.footer)]


def _column_widths(cells: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _is_too_wide(table: Table, width: int) -> bool:
    """Return whether the other columns leave too little for the names in the last one."""
    *others, last = _column_widths(_cells(table))
    least = last if table.fold is Fold.COLUMNS else min(last, _LEAST_NAME)
    return bool(others) and width - sum(others) - 2 * len(others) - 1 < least


def _stacked(table: Table, width: int) -> Iterator[tuple[str, str]]:
    """Return a table with the text of each row on lines of its own, and the style of each line."""
    cells = _cells(table)
    *widths, _ = _column_widths(cells)
    for number, (*figures, text) in enumerate(cells):
        style = "dim" if number == 0 or number > len(table.rows) else ""
        sides = ("<" if column in table.text_columns else ">" for column in range(len(figures)))
        line = "  ".join(f"{cell:{side}{wide}}" for cell, side, wide in zip(figures, sides, widths, strict=True))
        yield f" {line}", style
        for part in wrap(text, width - 5):
            yield f"    {part}", style


def _table(table: Table) -> RichTable:
    drawn = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=True, show_footer=False, header_style="dim")
    last = len(table.columns) - 1
    for column, heading in enumerate(table.columns):
        if column == last:
            drawn.add_column(printable(heading), overflow="fold", ratio=None)
        else:
            justify = "left" if column in table.text_columns else "right"
            drawn.add_column(printable(heading), justify=justify, no_wrap=True)  # type: ignore[arg-type] # one of two
    for row in table.rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    for row in table.footer:
        drawn.add_row(*(Text(printable(cell)) for cell in row), style="dim")
    return drawn
