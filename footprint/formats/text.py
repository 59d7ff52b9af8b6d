"""A report as plain text, for pipes and files."""

import textwrap
from typing import Final

from footprint.formats.document import Block, Document, Facts, Fold, Graph, Heading, Paragraph, Table, Verdict
from footprint.formats.escape import printable, shortened_name

__all__ = ("plain",)

_WIDTH: Final = 80
# A narrower column cuts most names: the line becomes wider than _WIDTH instead.
_LEAST_ROOM: Final = 20


def plain(document: Document) -> str:
    """Write a report as plain text. Running text is wrapped at 80 columns; a table only as its `fold` says."""
    lines: list[str] = []
    for block in document:
        if lines and isinstance(block, Heading | Verdict):
            lines.append("")
        lines.extend(line.rstrip() for line in _lines(block))
    return "\n".join(lines) + "\n"


def _lines(block: Block) -> list[str]:
    if isinstance(block, Heading):
        return [printable(block.text)]
    if isinstance(block, Verdict):
        return textwrap.wrap(printable(block.text), _WIDTH)
    if isinstance(block, Paragraph):
        # A path that is split over two lines cannot be copied.
        return textwrap.wrap(
            printable(block.text),
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    if isinstance(block, Facts):
        return _fact_lines(block)
    if isinstance(block, Graph):
        from footprint.formats.graph import graph_lines  # noqa: PLC0415 # only the verb `heap` has graphs

        return graph_lines(block, _WIDTH, has_blocks=False)
    return _table_lines(block)


def _fact_lines(facts: Facts) -> list[str]:
    rows = [tuple(map(printable, row)) for row in facts.rows]
    label_width = max((len(label) for label, _, _ in rows), default=0)
    figure_width = max((len(figure) for _, figure, _ in rows), default=0)
    return [f"  {label:<{label_width}}  {figure:>{figure_width}}  {remark}" for label, figure, remark in rows]


def _table_lines(table: Table) -> list[str]:
    rows = [_printable_row(row) for row in (table.columns, *table.rows, *table.footer)]
    last = len(table.columns) - 1
    cells = []
    for column in range(last):
        width = max(len(row[column]) for row in rows)
        cells.append(f"%-{width}s" if column in table.text_columns else f"%{width}s")
    line = "  ".join(["", *cells, "%s"])
    if table.fold is Fold.NEVER:
        return [line % row for row in rows]
    margin = len(line % rows[0]) - len(rows[0][last])
    room = max(_LEAST_ROOM, _WIDTH - margin)
    lines = []
    for number, row in enumerate(rows):
        is_footer = number > len(table.rows)
        first, *rest = _folded(row[last], Fold.TEXT if is_footer else table.fold, room)
        lines.append(line % (*row[:last], first))
        lines.extend(" " * margin + one for one in rest)
    return lines


def _folded(text: str, fold: Fold, room: int) -> list[str]:
    """Cut the text of a last column into lines that fit; the result has at least one line."""
    if len(text) <= room:
        return [text]
    if fold is Fold.TEXT:
        wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        return [shortened_name(one, room) for one in wrapped] or [""]
    lines: list[str] = []
    for part in text.split("  "):
        if lines and len(lines[-1]) + 2 + len(part) <= room:
            lines[-1] += f"  {part}"
            continue
        name, colon, words = part.partition(": ") if len(part) > room else (part, "", "")
        lines.append(shortened_name(f"{name}{colon.rstrip()}", room))
        if words:
            # The beginning of a type is its most important part.
            lines.append(words if len(words) <= room else f"{words[: room - 3].rstrip('.')}...")
    return lines


def _printable_row(row: tuple[str, ...]) -> tuple[str, ...]:
    # One check of the whole row is quicker than one check a cell, and nearly all rows pass it.
    whole = "".join(row)
    return row if whole.isascii() and whole.isprintable() else tuple(map(printable, row))
