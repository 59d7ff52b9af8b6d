"""The labels of Valgrind for a place in a program: `0x10A464: main (heap.cc:29)`."""

import re
from typing import Final

from footprint.heap.profile import Frame

_CALL: Final = re.compile(r"0x([0-9A-Fa-f]{1,16}): (.*)", re.DOTALL)
# dhat-rs adds the column.
_SOURCE: Final = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)
_UNKNOWN: Final = "???"
# Names and paths may contain parentheses: the number of places tried, from the end, for the end of the name.
_MOST_TRIES: Final = 16


def read_label(text: str) -> Frame:
    """Read one label. A label without an address is not a call, and is kept as text."""
    call = _CALL.fullmatch(text)
    if call is None:
        return Frame(label=text)
    addr, rest = int(call[1], 16), call[2]
    if rest.endswith(")"):
        start = len(rest)
        for _ in range(_MOST_TRIES):
            start = rest.rfind(" (", 0, start)
            if start < 0:
                break
            place = rest[start + 2 : -1]
            # In `f(int) (in /a (b)/c.so)` the last parenthesis belongs to the path; only the one before it fits.
            if place.startswith("in ") and place.count("(") == place.count(")"):
                return Frame(addr, _stated(rest[:start]), object=_stated(place[3:]))
            if (source := _SOURCE.fullmatch(place)) and place.count("(") == place.count(")"):
                return Frame(addr, _stated(rest[:start]), source[1], int(source[2]))
    return Frame(addr, _stated(rest))


def _stated(text: str) -> str | None:
    return None if text == _UNKNOWN else text
