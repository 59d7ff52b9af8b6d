"""The JSON of Valgrind's DHAT, versions 1 and 2, also as dhat-rs and Firefox's DMD write it.

Source: the notes on the file format in dhat/dh_main.c of Valgrind 3.15 to 3.28.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder
from footprint.heap.labels import read_label
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile, Tally

__all__ = ("looks_like_dhat", "read_dhat")

_MOST_BYTES: Final = 128 << 20
# Of the text each object and list has more: what is made of brackets would fill memory.
_LEAST_BYTES_PER_BRACKET: Final = 12
_MOST_DIGITS: Final = 640  # the least that Python lets one ask for; an amount has 20
_COUNTED: Final = {"copy": Counted.COPIES, "ad-hoc": Counted.EVENTS}
_TALLIES: Final = {Counted.HEAP: "allocated", Counted.COPIES: "copied", Counted.EVENTS: "occurred"}


def looks_like_dhat(start: bytes) -> bool:
    """Tell whether a text is DHAT's, by its first bytes."""
    return start.lstrip().startswith(b"{") and b'"dhatFileVersion"' in start


def read_dhat(pieces: Iterable[bytes], source: str) -> Profile:
    """Read DHAT's file from the pieces of its text.

    Raises:
        InputError: Where it is not the JSON that DHAT writes.
        UnsupportedError: Where its version is a later one, or it is longer than what fits into memory as JSON.
    """
    facts = _Object(_parsed(_whole(pieces, source), source), "the file", source)
    version = facts.amount("dhatFileVersion")
    if version not in {1, 2}:
        raise UnsupportedError(source, f"version {version} of DHAT's file: 1 and 2 are known")
    # Version 1 knew the heap only, and had other words for some of it.
    mode = facts.text("mode", "heap")
    counted = _COUNTED.get(mode, Counted.HEAP)
    points_key, peak_key, end_key, left_key = ("aps", "mi", "ei", "fb") if version == 1 else ("pps", "tg", "te", "eb")
    lives_key = "tli" if version == 1 else "tl"
    frames = tuple(_frame(label, source) for label in facts.entries("ftbl")) or (Frame(label="[root]"),)
    points = [_Object(point, f"a point of `{points_key}`", source) for point in facts.entries(points_key)]
    stacks = CallTreeBuilder()
    ends = [stacks.add(point.frames(len(frames))) for point in points]

    def tree(key: str, *, has_blocks: bool = True) -> CallTree:
        sizes = [point.amount(key, 0) for point in points]
        counts = [point.amount(f"{key}k", 0) for point in points] if has_blocks else None
        return stacks.tree(frames, ends, sizes, counts, source)

    snapshots: list[HeapSnapshot] = []
    if facts.is_on("bklt") and counted is Counted.HEAP:
        at_peak, at_end = tree("gb"), tree(left_key)
        peak_time = facts.amount(peak_key) if peak_key in facts else None
        snapshots.append(HeapSnapshot(0, peak_time, at_peak.total_bytes, tree=at_peak, is_peak=True))
        snapshots.append(HeapSnapshot(1, facts.amount(end_key), at_end.total_bytes, tree=at_end))
    tallies = [Tally(_TALLIES[counted], tree("tb"))]
    if facts.is_on("bkacc") and counted is Counted.HEAP:
        tallies += [Tally(name, tree(key, has_blocks=False)) for name, key in (("read", "rb"), ("written", "wb"))]
    # Of a long run these are more than a column holds, and too many for anything that lived from the start.
    if snapshots and sum(point.amount(lives_key, 0) for point in points) <= MOST_AMOUNT:
        tallies.append(Tally("lived", tree(lives_key, has_blocks=False)))
    notes = []
    if counted is not Counted.HEAP:
        unit = facts.text("bsu", "bytes")
        notes.append(Note("heap-not-memory", source, f"DHAT's mode {mode} counts {unit} that are no memory in use"))
    return Profile(
        "dhat",
        counted,
        facts.text("cmd", "") or None,
        f"--mode={mode}",
        facts.text("tu", "instrs"),
        facts.amount("pid") if "pid" in facts else None,
        frames,
        tuple(snapshots),
        0 if snapshots else None,
        tuple(tallies),
        notes=tuple(notes),
    )


def _whole(pieces: Iterable[bytes], source: str) -> bytes:
    parts, total_bytes = [], 0
    for piece in pieces:
        total_bytes += len(piece)
        if total_bytes > _MOST_BYTES:
            raise UnsupportedError(source, f"longer than {_MOST_BYTES:,} bytes, which is too much to hold as JSON")
        parts.append(piece)
    return b"".join(parts)


def _parsed(data: bytes, source: str) -> dict[str, Any]:
    # A point whose frames were all left out has lost the bracket that is written with the first. In a string this
    # would not be found: a quote is escaped there. Names come from the program, and may be in no encoding.
    if (data.count(b"{") + data.count(b"[")) * _LEAST_BYTES_PER_BRACKET > len(data) + 4096:
        raise InputError(source, "not the JSON that DHAT writes: it has hardly anything but brackets")
    text = data.replace(b'"fs":]', b'"fs":[]').decode("utf-8", "surrogateescape")
    try:
        facts = json.loads(text, strict=False, parse_int=_integer, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        raise InputError(source, f"not the JSON that DHAT writes: {error.msg}", offset) from error
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"not the JSON that DHAT writes: {error}") from error
    if not isinstance(facts, dict):
        raise InputError(source, "not the JSON that DHAT writes: no object", 0)
    return facts


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


class _Object:
    """An object of the file, whose members are of the type that is asked for, or refused."""

    def __init__(self, members: object, what: str, source: str) -> None:
        if not isinstance(members, dict):
            raise InputError(source, f"{what} is no object")
        self._members, self._what, self._source = members, what, source

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def is_on(self, key: str) -> bool:
        """Tell whether a switch is on, as it is where it is missing."""
        return self._members.get(key, True) is not False

    def amount(self, key: str, default: int | None = None) -> int:
        value = self._members.get(key, default)
        if type(value) is not int or not 0 <= value <= MOST_AMOUNT:
            raise InputError(self._source, f"{self._what}: `{key}` is no amount")
        return value

    def text(self, key: str, default: str) -> str:
        value = self._members.get(key, default)
        if not isinstance(value, str):
            raise InputError(self._source, f"{self._what}: `{key}` is no text")
        return value

    def entries(self, key: str) -> list[object]:
        value = self._members.get(key)
        if not isinstance(value, list):
            raise InputError(self._source, f"{self._what}: `{key}` is no list")
        return value

    def frames(self, count: int) -> list[int]:
        """Give the places of the frames of a point, the innermost first."""
        places: list[int] = []
        for place in self.entries("fs"):
            if type(place) is not int or not 0 <= place < count:
                raise InputError(self._source, f"{self._what}: a frame that `ftbl` does not have")
            places.append(place)
        return places


def _frame(label: object, source: str) -> Frame:
    if not isinstance(label, str):
        raise InputError(source, "`ftbl` holds something that is no text")
    return read_label(label)
