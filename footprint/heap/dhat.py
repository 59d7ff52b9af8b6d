"""The JSON of Valgrind's DHAT, versions 1 and 2, also from dhat-rs and from DMD of Firefox.

Source: the notes on the file format in dhat/dh_main.c of Valgrind 3.15 to 3.28.
"""

import json
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder, read_label
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile, Tally
from footprint.json.stream import JsonStream
from footprint.members import NamedTuple, lazy_pattern

_COUNTED: Final = {"copy": Counted.COPIES, "ad-hoc": Counted.EVENTS}
# The amounts of a point, by the list of the points: version 1 has `aps`.
_AMOUNTS: Final = {
    "pps": ("tb", "tbk", "tl", "gb", "gbk", "eb", "ebk", "rb", "wb"),
    "aps": ("tb", "tbk", "tli", "gb", "gbk", "fb", "fbk", "rb", "wb"),
}
_NO_AMOUNT: Final = -1
# The counts of accesses, which no answer needs, so they are not checked; and the stack that ends a point.
_ACCESSES: Final = lazy_pattern(r'"acc":\[[0-9,-]*\][ \t\n\r]*,')
_STACK: Final = lazy_pattern(r'"fs":\[([0-9,]+)\][ \t\n\r]*\}(?:[ \t\n\r]*,[ \t\n\r]*|\Z)')
_DIGITS: Final = b"0123456789"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
_NO_NUMBER: Final = bytes({*range(256)}.difference(_DIGITS + b","))
# All digits become one, and all that is neither a digit nor a colon a space.
_KINDS: Final = bytes(ord("0") if byte in _DIGITS else byte if byte == ord(":") else ord(" ") for byte in range(256))
_scan: Final[Any] = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
_TALLIES: Final = {Counted.HEAP: "allocated", Counted.COPIES: "copied", Counted.EVENTS: "occurred"}


def looks_like_dhat(start: bytes) -> bool:
    """Return whether the first bytes are those of a DHAT file."""
    return start.lstrip().startswith(b"{") and b'"dhatFileVersion"' in start


