"""A report drawn with rich."""

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from footprint.formats.document import Document, Facts, Graph, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import printable

__all__ = ("draw",)

_EVIDENCE_STYLES = {
    "measured": "green",
    "derived": "green",
    "predicted": "cyan",
    "estimated": "yellow",
    "virtual": "red",
}


def draw(document: Document, width: int, *, has_colour: bool, has_blocks: bool = True) -> str:
    """Write a report for a terminal: names that are too long are folded within their column.

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
            _print(console, block)
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


def _print_graph(console: Console, graph: Graph, width: int, *, has_blocks: bool) -> None:
    from footprint.formats.graph import graph_lines  # noqa: PLC0415 # only the verb `heap` has graphs

    for line in graph_lines(graph, width, has_blocks=has_blocks):
        console.print(Text(line, style="cyan"), overflow="ignore", no_wrap=True)


def _print(console: Console, block: Heading | Verdict | Paragraph | Facts | Table) -> None:
    if isinstance(block, Heading):
        console.print(Text("\n" + printable(block.text), style="bold"))
    elif isinstance(block, Verdict):
        console.print(Text("\n" + printable(block.text), style="bold red" if block.is_failure else "bold green"))
    elif isinstance(block, Paragraph):
        console.print(Padding(Text(printable(block.text)), (0, 0, 0, 2)))
    elif isinstance(block, Facts):
        console.print(_facts(block))
    else:
        console.print(_table(block))


def _facts(facts: Facts) -> RichTable:
    grid = RichTable.grid(padding=(0, 2, 0, 0), pad_edge=True)
    grid.add_column()
    grid.add_column(justify="right", style="bold", no_wrap=True)
    grid.add_column()
    for label, figure, remark in facts.rows:
        style = _EVIDENCE_STYLES.get(remark.split(" ", 1)[0].rstrip(":,"), "")
        grid.add_row("  " + printable(label), printable(figure), Text(printable(remark), style=style))
    return grid


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
