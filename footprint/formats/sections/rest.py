"""The rows of a long table that are shown, and the row that stands for the others."""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

__all__ = ("cut_at", "more", "rest_rows", "sum_row", "without_options")

_T = TypeVar("_T")
_OPTION: Final = re.compile(r": (?:-v|--top 0) (?=shows (?:it|them|all|which))")


def cut_at(rows: Sequence[_T], top: int) -> tuple[Sequence[_T], Sequence[_T]]:
    """Return the first `top` rows, or all for 0, and the rest."""
    count = top or len(rows)
    return rows[:count], rows[count:]


def more(count: int) -> str:
    """Return the label of the row that stands for those that are left out."""
    return f"[{count:,} more: --top 0 shows all]"


def without_options(text: str) -> str:
    """Name JavaScript in place of the option that shows what is left out: a report in a browser takes no options."""
    return _OPTION.sub(": with JavaScript this page ", text)


def rest_rows(count: int, column_count: int, *figures: str) -> tuple[tuple[str, ...], ...]:
    """Return the row that stands for `count` others, with their sums in its first columns; none for 0."""
    return (sum_row(more(count), column_count, *figures),) if count else ()


def sum_row(label: str, column_count: int, *figures: str) -> tuple[str, ...]:
    """Return a row with figures in its first columns and a label in the last one."""
    return (*figures, *[""] * (column_count - len(figures) - 1), label)
