"""The JSON of Valgrind's DHAT, versions 1 and 2, also from dhat-rs and from DMD of Firefox.

Source: the notes on the file format in dhat/dh_main.c of Valgrind 3.15 to 3.28.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder
from footprint.heap.labels import read_label
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile, Tally
from footprint.json.stream import JsonStream

_COUNTED: Final = {"copy": Counted.COPIES, "ad-hoc": Counted.EVENTS}
# The amounts of a point, by the list of the points: version 1 has `aps`.
_AMOUNTS: Final = {
    "pps": ("tb", "tbk", "tl", "gb", "gbk", "eb", "ebk", "rb", "wb"),
    "aps": ("tb", "tbk", "tli", "gb", "gbk", "fb", "fbk", "rb", "wb"),
}
_NO_AMOUNT: Final = -1
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
    for key, value in stream.members({*_AMOUNTS, "ftbl"}):
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


class _Points:
    """The points of a list, as columns.

    Attributes:
        stacks: The call stacks.
        ends: The node where that of each point ends.
    """

    def __init__(self, key: str, parts: Iterable[list[Any]], source: str) -> None:
        self._what, self._source = f"a point of `{key}`", source
        self._columns = {name: array("q") for name in _AMOUNTS[key]}
        self._last_frame = 0
        self.stacks, self.ends = CallTreeBuilder(), list[int]()
        for points in parts:
            if {*map(type, points)} != {dict}:
                raise InputError(source, f"{self._what} is not an object")
            stacks = _column(points, "fs", None)
            self.ends += self.stacks.add_all(self._frames_of(stacks), map(len, stacks))
            for name, column in self._columns.items():
                amounts = _column(points, name, 0)
                try:
                    column.extend(amounts if {*map(type, amounts)} == {int} else [_NO_AMOUNT])
                except OverflowError:
                    column.append(_NO_AMOUNT)

    def _frames_of(self, stacks: list[Any]) -> "array[int]":
        """Return the indexes of the frames of points, the innermost of each first."""
        if {*map(type, stacks)} != {list}:
            raise InputError(self._source, f"{self._what}: `fs` is not a list")
        places = [*chain.from_iterable(stacks)]
        try:
            # A number below 0 does not fit.
            frames = array("I", places if {*map(type, places)} <= {int} else [_NO_AMOUNT])
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


def _column(points: list[dict[str, Any]], name: str, default: int | None) -> list[Any]:
    """Return one member of each point; most have all of them."""
    try:
        return list(map(itemgetter(name), points))
    except KeyError:
        return [point.get(name, default) for point in points]


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
