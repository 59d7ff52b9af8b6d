"""Heap profiles of pprof: the protocol buffer `perftools.profiles.Profile`, of Go, tcmalloc, jemalloc, V8 and others.

Source: proto/profile.proto of github.com/google/pprof; https://protobuf.dev/programming-guides/encoding/.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import CallTreeBuilder
from footprint.heap.profile import (
    GO_HEAP,
    V8_HEAP,
    CallTree,
    Counted,
    Frame,
    HeapSnapshot,
    Module,
    Profile,
    Tally,
    sampled_notes,
)
from footprint.members import NamedTuple, lazy_pattern
from footprint.system.decompression import whole_of
from footprint.text.units import first_of

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_FIXED_BYTES: Final = {_FIXED_64: 8, _FIXED_32: 4}
_MOST_SHIFT: Final = 63
_64_BITS: Final = (1 << 64) - 1
_MOST_BYTES: Final = 128 << 20
# More calls than in any profile; and a location takes at least a byte of its sample, and has few inlined calls.
_MOST_CALLS: Final = 1 << 23
_MOST_CALLS_PER_BYTE: Final = 3
# There is no magic number. The first fields are the time and period, a type (two indexes of strings), or the empty
# first string.
_INDEX: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_START: Final = lazy_pattern(
    rb"(?:[\x48\x50\x60]" + _INDEX + rb"){0,3}"
    rb"(?:[\x0a\x5a][\x02-\x0c]\x08" + _INDEX + rb"(?:\x10" + _INDEX + rb")?|\x32\x00)"
    rb"[\x0a\x12\x1a\x22\x2a\x32\x48\x50\x5a\x60]",
    re.DOTALL,
)
# Tags of fields: the number, and the wire type.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING, _PERIOD_TYPE = 0x0A, 0x12, 0x1A, 0x22, 0x2A, 0x32, 0x5A
_MESSAGES: Final = (_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING, _PERIOD_TYPE)
_PERIOD, _COMMENT, _COMMENTS, _DEFAULT_TYPE = 0x60, 0x68, 0x6A, 0x70
_NUMBERS: Final = (0x08, 0x10, 0x18, 0x20, 0x28, 0x30)
_PACKED_1, _PACKED_2, _LINES = 0x0A, 0x12, 0x22
# Names of sample types: bytes in use, and bytes counted over the run.
_IN_USE: Final = lazy_pattern(
    r"inuse(?:[-_]space)?|space|heap[-_]space|heap[-_]live[-_]size|live|unreleased (?:malloc )?size"
)
_ALLOCATED: Final = lazy_pattern(
    r"alloc(?:ated|ations)?(?:[-_](?:space|size))?|alloc_(?:in_new|outside)_tlab_bytes|total (?:malloc )?size"
)
# tcmalloc has the same sample types for blocks in use and for blocks that were allocated: the default is another one.
_OBJECTS: Final = "objects"
# The runtimes that write such profiles of their own heaps, by the suffixes of their source files.
_HEAP_OWNERS: Final = {"go": GO_HEAP, "js": V8_HEAP, "mjs": V8_HEAP, "ts": V8_HEAP}
_KINDS: Final = {
    "cpu": "a CPU profile",
    "contentions": "a profile of waiting for locks",
    "goroutine": "a profile of goroutines",
    "threadcreate": "a profile of threads",
    "private": "an account of a process",
    "mapped": "an account of a process",
    "size": "an account of files",
}
_Entry = TypeVar("_Entry")


class Wire:
    """The bytes of a message, which have other messages inside.

    Args:
        data: The whole message.
        source: Its name in errors.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self._data, self._source = data, source

    def __len__(self) -> int:
        """Return the size in bytes."""
        return len(self._data)

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the fields of the message in a range: the tag, the number or the start of the bytes, and their end.

        The tag is the number of the field and the wire type: `number << 3 | wire type`.

        Raises:
            InputError: Where a field is damaged, or reaches beyond the message.
        """
        data, at = self._data, start
        while at < end:
            begin = at
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = self._varint(begin, end)
            wire = tag & 7
            if wire in {_VARINT, _LENGTH}:
                if at < end and (value := data[at]) < 0x80:
                    at += 1
                else:
                    value, at = self._varint(at, end)
                if wire == _VARINT:
                    yield tag, value, at
                    continue
                begin, at = at, at + value
            elif wire in _FIXED_BYTES:
                begin, at = at, at + _FIXED_BYTES[wire]
            else:
                raise InputError(self._source, f"a field of unknown wire type {wire}", begin)
            if at > end:
                raise InputError(self._source, "a field that is longer than its message", begin)
            yield tag, begin, at

    def numbers(self, start: int, end: int) -> list[int]:
        """Return the packed numbers in a range.

        Raises:
            InputError: Where a number is cut, or longer than 64 bits.
        """
        packed = self._data[start:end]
        # Below 128 each number is one byte.
        if packed.isascii():
            return list(packed)
        values, value, shift = [], 0, 0
        for byte in packed:
            if byte < 0x80:
                values.append((value | byte << shift) & _64_BITS)
                value = shift = 0
            elif shift < _MOST_SHIFT:
                value |= (byte & 0x7F) << shift
                shift += 7
            else:
                raise InputError(self._source, "a number of more than 64 bits", start)
        if shift:
            raise InputError(self._source, "a number that is cut", end)
        return values

    def text(self, start: int, end: int) -> str:
        """Return the text in a range."""
        return self._data[start:end].decode("utf-8", "surrogateescape")

    def _varint(self, start: int, end: int) -> tuple[int, int]:
        value = shift = 0
        for at in range(start, min(end, start + 10)):
            byte = self._data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _64_BITS, at + 1
            shift += 7
        cause = "a number of more than 64 bits" if end - start >= 10 else "a number that is cut"
        raise InputError(self._source, cause, start)


def signed(value: int) -> int:
    """Convert a 64-bit number to a signed one."""
    return value - (1 << 64) if value >> 63 else value


def looks_like_pprof(start: bytes) -> bool:
    """Return whether the first bytes are those of such a profile."""
    return _START.match(start) is not None


class _ValueType(NamedTuple):
    """What one amount of each sample counts."""

    name: str
    unit: str


class _Column(NamedTuple):
    """The amounts that are read: the place of the bytes among the amounts of a sample, and that of the blocks."""

    size_place: int
    count_place: int | None


def read_pprof(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a profile from the pieces of its bytes.

    Raises:
        InputError: Where it is damaged.
        UnsupportedError: Where it does not count memory of an allocator, or is a difference of two profiles.
    """
    tables = _Tables(Wire(whole_of(pieces, _MOST_BYTES, source), source), source)
    in_use, allocated = _columns(tables.types, tables.default_type, source)
    frames, trees = tables.frames, tables.trees([column for column in (in_use, allocated) if column is not None])
    snapshots: tuple[HeapSnapshot, ...] = ()
    if in_use is not None:
        snapshots = (HeapSnapshot(0, None, trees[0].total_bytes, tree=trees.pop(0)),)
    notes = sampled_notes(source, tables.period_bytes)
    if not tables.modules and any(frame.addr and not (frame.function or frame.object) for frame in frames):
        notes.append(Note("heap-no-modules", source, "it lists no mappings: its addresses have no names"))
    return Profile(
        "pprof",
        Counted.HEAP,
        description="; ".join(tables.comments) or None,
        frames=frames,
        snapshots=snapshots,
        tallies=tuple(Tally("allocated", tree) for tree in trees),
        modules=tables.modules,
        # footprint writes profiles of any allocator.
        has_own_allocator=not any(text.startswith("footprint ") for text in tables.comments),
        heap_owner=_heap_owner(frames),
        sample_period_bytes=tables.period_bytes,
        notes=tuple(notes),
    )


