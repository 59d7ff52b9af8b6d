"""The tables of an answer as columns, compressed: a tenth of what they take as JSON.

A table becomes its columns; texts stand once, in an ordered list of their own, in which each says how many characters
it shares with the one before. The page makes the rows of the JSON again from that, so that it holds nothing twice.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

__all__ = ("MOST_EXACT", "inexact_count", "payload")

Json = dict[str, Any]

MOST_EXACT: Final = (1 << 53) - 1
"""The largest number that every number up to it has a place of its own for in a browser."""

_NO_TEXT: Final = -1


def payload(answers: Json) -> str:
    """Give some answers as text in base64: deflated JSON with `texts` and `answers`."""
    texts = _Texts(answers)
    whole = {"answers": texts.packed(answers), "texts": texts.front_coded()}
    text = json.dumps(whole, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def inexact_count(value: object) -> int:
    """Count the figures that a browser rounds."""
    if not isinstance(value, dict | list):
        return int(isinstance(value, int) and abs(value) > MOST_EXACT)
    members = value.values() if isinstance(value, dict) else value
    # The cells of a large table are many, and few of them are not what they seem.
    figures = sum([1 for one in members if type(one) is int and not -MOST_EXACT <= one <= MOST_EXACT])
    return figures + sum([inexact_count(one) for one in members if type(one) in {dict, list}])


def _is_table(value: object) -> bool:
    """Tell whether something is rows that all have the same members."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return False
    keys = value[0].keys()
    return all(isinstance(row, dict) and row.keys() == keys for row in value)


def _is_texts(column: Sequence[object]) -> bool:
    return {str, type(None)} >= set(map(type, column))


class _Texts:
    """The texts of the tables of some answers."""

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
        """Give an answer with its tables as columns: `{"rows": how many, "texts": {...}, "values": {...}}`."""
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
        """Give the texts in their order: how many characters each shares with the one before, and its rest."""
        shared, rests, before = [], [], ""
        for text in self._ordered:
            # What JavaScript calls a character is half of one beyond 0xffff: only the others are counted alike.
            same = _shared_count(before, text) if before.isascii() and text.isascii() else 0
            shared.append(same)
            rests.append(text[same:])
            before = text
        return {"shared": shared, "rests": rests}


def _shared_count(one: str, other: str) -> int:
    """Count the characters with which two texts begin alike, by halves: names are long, and alike for long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
