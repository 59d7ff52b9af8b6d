"""A graph of memory over time, drawn with characters."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from footprint.formats.document import Graph, GraphPoint
from footprint.text.escape import printable
from footprint.text.units import format_bytes, format_minutes

_ROWS: Final = 14
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_LABEL_EVERY: Final = 7  # rows
_LONG_SECONDS: Final = 60
_SI: Final = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


class _Column(NamedTuple):
    size_bytes: int
    mark: str


def format_time(time: float, unit: str) -> str:
    """Format a time with its unit: `5.00 Mi` (instructions), `1.23 s`, `1 h 5 min`, `2.02 MiB` (allocated)."""
    if unit == "B":
        return format_bytes(round(time))
    if unit == "ms" and time >= 1000:
        time, unit = time / 1000, "s"
    if unit == "s" and time >= _LONG_SECONDS:
        return format_minutes(time)
    if unit and unit not in {"s", "ms"}:
        for factor, prefix in _SI:
            if time >= factor:
                return f"{time / factor:.2f} {prefix}{unit}"
    return f"{time:.2f} {unit}".rstrip() if time % 1 else f"{time:.0f} {unit}".rstrip()


def graph_lines(graph: Graph, width: int, *, has_blocks: bool) -> list[str]:
    """Draw memory over time.

    Each column shows the maximum within its time span, so that no peak is lost.

    Args:
        graph: The points.
        width: The number of columns, labels included.
        has_blocks: Whether to use block characters; else ASCII, with the marks inside the bars.
    """
    unit = printable(graph.time_unit)
    most_bytes = max(point.size_bytes for point in graph.points)
    labels = {row: format_bytes(most_bytes * row // _ROWS) for row in range(0, _ROWS + 1, _LABEL_EVERY)}
    margin = max(map(len, labels.values()))
    columns = _columns(graph.points, max(10, width - margin - 5))
    lines = []
    for row in range(_ROWS, 0, -1):
        bar = "".join(_cell(column, row, most_bytes, has_blocks=has_blocks) for column in columns)
        axis = "┤" if row in labels else "│"
        lines.append(f"  {labels.get(row, ''):>{margin}} {axis if has_blocks else '^|'[row not in labels]}{bar}")
    rule = "└" + "─" * len(columns) if has_blocks else "+" + "-" * len(columns)
    lines.append(f"  {labels[0]:>{margin}} {rule}")
    blank = " " * (margin + 4)
    if has_blocks and any(column.mark.strip() for column in columns):
        lines.append(blank + "".join(column.mark for column in columns))
    first, last = (format_time(graph.points[end].time, unit) for end in (0, -1))
    lines.append(f"{blank}{first}{last:>{max(len(columns) - len(first), len(last) + 1)}}")
    lines.append(f"{blank}{graph.legend}")
    return [line.rstrip() for line in lines]


def _columns(points: Sequence[GraphPoint], count: int) -> list[_Column]:
    """Find the maximum of each column; a column without a point keeps the last value before it."""
    start = points[0].time
    span = points[-1].time - start
    column_at: list[_Column | None] = [None] * count
    # A damaged profile may have times that go back: they are drawn at the edge.
    places = [max(0, min(count - 1, int((point.time - start) * count / span))) if span > 0 else 0 for point in points]
    for place, point in zip(places, points, strict=True):
        at_place = column_at[place]
        most = point.size_bytes if at_place is None else max(at_place.size_bytes, point.size_bytes)
        mark = point.mark if at_place is None else min(at_place.mark, point.mark, key="#@ ".index)
        column_at[place] = _Column(most, mark)
    columns: list[_Column] = []
    held_bytes = 0
    last_of = {place: point.size_bytes for place, point in zip(places, points, strict=True)}
    for place, column in enumerate(column_at):
        columns.append(_Column(held_bytes, " ") if column is None else column)
        held_bytes = last_of.get(place, held_bytes)
    return columns


def _cell(column: _Column, row: int, most_bytes: int, *, has_blocks: bool) -> str:
    """Return the character of one column in one row; rows are counted from the bottom."""
    if not most_bytes or not column.size_bytes:
        return " "
    # In eighths of a row; the smallest amount above zero is drawn as one eighth.
    eighths = max(1, column.size_bytes * _ROWS * 8 // most_bytes) - (row - 1) * 8
    if has_blocks:
        return _BLOCKS[max(0, min(8, eighths))]
    return (":" if column.mark == " " else column.mark) if eighths > (4 if row > 1 else 0) else " "