def _heap_owner(frames: Iterable[Frame]) -> str | None:
    files = {frame.file.rpartition(".")[2] for frame in frames if frame.file}
    return next((owner for suffix, owner in _HEAP_OWNERS.items() if suffix in files), None)


def _columns(types: Sequence[_ValueType], default_type: str, source: str) -> tuple[_Column | None, _Column | None]:
    """Return which amounts are bytes in use, and which are bytes allocated over the run.

    Raises:
        UnsupportedError: Where there are none of either.
    """
    in_use, allocated = (_column(types, pattern) for pattern in (_IN_USE, _ALLOCATED))
    if default_type == _OBJECTS and allocated is None:
        return None, in_use
    if in_use is None and allocated is None:
        kind = next((_KINDS[entry.name] for entry in types if entry.name in _KINDS), "a profile of something else")
        counted = first_of([f"{entry.name} ({entry.unit})" for entry in types], 4) if types else "nothing"
        raise UnsupportedError(source, f"{kind}, not of the memory of an allocator: its samples count {counted}")
    return in_use, allocated


def _column(types: Sequence[_ValueType], pattern: re.Pattern[str]) -> _Column | None:
    for place, kind in enumerate(types):
        if kind.unit in {"bytes", "byte"} and pattern.fullmatch(kind.name.lower()):
            # Writers have the blocks directly before their bytes, if they have them: `heap-live-samples`.
            before = types[place - 1] if place else _ValueType("", "")
            is_same = before.name == _OBJECTS or _first_word(before) == _first_word(kind)
            return _Column(place, place - 1 if before.unit == "count" and is_same else None)
    return None


