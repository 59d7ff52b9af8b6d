"""The JSON of Valgrind's DHAT, versions 1 and 2, also from dhat-rs and from DMD of Firefox.

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
# Each object and list has more text than this; a text of brackets alone would fill the memory.
_LEAST_BYTES_PER_BRACKET: Final = 12
_MOST_DIGITS: Final = 640  # the smallest limit that Python has; an amount has 20
_COUNTED: Final = {"copy": Counted.COPIES, "ad-hoc": Counted.EVENTS}
_TALLIES: Final = {Counted.HEAP: "allocated", Counted.COPIES: "copied", Counted.EVENTS: "occurred"}


def looks_like_dhat(start: bytes) -> bool:
    """Return whether the first bytes are those of a DHAT file."""
    return start.lstrip().startswith(b"{") and b'"dhatFileVersion"' in start


def read_dhat(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a DHAT file from the pieces of its text.

    Raises:
        InputError: Where it is not the JSON of DHAT.
        UnsupportedError: Where its version is newer, or it is too long to hold in memory as JSON.
    """
    facts = _Object(_parsed(_whole(pieces, source), source), "the file", source)
    version = facts.amount("dhatFileVersion")
    if version not in {1, 2}:
        raise UnsupportedError(source, f"version {version} of a DHAT file: only 1 and 2 are supported")
    # Version 1 counted the heap only, with other names for some fields.
    mode = facts.text("mode", "heap")
    counted = _COUNTED.get(mode, Counted.HEAP)
    points_key, peak_key, end_key, left_key = ("aps", "mi", "ei", "fb") if version == 1 else ("pps", "tg", "te", "eb")
    lives_key = "tli" if version == 1 else "tl"
    labels = facts.entries("ftbl")
    if not all(isinstance(label, str) for label in labels):
        raise InputError(source, "`ftbl` has an entry that is not a string")
    frames = tuple(read_label(str(label)) for label in labels) or (Frame(label="[root]"),)
    points = [_Object(point, f"a point of `{points_key}`", source) for point in facts.entries(points_key)]
    stacks = CallTreeBuilder()
    ends = [stacks.add(point.frames(len(frames))) for point in points]

    def tree(key: str, *, has_blocks: bool = True) -> CallTree:
        sizes = [point.amount(key, 0) for point in points]
        counts = [point.amount(f"{key}k", 0) for point in points] if has_blocks else None
        return stacks.tree(frames, ends, sizes, counts, source)

    snapshots: tuple[HeapSnapshot, ...] = ()
    if facts.is_on("bklt") and counted is Counted.HEAP:
        at_peak, at_end = tree("gb"), tree(left_key)
        peak_time = facts.amount(peak_key) if peak_key in facts else None
        snapshots = (
            HeapSnapshot(0, peak_time, at_peak.total_bytes, tree=at_peak, is_peak=True),
            HeapSnapshot(1, facts.amount(end_key), at_end.total_bytes, tree=at_end),
        )
    tallies = [Tally(_TALLIES[counted], tree("tb"))]
    if facts.is_on("bkacc") and counted is Counted.HEAP:
        tallies += [Tally(name, tree(key, has_blocks=False)) for name, key in (("read", "rb"), ("written", "wb"))]
    # In a long run these exceed a column: then there is no tally of lives.
    if snapshots and sum(point.amount(lives_key, 0) for point in points) <= MOST_AMOUNT:
        tallies.append(Tally("lived", tree(lives_key, has_blocks=False)))
    notes: tuple[Note, ...] = ()
    if counted is not Counted.HEAP:
        detail = f"DHAT's mode {mode} counts {facts.text('bsu', 'bytes')} that are not memory in use"
        notes = (Note("heap-not-memory", source, detail),)
    return Profile(
        "dhat",
        counted,
        facts.text("cmd", "") or None,
        f"--mode={mode}",
        facts.text("tu", "instrs"),
        facts.amount("pid") if "pid" in facts else None,
        frames,
        snapshots,
        0 if snapshots else None,
        tuple(tallies),
        notes=notes,
    )


def _whole(pieces: Iterable[bytes], source: str) -> bytes:
    parts, total_bytes = [], 0
    for piece in pieces:
        total_bytes += len(piece)
        if total_bytes > _MOST_BYTES:
            raise UnsupportedError(source, f"longer than {_MOST_BYTES:,} bytes: too long to hold in memory as JSON")
        parts.append(piece)
    return b"".join(parts)


def _parsed(data: bytes, source: str) -> dict[str, Any]:
    # DHAT writes the opening bracket of `fs` with the first frame: it is missing where all frames were omitted. Strings
    # cannot contain this text, because quotes are escaped there. Names come from the program, in any encoding.
    if (data.count(b"{") + data.count(b"[")) * _LEAST_BYTES_PER_BRACKET > len(data) + 4096:
        raise InputError(source, "not the JSON of DHAT: it is mostly brackets")
    text = data.replace(b'"fs":]', b'"fs":[]').decode("utf-8", "surrogateescape")
    try:
        facts = json.loads(text, strict=False, parse_int=_integer, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        raise InputError(source, f"not the JSON of DHAT: {error.msg}", offset) from error
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"not the JSON of DHAT: {error}") from error
    if not isinstance(facts, dict):
        raise InputError(source, "not the JSON of DHAT: not an object", 0)
    return facts


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number")


class _Object:
    """An object of the file; a member of another type than the requested one is an error."""

    def __init__(self, members: object, what: str, source: str) -> None:
        if not isinstance(members, dict):
            raise InputError(source, f"{what} is not an object")
        self._members, self._what, self._source = members, what, source

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def is_on(self, key: str) -> bool:
        """Return whether a switch is on; a missing switch is on."""
        return self._members.get(key, True) is not False

    def amount(self, key: str, default: int | None = None) -> int:
        value = self._members.get(key, default)
        if type(value) is not int or not 0 <= value <= MOST_AMOUNT:
            raise InputError(self._source, f"{self._what}: `{key}` is not an amount")
        return value

    def text(self, key: str, default: str) -> str:
        value = self._members.get(key, default)
        if not isinstance(value, str):
            raise InputError(self._source, f"{self._what}: `{key}` is not a string")
        return value

    def entries(self, key: str) -> list[object]:
        value = self._members.get(key)
        if not isinstance(value, list):
            raise InputError(self._source, f"{self._what}: `{key}` is not a list")
        return value

    def frames(self, count: int) -> list[int]:
        """Return the indexes of the frames of a point, the innermost first."""
        places: list[int] = []
        for place in self.entries("fs"):
            if type(place) is not int or not 0 <= place < count:
                raise InputError(self._source, f"{self._what}: a frame that is not in `ftbl`")
            places.append(place)
        return places
