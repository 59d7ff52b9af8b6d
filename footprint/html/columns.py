"""The tables of an answer as compressed columns, a tenth of the size of the JSON.

A table is stored by columns. Each text is stored once, in a sorted list, as the number of characters that it shares
with the text before it and the rest. The script of the report restores the rows of the JSON from that.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from footprint.formats.json import Json

__all__ = ("MOST_EXACT", "inexact_count", "payload")

MOST_EXACT: Final = (1 << 53) - 1
"""The largest integer that a browser holds exactly, together with all smaller ones."""

_NO_TEXT: Final = -1


def payload(answers: Json) -> str:
    """Pack answers into text: deflated JSON with `texts` and `answers`, in base64."""
    texts = _Texts(answers)
    whole = {"answers": texts.packed(answers), "texts": texts.front_coded()}
    text = json.dumps(whole, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def inexact_count(value: object) -> int:
    """Count the integers that a browser would round."""
    if not isinstance(value, dict | list):
        return int(isinstance(value, int) and abs(value) > MOST_EXACT)
    members = value.values() if isinstance(value, dict) else value
    # Large tables have many cells: their integers are checked without a call for each.
    figures = sum([1 for one in members if type(one) is int and not -MOST_EXACT <= one <= MOST_EXACT])
    return figures + sum([inexact_count(one) for one in members if type(one) in {dict, list}])


def _is_table(value: object) -> bool:
    """Return whether a value is a list of rows that all have the same members."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return False
    keys = value[0].keys()
    return all(isinstance(row, dict) and row.keys() == keys for row in value)


def _is_texts(column: Sequence[object]) -> bool:
    return {str, type(None)} >= set(map(type, column))


class _Texts:
    """The texts in the tables of answers."""

    def __init__(self, answers: Json) -> None:
        found: set[str] = set()
        self._collect(answers, found)
        self._ordered = sorted(found)
        self._places = {text: place for place, text in enumerate(self._ordered)}

    def _collect(self, value: object, found: set[str]) -> None:
        if isinstance(value, dict):
            for member in value.values():
                self._collect(member, found)
        elif isinstance(value, list) and _is_table(value):
            for key in value[0]:
                column = [row[key] for row in value]
                if _is_texts(column):
                    found.update(text for text in column if text is not None)

    def packed(self, value: object) -> object:
        """Replace each table in a value by `{"rows": count, "keys": [...], "texts": {...}, "values": {...}}`."""
        if isinstance(value, dict):
            return {key: self.packed(member) for key, member in value.items()}
        if not isinstance(value, list) or not _is_table(value):
            return value
        texts, values, places = {}, {}, self._places
        for key in value[0]:
            column = [row[key] for row in value]
            if _is_texts(column):
                texts[key] = [_NO_TEXT if text is None else places[text] for text in column]
            else:
                values[key] = column
        return {"rows": len(value), "keys": list(value[0]), "texts": texts, "values": values}

    def front_coded(self) -> Json:
        """Return the sorted texts: the number of characters that each shares with the text before it, and its rest."""
        shared, rests, before = [], [], ""
        for text in self._ordered:
            # JavaScript counts a character above 0xffff as two: only ASCII texts are shortened.
            same = _shared_count(before, text) if before.isascii() and text.isascii() else 0
            shared.append(same)
            rests.append(text[same:])
            before = text
        return {"shared": shared, "rests": rests}


def _shared_count(one: str, other: str) -> int:
    """Count the characters that two texts share at their beginning, by bisection: names are long and similar."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