def _first_word(value_type: _ValueType) -> str:
    return re.split("[-_ ]", value_type.name, maxsplit=1)[0]


class _Tables:
    """The tables of a profile.

    Attributes:
        types: What each amount of a sample counts.
        default_type: The name of the one that matters most, or "".
        frames: The frames of all locations; frame 0 is the root.
        modules: The mappings of the process.
        period_bytes: The mean distance of the samples, where the profile says it in bytes.
        comments: The texts of whoever wrote it.

    Raises:
        InputError: Where one is damaged.
    """

    def __init__(self, wire: Wire, source: str) -> None:
        self._wire, self._source = wire, source
        # The starts and ends of the messages; those that refer to others may come before them.
        spans = {tag: array("q") for tag in _MESSAGES}
        period, default_type, comments = 0, 0, []
        for tag, value, end in wire.fields(0, len(wire)):
            if tag in spans:
                spans[tag].extend((value, end))
            elif tag == _PERIOD:
                period = signed(value)
            elif tag == _DEFAULT_TYPE:
                default_type = value
            elif tag == _COMMENT:
                comments.append(value)
            elif tag == _COMMENTS:
                comments += wire.numbers(value, end)
        self._strings = [wire.text(*span) for span in _pairs(spans[_STRING])]
        self.default_type = self._string(default_type)
        self.comments = [self._string(comment) for comment in comments]
        self.types, self.period_bytes = tuple(self._types(spans[_SAMPLE_TYPE])), None
        for kind in self._types(spans[_PERIOD_TYPE]):
            self.period_bytes = max(0, period) if kind.unit == "bytes" else None
        self._modules = {
            number: Module(start, end, offset, self._string(path), self._string(build_id))
            for number, (start, end, offset, path, build_id) in self._by_number("mapping", spans[_MAPPING]).items()
        }
        self.modules = tuple(module for module in self._modules.values() if module.start_addr < module.end_addr)
        self._functions = self._by_number("function", spans[_FUNCTION])
        frames = [Frame(label="heap profile")]
        # The frames of each location: the first and the one behind the last.
        self._places: dict[int, range] = {}
        for start, end in _pairs(spans[_LOCATION]):
            first = len(frames)
            number = self._add_location(start, end, frames)
            if not number or number in self._places:
                raise InputError(source, f"location {number} is there twice, or has no number", start)
            self._places[number] = range(first, len(frames))
        self.frames = tuple(frames)
        self._samples = spans[_SAMPLE]

    def trees(self, columns: Sequence[_Column]) -> list[CallTree]:
        """Build the call trees of some amounts."""
        stacks, ends = CallTreeBuilder(), []
        places = [place for column in columns for place in column if place is not None]
        amounts: dict[int, list[int]] = {place: [] for place in places}
        left = min(_MOST_CALLS, _MOST_CALLS_PER_BYTE * len(self._wire))
        for start, end in _pairs(self._samples):
            locations, values = self._sample(start, end)
            if len(values) != len(self.types):
                raise InputError(self._source, f"{len(values)} amounts of {len(self.types)} sample types", start)
            node = 0
            for location in locations:
                calls = self._places.get(location)
                if calls is None:
                    raise InputError(self._source, f"no location {location}", start)
                left -= len(calls)
                if left < 0:
                    raise InputError(self._source, "more calls than any profile has", start)
                for frame in calls:
                    node = stacks.below(node, frame)
            ends.append(node)
            for place in places:
                amount = signed(values[place])
                if amount < 0:
                    cause = "a negative amount, as differences of profiles have: read both profiles"
                    raise UnsupportedError(self._source, cause, start)
                amounts[place].append(amount)
        return [
            stacks.tree(self.frames, ends, amounts[size], None if count is None else amounts[count], self._source)
            for size, count in columns
        ]

    def _sample(self, start: int, end: int) -> tuple[list[int], list[int]]:
        """Return the locations of a sample, the innermost first, and its amounts."""
        locations: list[int] = []
        values: list[int] = []
        for tag, value, stop in self._wire.fields(start, end):
            if tag == _PACKED_1:
                locations += self._wire.numbers(value, stop)
            elif tag == _PACKED_2:
                values += self._wire.numbers(value, stop)
            elif tag == _NUMBERS[0]:
                locations.append(value)
            elif tag == _NUMBERS[1]:
                values.append(value)
        return locations, values

    def _add_location(self, start: int, end: int, frames: list[Frame]) -> int:
        """Add the frames of a location, the innermost first, and return its number."""
        number, mapping, addr, *_ = self._numbers(start, end)
        module = self._entry(self._modules, "mapping", mapping, start) if mapping else Module(0, 0, 0, "")
        owner = module.path or None
        lines = [self._numbers(begin, stop)[:2] for tag, begin, stop in self._wire.fields(start, end) if tag == _LINES]
        for place, (function, line) in enumerate(lines, 1):
            names = self._entry(self._functions, "function", function, start) if function else (0,) * 3
            # The address is that of the outermost function, into which the others were inlined.
            frames.append(
                Frame(
                    addr if addr and place == len(lines) else None,
                    self._string(names[1] or names[0], start) or None,
                    self._string(names[2], start) or None,
                    line or None,
                    owner,
                )
            )
        if not lines:
            # The addresses of mappings say whose it is, where they are those of the process.
            is_untold = addr and self.modules and not module.has_file_addrs
            frames.append(Frame(addr or None, object=None if is_untold else owner))
        return number

    def _types(self, spans: "array[int]") -> Iterator[_ValueType]:
        for start, end in _pairs(spans):
            name, unit, *_ = self._numbers(start, end)
            yield _ValueType(self._string(name, start), self._string(unit, start))

    def _by_number(self, what: str, spans: "array[int]") -> dict[int, tuple[int, ...]]:
        """Return the numbers of messages by the first one, which identifies them."""
        rest_by_number: dict[int, tuple[int, ...]] = {}
        for start, end in _pairs(spans):
            number, *rest = self._numbers(start, end)
            if not number or number in rest_by_number:
                raise InputError(self._source, f"{what} {number} is there twice, or has no number", start)
            rest_by_number[number] = tuple(rest)
        return rest_by_number

    def _numbers(self, start: int, end: int) -> list[int]:
        """Return the numbers 1 to 6 of a message; 0 for those that it does not have."""
        values = [0] * len(_NUMBERS)
        for tag, value, _ in self._wire.fields(start, end):
            if tag in _NUMBERS:
                values[_NUMBERS.index(tag)] = value
        return values

    def _entry(self, table: dict[int, _Entry], what: str, number: int, at: int) -> _Entry:
        message = table.get(number)
        if message is None:
            raise InputError(self._source, f"no {what} {number}", at)
        return message

    def _string(self, index: int, at: int | None = None) -> str:
        if not index:
            return ""
        if index >= len(self._strings):
            raise InputError(self._source, f"no string {index}", at)
        return self._strings[index]


def _pairs(spans: "array[int]") -> Iterator[tuple[int, int]]:
    return zip(spans[::2], spans[1::2], strict=True)
