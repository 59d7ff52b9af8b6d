"""A report as plain text, for pipes and files."""

import re
from collections.abc import Sequence
from typing import Final

from footprint.formats.document import Block, Document, Facts, Fold, Graph, Heading, Paragraph, Table, Verdict
from footprint.text.escape import is_printable, printable, shortened, shortened_name

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-~=+*#"


def sparkline(values: Sequence[int | None], width: int, *, has_blocks: bool) -> str:
    """Draw the newest values between the smallest and the largest of them; an unknown value is a gap.

    Args:
        values: The values.
        width: How many are drawn at most.
        has_blocks: Whether block characters can be shown; else ASCII.
    """
    shown = values[-width:]
    present = [value for value in shown if value is not None]
    if not present:
        return ""
    least, most = min(present), max(present)
    levels = _BLOCKS if has_blocks else _ASCII
    top = len(levels) - 1
    # What never changed is a line in the middle.
    return "".join(
        " " if value is None else levels[top // 2 if most == least else (value - least) * top // (most - least)]
        for value in shown
    )


WIDTH: Final = 80
# In a narrower column most words are cut: the text stands below the figures instead.
_LEAST_ROOM: Final = 20


def plain(document: Document, width: int = WIDTH) -> str:
    """Format a report as plain text; no line is longer than `width`, but for a heading or a word that is."""
    lines: list[str] = []
    for block in document:
        if lines and isinstance(block, Heading | Verdict):
            lines.append("")
        lines.extend(line.rstrip() for line in _lines(block, width))
    return "\n".join(lines) + "\n"


def _lines(block: Block, width: int) -> list[str]:
    if isinstance(block, Heading):
        return [printable(block.text)]
    if isinstance(block, Verdict):
        return _wrapped(printable(block.text), width, "", "")
    if isinstance(block, Paragraph):
        return _wrapped(printable(block.text), width, "  ", "    ")
    if isinstance(block, Facts):
        return _fact_lines(block, width)
    if isinstance(block, Graph):
        from footprint.formats.graph import graph_lines  # noqa: PLC0415 # only the verb `heap` has graphs

        return graph_lines(block, width, has_blocks=False)
    return _table_lines(block, width)


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    """Wrap a text, with what stands before its first line and before the others; no path or name is split."""
    if len(first) + len(text) <= width:
        return [first + text]
    return wrapped_words(text, width, first, others)


def wrapped_words(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Wrap a text as `textwrap.wrap` does, whose import costs 3,500,000 instructions; no word is split."""
    lines: list[str] = []
    parts = [part for part in re.split("( +)", text) if part]
    at = 0
    while at < len(parts):
        indent = others if lines else first
        # A line does not begin with the spaces at which the text was cut, nor end with any.
        at += bool(lines) and parts[at].isspace()
        start, room = at, width - len(indent)
        while at < len(parts) and (room := room - len(parts[at])) >= 0:
            at += 1
        at = max(at, start + 1)
        line = parts[start:at]
        if line and line[-1].isspace():
            line.pop()
        if line:
            lines.append(indent + "".join(line))
    return lines


def _fact_lines(facts: Facts, width: int) -> list[str]:
    rows = [tuple(map(printable, row)) for row in facts.rows]
    label_width = max((len(label) for label, _, _ in rows), default=0)
    figure_width = max((len(figure) for _, figure, _ in rows), default=0)
    margin = label_width + figure_width + 6
    lines = []
    for label, figure, remark in rows:
        start = f"  {label:<{label_width}}  {figure:>{figure_width}}  "
        if len(start) + len(remark) <= width or width - margin >= _LEAST_ROOM:
            lines += _wrapped(remark, width, start, " " * margin)
        else:
            lines += [start, *_wrapped(remark, width, " " * 6, " " * 6)]
    return lines


def _table_lines(table: Table, width: int) -> list[str]:
    rows = [_printable_row(row) for row in (table.columns, *table.rows, *table.footer)]
    last = len(table.columns) - 1
    cells = []
    for column in range(last):
        cell_width = max(len(row[column]) for row in rows)
        cells.append(f"%-{cell_width}s" if column in table.text_columns else f"%{cell_width}s")
    line = "  ".join(["", *cells, "%s"])
    margin = len(line % rows[0]) - len(rows[0][last])
    lines = []
    for number, row in enumerate(rows):
        fold = Fold.TEXT if number > len(table.rows) and table.fold is not Fold.WHOLE else table.fold
        if margin + len(row[last]) <= width:
            lines.append(line % row)
        elif fold is not Fold.COLUMNS and (
            width - margin >= _LEAST_ROOM and (fold is not Fold.WHOLE or _longest(row[last]) <= width - margin)
        ):
            first, *others = _folded(row[last], fold, width - margin)
            lines += [line % (*row[:last], first), *(" " * margin + text for text in others)]
        else:
            lines += _wrapped((line % (*row[:last], "")).rstrip(), width, "", "    ")
            texts = _folded(row[last], fold, width - 4)
            indent = " " * max(4, min(margin, width - max(map(len, texts))))
            lines += [indent + text for text in texts]
    return lines


def _longest(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _folded(text: str, fold: Fold, room: int) -> list[str]:
    """Cut the text of a last column into lines that fit; the result has at least one line."""
    if len(text) <= room:
        return [text]
    if fold is Fold.ONE_LINE:
        return [(shortened_name if "/" in text else shortened)(text, room)]
    if fold is Fold.TEXT:
        return [shortened_name(line, room) for line in wrapped_words(text, room)] or [""]
    lines: list[str] = []
    lead = " " * (len(text) - len(text.lstrip(" ")))
    for part in text.lstrip(" ").split("  "):
        if lines and len(lines[-1]) + 2 + len(part) <= room:
            lines[-1] += f"  {part}"
            continue
        if fold is Fold.WHOLE:
            lines += _wrapped(part, room, lead if not lines else f"{lead}  ", f"{lead}  ")
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
    return row if is_printable(whole) else tuple(map(printable, row))
