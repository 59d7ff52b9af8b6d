"""The allocations and frees of a recording of heaptrack, counted without a step of Python per line.

A recording has many millions of lines `+ CLASS` and `- CLASS`, and few different ones: allocations of equal size and
call stack are a class. Each different line has an iterator: every item of it counts one event, and is the change of the
memory in use. So `map(next, map(iterators.__getitem__, lines))` reads a list of lines at the speed of C.

A free without a block has no item, which ends the `map`. So the iterator of the frees of a class has as many items as
the class has blocks, and new ones are made when these are used up. Where there are few blocks, it would often be used
up: then the two iterators of the class share a `bytearray`. An allocation appends a byte, a free steps over one.

Two lines that allocate and at once free a block are often a large part of a recording. They change the memory in use
only between them, so they are taken out before.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate, chain, compress, filterfalse, repeat
from operator import add, length_hint
from sys import maxsize
from typing import Final, Generic, TypeVar

from footprint.members import NamedTuple, lazy_pattern

# Iterators take up to 0.8 KB per class, and a byte per allocation: classes with few events have none.
_MOST_ITERATED_CLASSES: Final = 1 << 16
_FEW_EVENTS: Final = 4
_FEW_BLOCKS: Final = 16
# After so many lines all iterators are made anew; then after twice as many, up to a limit.
_LINES_OF_ITERATORS: Final = (1 << 17, 1 << 24)
_LINES_AFTER_PEAK: Final = 1 << 15
_SIGNS: Final = {"+ ": 1, "- ": -1}
_TEMPORARY: Final = lazy_pattern(r"\n\+ (.{1,8}+)\n- \1$", re.MULTILINE)
_FIRST_EVENT: Final = lazy_pattern(r"\n([+-] .*)")
_ONES: Final = repeat(1)
_NO_CHANGE: Final = repeat(0)
_REFUSED: Final[Iterator[int]] = iter(())

_Item = TypeVar("_Item")


class Events:
    """The blocks of each class: those in use, and those ever allocated.

    Args:
        read_other: Reads a line that is not an event; raises ValueError, IndexError or OverflowError if it is damaged.
        skip: Notes a line that is damaged, or frees a block of a class that has none in use.

    Attributes:
        live_bytes: The memory in use.
        sizes: The size of the blocks of each class.
    """

    def __init__(self, read_other: Callable[[bytes], None], skip: Callable[[bytes], None]) -> None:
        self._read_other, self._skip = read_other, skip
        self.live_bytes = 0
        self.sizes = array("q")
        # The allocations of each class, and its blocks in use, without those of its iterators.
        self._ever, self._live = array("q"), array("q")
        self._iterators = _Table(self._iterator)
        self._iterated: dict[int, _Iterated] = {}
        self._iterated_lines, self._most_iterated_lines, self._few_events = 0, _LINES_OF_ITERATORS[0], _FEW_EVENTS
        # The temporary blocks by the name of their class: iterators of those taken out, those put back, and others.
        self._pairs = _Table(self._pairs_of)
        self._put_back, self._temporary = Counter[str](), Counter[str]()
        self._last_event = ""
        # The peak, the lines that follow its text, and the blocks in use after these once they are many.
        self._peak = _Peak((0, 0), 0, 0, [], [], [], [])
        self._lines_after: list[str] = []
        self._live_after: array[int] | None = array("q")

    def add_class(self, size_bytes: int) -> None:
        """Add a class of blocks of this size."""
        for column, amount in ((self.sizes, size_bytes), (self._ever, 0), (self._live, 0)):
            column.append(amount)

    def read(self, lines_text: bytes, moment: tuple[int, int]) -> None:
        """Read the lines of one moment."""
        # Dictionaries find a `str` faster than `bytes`. Each byte is one letter.
        text = "\n" + lines_text.decode("latin-1")
        self._count_between(text)
        parts = _TEMPORARY.split(text)
        names = parts[1::2]
        sizes = list(map(next, map(self._pairs.__getitem__, names)))
        if len(sizes) < len(names):
            # The classes are new, or lines are damaged.
            self._put_back.update(names[: len(sizes)])
            parts, sizes = [text], []
        lines = "".join(parts[::2])[1:].split("\n")
        sums, is_damaged = self._sums(lines)
        if names and not sizes:
            self._temporary.update(_TEMPORARY.findall("\n".join(["", *lines])) if is_damaged else names)
        self.live_bytes = sums[-1]
        self._iterated_lines += len(lines)
        if self._iterated_lines > self._most_iterated_lines:
            self._settle_all()
            self._most_iterated_lines = min(2 * self._most_iterated_lines, _LINES_OF_ITERATORS[1])
        least_bytes = max(sums)
        most_bytes = least_bytes + max(sizes, default=0)
        self._keep_peak(_Peak(moment, least_bytes, most_bytes, lines, sums, parts, sizes))

    def _keep_peak(self, new: "_Peak") -> None:
        old, lines = self._peak, new.lines
        if old.least_bytes < new.most_bytes and new.least_bytes <= old.most_bytes:
            old, new = old.located(), new.located()
        if new.least_bytes > old.least_bytes:
            self._peak, self._lines_after, self._live_after = new, [], None
            return
        self._peak = old
        if self._live_after is None:
            self._lines_after += lines
            if len(self._lines_after) > _LINES_AFTER_PEAK + len(self._iterated):
                self._live_after = self.live()

    def ever(self) -> "array[int]":
        """Return the allocations of each class."""
        amounts = self._ever[:]
        for place, iterated in self._iterated.items():
            amounts[place] += iterated.allocated()
        return _added(amounts, self._taken_out())

    def live(self) -> "array[int]":
        """Return the blocks of each class in use."""
        amounts = self._live[:]
        for place, iterated in self._iterated.items():
            amounts[place] = iterated.live()
        return amounts

    def peak(self) -> tuple[tuple[int, int], int, "array[int]"]:
        """Return the moment of the peak, the memory in use, and the blocks of each class in use."""
        peak = self._peak.located()
        after = self.live() if self._live_after is None else self._live_after
        blocks = after + self._zeros()[len(after) :]
        for line, count in Counter(peak.lines + self._lines_after).items():
            sign, name = _SIGNS.get(line[:2]), line[2:]
            if sign is not None:
                blocks[int(name, 16)] -= sign * count
        if peak.name:
            blocks[int(peak.name, 16)] += 1
        return peak.moment, peak.least_bytes, blocks

    def temporary(self) -> "array[int]":
        """Return the allocations of each class that the next line freed, or that behind a moment."""
        return _added(_added(self._zeros(), self._taken_out()), self._temporary)

    def _zeros(self) -> "array[int]":
        return array("q", bytes(8 * len(self.sizes)))

    def _count_between(self, text: str) -> None:
        """Count a temporary block that is allocated by the last event, and freed by the first one of a text."""
        first = _FIRST_EVENT.search(text)
        if first is None:
            return
        name = first[1][2:]
        if (self._last_event, first[1][:2]) == ("+ " + name, "- ") and self._size_of(name) is not None:
            self._temporary[name] += 1
        last = max(text.rfind("\n+ "), text.rfind("\n- ")) + 1
        self._last_event = text[last:].partition("\n")[0]

    def _size_of(self, name: str) -> int | None:
        """Return the size of the blocks of a class, named as heaptrack writes it; None where there is none."""
        with suppress(ValueError):
            place = int(name, 16)
            if 0 <= place < len(self.sizes) and name == f"{place:x}":
                return self.sizes[place]
        return None

    def _pairs_of(self, name: str) -> Iterator[int]:
        """Return an iterator with the size of a class for each of its blocks that is taken out; keep it."""
        size_bytes = self._size_of(name)
        return _REFUSED if size_bytes is None else self._pairs.setdefault(name, repeat(size_bytes, maxsize))

    def _taken_out(self) -> Counter[str]:
        counts = Counter({name: maxsize - length_hint(sizes) for name, sizes in self._pairs.items()})
        counts.subtract(self._put_back)
        return counts

    def _sums(self, lines: list[str]) -> tuple[list[int], bool]:
        """Return the memory in use before some lines and after each of them, and whether lines were skipped.

        Skipped lines are replaced by empty ones.
        """
        sums, is_damaged = [self.live_bytes], False
        changes = map(next, map(self._iterators.__getitem__, lines))
        while True:
            sums.extend(accumulate(chain((sums.pop(),), changes)))
            at = len(sums) - 1
            if at == len(lines):
                return sums, is_damaged
            change = self._change_again(lines[at])
            if change is None:
                is_damaged = True
                self._skip(lines[at].encode("latin-1"))
                lines[at] = ""
            sums.append(sums[-1] + (change or 0))

    def _change_again(self, line: str) -> int | None:
        """Return the change of a line whose iterator has ended; None where it is damaged."""
        try:
            place = _number(line[2:])
        except ValueError:
            return None
        iterated = self._iterated.get(place)
        if iterated is None or line[:2] != "- ":
            return None
        live = iterated.live()
        if not live:
            # An iterator that has ended does not see later allocations.
            self._settle(place)
            return None
        freed = self._iterators[f"- {place:x}"] = repeat(-self.sizes[place], live)
        iterated.freed, iterated.allocated_before = freed, iterated.allocated()
        return next(freed)

    def _iterator(self, line: str) -> Iterator[int]:
        """Return an iterator whose next item is the change of a line; without an item where the line is damaged."""
        sign, name = _SIGNS.get(line[:2]), line[2:]
        try:
            if sign is None:
                self._read_other(line.encode("latin-1"))
                return _NO_CHANGE
            place = _number(name)
            if place < 0:
                return _REFUSED
            if self._ever[place] < self._few_events and place not in self._iterated:
                if self._live[place] + sign < 0:
                    return _REFUSED
                self._ever[place] += sign > 0
                self._live[place] += sign
                return repeat(sign * self.sizes[place])
        except (ValueError, IndexError, OverflowError):
            return _REFUSED
        if place not in self._iterated:
            self._iterate(place)
        # The number may be written in another way, as with zeros in front.
        return self._iterators[f"{line[:2]}{place:x}"]

    def _iterate(self, place: int) -> None:
        """Make the iterators of a class."""
        if len(self._iterated) == _MOST_ITERATED_CLASSES:
            self._settle_all()
            self._few_events *= 4
        size_bytes, live = self.sizes[place], self._live[place]
        made: Iterator[int] = repeat(size_bytes, maxsize)
        freed: Iterator[int] = repeat(-size_bytes, live)
        allocations, frees, is_paired = made, freed, live < _FEW_BLOCKS
        if is_paired:
            blocks = bytearray(b"\1") * live
            freed = iter(blocks)
            allocations = compress(made, filterfalse(blocks.append, _ONES))
            frees = compress(repeat(-size_bytes), freed)
        self._iterators[f"+ {place:x}"], self._iterators[f"- {place:x}"] = allocations, frees
        self._iterated[place] = _Iterated(made, freed, None if is_paired else 0)

    def _settle(self, place: int) -> None:
        """Add the events of a class to the columns, and drop its iterators."""
        iterated = self._iterated.pop(place, None)
        if iterated is not None:
            self._ever[place] += iterated.allocated()
            self._live[place] = iterated.live()
            del self._iterators[f"+ {place:x}"], self._iterators[f"- {place:x}"]

    def _settle_all(self) -> None:
        for place in list(self._iterated):
            self._settle(place)
        self._iterated_lines = 0


class _Iterated:
    """The iterators of a class.

    Attributes:
        made: Has an item less for each allocation.
        freed: Has an item less for each free.
        allocated_before: The allocations that `freed` has items for; None where these are all.
    """

    __slots__ = ("allocated_before", "freed", "made")

    def __init__(self, made: Iterator[int], freed: Iterator[int], allocated_before: int | None) -> None:
        self.made, self.freed, self.allocated_before = made, freed, allocated_before

    def allocated(self) -> int:
        """Return the number of allocations."""
        return maxsize - length_hint(self.made)

    def live(self) -> int:
        """Return the number of blocks in use."""
        before = self.allocated_before
        return length_hint(self.freed) + (0 if before is None else self.allocated() - before)


class _Peak(NamedTuple):
    """The peak of some lines, which is located only where it has to be.

    Attributes:
        moment: The moment of the lines.
        least_bytes: The least that it can be.
        most_bytes: The most that it can be.
        lines: The lines; of a located peak those that follow it.
        sums: The memory in use before the lines, and after each of them; empty for a located peak.
        parts: The text of the lines, with the names of temporary blocks that were taken out of it.
        sizes: The sizes of these blocks.
        name: The temporary block in use at a located peak.
    """

    moment: tuple[int, int]
    least_bytes: int
    most_bytes: int
    lines: list[str]
    sums: list[int]
    parts: list[str]
    sizes: list[int]
    name: str = ""

    def located(self) -> "_Peak":
        """Return the peak located: its bounds are equal."""
        if not self.sums:
            return self
        size_bytes, at, name = self.least_bytes, self.sums.index(self.least_bytes), ""
        if self.sizes:
            places = list(accumulate(map(str.count, self.parts[:-1:2], repeat("\n"))))
            tops = list(map(add, map(self.sums.__getitem__, places), self.sizes))
            top_bytes = max(tops)
            number = tops.index(top_bytes)
            if (top_bytes, -places[number]) > (size_bytes, -at):
                size_bytes, at, name = top_bytes, places[number], self.parts[2 * number + 1]
        return _Peak(self.moment, size_bytes, size_bytes, self.lines[at:], [], [], [], name)


def _added(counts: "array[int]", by_name: Counter[str]) -> "array[int]":
    for name, count in by_name.items():
        counts[int(name, 16)] += count
    return counts


def _number(name: str) -> int:
    """Read the number of a class; letters beyond ASCII are no spaces around it."""
    return int(name.encode("latin-1"), 16)


class _Table(dict[str, _Item], Generic[_Item]):
    """A dictionary that asks a function for what it lacks."""

    def __init__(self, other: Callable[[str], _Item]) -> None:
        super().__init__()
        self._other = other

    def __missing__(self, key: str) -> _Item:
        return self._other(key)