def read_dhat(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a DHAT file from the pieces of its text.

    Raises:
        InputError: Where it is not the JSON of DHAT.
        UnsupportedError: Where its version is newer.
    """
    facts, points_by_key = _read(pieces, source)
    version = facts.amount("dhatFileVersion")
    if version not in {1, 2}:
        raise UnsupportedError(source, f"version {version} of a DHAT file: only 1 and 2 are supported")
    # Version 1 counted the heap only, with other names for some fields.
    mode = facts.text("mode", "heap")
    counted = _COUNTED.get(mode, Counted.HEAP)
    points_key, peak_key, end_key, left_key = ("aps", "mi", "ei", "fb") if version == 1 else ("pps", "tg", "te", "eb")
    lives_key = "tli" if version == 1 else "tl"
    frames = facts.frames() or (Frame(label="[root]"),)
    points = points_by_key.get(points_key)
    if points is None:
        raise InputError(source, f"the file: `{points_key}` is not a list")
    points.check_frames(len(frames))

    def tree(key: str, *, has_blocks: bool = True) -> CallTree:
        counts = points.amounts(f"{key}k") if has_blocks else None
        return points.stacks.tree(frames, points.ends, points.amounts(key), counts, source)

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
    if snapshots and sum(points.amounts(lives_key)) <= MOST_AMOUNT:
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


def _read(pieces: Iterable[bytes], source: str) -> tuple["_Facts", dict[str, "_Points"]]:
    """Read the members of the file, and its points: a large file has millions of these."""
    stream = JsonStream(pieces, "the JSON of DHAT", source, _mended)
    facts, points_by_key = _Facts(source), dict[str, _Points]()
    for key, value in stream.members({*_AMOUNTS, "ftbl"}, dict.fromkeys(_AMOUNTS, _part_of_text)):
        if not isinstance(value, Iterator):
            facts.members[key] = value
            points_by_key.pop(key, None)
        elif key == "ftbl":
            labels = chain.from_iterable(value)
            facts.members[key] = [read_label(label) if isinstance(label, str) else None for label in labels]
        else:
            points_by_key[key] = _Points(key, value, source)
    return facts, points_by_key


def _mended(text: str) -> str:
    # DHAT writes the opening bracket of `fs` with the first frame: it is missing where all frames were omitted. Strings
    # cannot contain this text, because quotes are escaped there.
    return text.replace('"fs":]', '"fs":[]')


class _Part(NamedTuple):
    """Some points: the frames of all stacks, how many each has, the names of their amounts, and these by point."""

    frames: list[int]
    lengths: list[int]
    names: list[str]
    amounts: list[int]


def _part_of_text(text: str) -> _Part | None:
    """Read points whose texts differ in their digits alone, in half of the time; None where they have another form."""
    *parts, rest = _STACK.split(_ACCESSES.sub("", text))
    heads, stacks = "".join(parts[::2]).encode("utf-8", "surrogateescape"), parts[1::2]
    try:
        head = f'{parts[0]}"fs":[]}}'
        first, end = _scan(head, 0)
        if type(first) is not dict:
            return None
        names = [*first][:-1]
        form = parts[0].encode("ascii").translate(None, _DIGITS)
        if rest or heads.translate(None, _DIGITS) != form * len(stacks) or b" 0" in heads.translate(_KINDS, _LETTERS):
            return None
        if end < len(head) or not "".join(names).isalpha():
            return None
        if {type(first.get(name)) for name in names} != {int} or b"-" in form:
            return None
        amounts = _scan(f"[{heads.translate(None, _NO_NUMBER).decode()[:-1]}]", 0)[0]
        frames = _scan(f"[{','.join(stacks)}]", 0)[0]
    except (StopIteration, ValueError, IndexError):
        return None
    lengths = [stack.count(",") + 1 for stack in stacks]
    # A number may be missing.
    return _Part(frames, lengths, names, amounts) if len(amounts) == len(names) * len(stacks) else None


def _part_of(points: list[Any], names: tuple[str, ...], what: str, source: str) -> _Part:
    if {*map(type, points)} != {dict}:
        raise InputError(source, f"{what} is not an object")
    stacks = [point.get("fs") for point in points]
    if {*map(type, stacks)} != {list}:
        raise InputError(source, f"{what}: `fs` is not a list")
    frames = [*chain.from_iterable(stacks)]
    if not {*map(type, frames)} <= {int}:
        frames = [_NO_AMOUNT]
    amounts = [point.get(name, 0) for point in points for name in names]
    if {*map(type, amounts)} != {int}:
        amounts = [amount if type(amount) is int else _NO_AMOUNT for amount in amounts]
    return _Part(frames, [*map(len, stacks)], [*names], amounts)


class _Points:
    """The points of a list, as columns.

    Attributes:
        stacks: The call stacks.
        ends: The node where that of each point ends.
    """

    def __init__(self, key: str, parts: Iterable[list[Any] | _Part], source: str) -> None:
        self._what, self._source = f"a point of `{key}`", source
        self._columns = {name: array("q") for name in _AMOUNTS[key]}
        self._last_frame = 0
        self.stacks, self.ends = CallTreeBuilder(), list[int]()
        for points in parts:
            part = points if isinstance(points, _Part) else _part_of(points, _AMOUNTS[key], self._what, source)
            self.ends += self.stacks.add_all(self._frames_of(part.frames), part.lengths)
            count = len(part.names)
            for name, column in self._columns.items():
                is_there = name in part.names
                amounts = part.amounts[part.names.index(name) :: count] if is_there else [0] * len(part.lengths)
                try:
                    column.extend(amounts)
                except OverflowError:
                    column.append(_NO_AMOUNT)

    def _frames_of(self, places: list[int]) -> "array[int]":
        """Return the indexes of the frames of points, the innermost of each first."""
        try:
            # A number below 0 does not fit.
            frames = array("I", places)
        except OverflowError as error:
            raise InputError(self._source, f"{self._what}: a frame that is not in `ftbl`") from error
        self._last_frame = max(self._last_frame, max(places, default=0))
        return array("i", frames.tobytes())

    def check_frames(self, count: int) -> None:
        """Refuse frames that the file does not have."""
        if self._last_frame >= count:
            raise InputError(self._source, f"{self._what}: a frame that is not in `ftbl`")

    def amounts(self, name: str) -> "array[int]":
        """Return one amount of each point."""
        column = self._columns[name]
        if column and min(column) < 0:
            raise InputError(self._source, f"{self._what}: `{name}` is not an amount")
        return column


class _Facts:
    """The other members of the file; one of another type than the requested one is an error."""

    def __init__(self, source: str) -> None:
        self.members: dict[str, Any] = {}
        self._source = source

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def is_on(self, key: str) -> bool:
        """Return whether a switch is on; a missing switch is on."""
        return self.members.get(key, True) is not False

    def amount(self, key: str, default: int | None = None) -> int:
        value = self.members.get(key, default)
        if type(value) is not int or not 0 <= value <= MOST_AMOUNT:
            raise InputError(self._source, f"the file: `{key}` is not an amount")
        return value

    def text(self, key: str, default: str) -> str:
        value = self.members.get(key, default)
        if not isinstance(value, str):
            raise InputError(self._source, f"the file: `{key}` is not a string")
        return value

    def frames(self) -> tuple[Frame, ...]:
        """Return the frames of the table."""
        value = self.members.get("ftbl")
        if not isinstance(value, list):
            raise InputError(self._source, "the file: `ftbl` is not a list")
        if None in value:
            raise InputError(self._source, "`ftbl` has an entry that is not a string")
        return tuple(value)
