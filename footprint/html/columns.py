"""The tables of an answer as compressed columns, a tenth of the size of the JSON.

A table is stored by columns. Each text is stored once, in the order in which it is first met. A column of texts has
their numbers, and it and a column of ascending integers have the difference of each value to the one before it. A
column with few changes has each value once, with the number of rows that have it. The script of the report restores the
rows of the JSON from that.
"""

import json
import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, compress, count, islice
from operator import le, ne, sub
from typing import Final, NamedTuple, cast

from footprint.formats.codec import Columns
from footprint.formats.json import Json

__all__ = ("MOST_EXACT", "Packed", "pack", "payload")

MOST_EXACT: Final = (1 << 53) - 1
"""The largest integer that a browser holds exactly, together with all smaller ones."""

# The next higher level takes a third more time for 4 % of the size (benchmarks/report.py).
_LEVEL: Final = 4
_ROUNDED: Final = frozenset({dict, list, int})
_TEXTS: Final = frozenset({str, type(None)})
_INTEGERS: Final = frozenset({int, type(None)})
# Python takes True for 1, and 1.0 as well: a column with one of these types has neither of the others.
_SINGLE: Final = (_INTEGERS, frozenset({bool, type(None)}))
# The mean number of rows from which runs take less room.
_LEAST_RUN: Final = 4
_Numbers = defaultdict[str | None, int]


class Packed(NamedTuple):
    """Answers whose tables are packed.

    Attributes:
        answers: The answers.
        texts: Each text in their tables, in the order of its number.
        inexact_count: The number of integers that a browser would round: it has all numbers with 53 bits.
    """

    answers: dict[str, object]
    texts: list[str | None]
    inexact_count: int


def pack(answers: Json) -> Packed:
    """Replace each table in answers by an object: `rows`, `keys`, and columns as they are packed.

    These are `texts`, `steps`, `values`, `runs` and, of texts, `text_runs`.
    """
    # Each text that is looked up for the first time gets the next number; what is unknown is the text 0.
    numbers: _Numbers = defaultdict(count().__next__)
    numbers[None]  # gets its number
    inexact: list[int] = []
    packed = {key: _packed(member, numbers, inexact) for key, member in answers.items()}
    return Packed(packed, list(numbers), sum(inexact))


def payload(packed: Packed) -> str:
    """Write packed answers as text: two lines of JSON, the answers and the texts in them, deflated and in base64."""
    text = "\n".join([json.dumps(one, separators=(",", ":")) for one in (packed.answers, packed.texts)])
    return b64encode(zlib.compress(text.encode("ascii"), _LEVEL)).decode("ascii")


def _inexact_count(value: object) -> int:
    if isinstance(value, dict | list):
        return sum(map(_inexact_count, value.values() if isinstance(value, dict) else value))
    return int(
        isinstance(value, int) and abs(value) > MOST_EXACT and (value.bit_length() > 1000 or int(float(value)) != value)
    )


def _inexact_in(column: Sequence[object], types: set[type]) -> int:
    """Count them in a column: a large one has few types, and hardly ever such an integer."""
    if int in types and types <= _INTEGERS:
        # Zero is no such integer, and is left out with what is unknown.
        figures = cast("list[int]", list(filter(None, column)))
        if not figures or (max(figures) <= MOST_EXACT and min(figures) >= -MOST_EXACT):
            return 0
    return sum(map(_inexact_count, column)) if types & _ROUNDED else 0


def _packed(value: object, numbers: _Numbers, inexact: list[int]) -> object:
    """Pack the tables in a value, and list how many integers of each part a browser would round."""
    if isinstance(value, dict):
        return {key: _packed(member, numbers, inexact) for key, member in value.items()}
    table = value if isinstance(value, Columns) else _columns(value)
    if table is None:
        inexact.append(_inexact_count(value))
        return value
    packed: dict[str, dict[str, object]] = {kind: {} for kind in ("texts", "steps", "values", "runs", "text_runs")}
    for key, column in zip(table.keys, table.cells, strict=True):
        types = set(map(type, column))
        inexact.append(_inexact_in(column, types))
        is_text = types <= _TEXTS
        if (is_text or any(types <= one for one in _SINGLE)) and (runs := _runs(column)) is not None:
            values, counts = runs
            if is_text:
                packed["text_runs"][key] = list(map(numbers.__getitem__, cast("list[str | None]", values))), counts
            else:
                packed["runs"][key] = runs
        elif is_text:
            packed["texts"][key] = _steps(list(map(numbers.__getitem__, column)))
        elif types == {int} and all(map(le, column, islice(column, 1, None))):
            packed["steps"][key] = _steps(column)
        else:
            packed["values"][key] = column
    return {"rows": len(table.cells[0]), "keys": table.keys, **packed}


def _runs(column: Sequence[object]) -> tuple[list[object], list[int]] | None:
    """Return the values of neighbouring rows that are equal, and how many rows have each; None for many values."""
    # Rows with another value than the one before: Python runs no step for a row.
    changes = compress(count(1), map(ne, column, islice(column, 1, None)))
    starts = [0, *islice(changes, len(column) // _LEAST_RUN)]
    if len(starts) * _LEAST_RUN > len(column):
        return None
    return [column[start] for start in starts], list(map(sub, chain(starts[1:], (len(column),)), starts))


def _columns(value: object) -> Columns | None:
    """Return a list of rows as a table; None for anything else, and where rows have different members."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict) or not value[0]:
        return None
    keys = value[0].keys()
    if not all(isinstance(row, dict) and row.keys() == keys for row in value):
        return None
    return Columns(tuple(keys), tuple([row[key] for row in value] for key in keys))


def _steps(values: Sequence[int]) -> list[int]:
    """Return the difference of each value to the one before it, of the first one to 0."""
    return list(map(sub, values, chain((0,), values)))
