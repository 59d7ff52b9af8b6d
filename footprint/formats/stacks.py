"""Stacks with amounts, for viewers of profiles: a ledger as owner, section and symbol, or call trees.

They are written folded, for speedscope (https://www.speedscope.app/file-format-schema.json), and for pprof: gzip over
the protocol buffer `perftools.profiles.Profile`, written field by field.
"""

import json
import zlib
from array import array
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from footprint.attribution.heap_usage import HeapUsage
from footprint.elf.contents import Contents
from footprint.elf.names import shown_name
from footprint.elf.symbols import Symbol
from footprint.errors import UsageError
from footprint.formats.document import About
from footprint.heap.attribution import NO_STACK, Call
from footprint.heap.profile import CallTree, Counted, Frame
from footprint.model.row import Row
from footprint.text.escape import printable

# Endless recursion makes endless stacks: the outer frames beyond this number become one frame.
_DEEPEST: Final = 1024
# A profile can be made of deep stacks only: with more frames than this in all, stacks are cut shorter.
_MOST_FRAMES: Final = 1 << 24
_SHALLOW: Final = 16
_NO_LIMIT: Final = 1 << 62
_CUT: Final = "[more callers]"
_LONGEST_NAME: Final = 8192
_OF_RUN: Final = frozenset({"allocated", "temporary", "read", "written"})
_SEPARATOR: Final = ";"
SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_UNITS: Final = {"bytes": "bytes", "count": "none"}
# The numbers of the fields of profile.proto that are written.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRINGS = 1, 2, 3, 4, 5, 6
_COMMENT, _DEFAULT_SAMPLE_TYPE = 13, 14
_VARINT: Final = 0
_LENGTH: Final = 2


class StackFrame(NamedTuple):
    """One step of a stack.

    Attributes:
        name: The name to show.
        linker_name: The linker name; "" for a frame that is no symbol.
        object: The program or library; "" for none.
        file: The source file; "" if not known.
        line: The line in the source file, or 0.
        addr: The address in the process, or 0.
    """

    name: str
    linker_name: str = ""
    object: str = ""
    file: str = ""
    line: int = 0
    addr: int = 0


class Measure(NamedTuple):
    """What is counted: its name, and `bytes` or `count`."""

    name: str
    unit: str


class StackSample(NamedTuple):
    """One stack with its amounts.

    Attributes:
        frames: The indexes of its frames, the outermost first.
        amounts: One for each measure.
    """

    frames: tuple[int, ...]
    amounts: tuple[int, ...]


class Stacks(NamedTuple):
    """The stacks of an answer.

    Attributes:
        measures: What is counted; the most important first.
        frames: The frames, each once.
        samples: The stacks. No amount is negative.
    """

    measures: tuple[Measure, ...]
    frames: tuple[StackFrame, ...]
    samples: tuple[StackSample, ...]


class _Frames:
    """Frames by index, each once."""

    def __init__(self) -> None:
        self._places: dict[StackFrame, int] = {}

    def place(self, frame: StackFrame) -> int:
        return self._places.setdefault(frame, len(self._places))

    @property
    def all(self) -> tuple[StackFrame, ...]:
        return tuple(self._places)


def ledger_stacks(ledger: Iterable[Row]) -> Stacks:
    """Return the stacks of a ledger: private bytes if they are known, and mapped bytes."""
    rows = tuple(ledger)
    has_private = any(row.bytes is not None for row in rows)
    frames = _Frames()
    samples = []
    for row in rows:
        amounts = (row.bytes or 0, row.mapped_bytes) if has_private else (row.mapped_bytes,)
        if not any(amounts):
            continue
        owner = "" if row.owner.startswith("[") else row.owner
        steps = [StackFrame(row.owner, object=owner)]
        if (section := row.section or f"[{row.kind.value}]") != row.owner:
            steps.append(StackFrame(section, object=owner))
        if row.symbol is not None:
            steps.append(StackFrame(shown_name(row.symbol), row.symbol, owner))
        elif row.name is not None:
            steps.append(StackFrame(row.name, object=owner))
        samples.append(StackSample(tuple(map(frames.place, steps)), amounts))
    private, mapped = Measure("private", "bytes"), Measure("mapped", "bytes")
    return Stacks((private, mapped) if has_private else (mapped,), frames.all, tuple(samples))


def symbol_stacks(files: Iterable[Contents]) -> Stacks:
    """Return the stacks of the writable sections of files: each variable, and unnamed bytes by their cause."""
    frames = _Frames()
    samples = []
    for contents in files:
        file = StackFrame(contents.file, object=contents.file)
        for content in contents.sections:
            section = StackFrame(content.section.name, object=contents.file)
            sizes: dict[int, int] = {}
            for piece in content.ranges.pieces:
                owner = piece.owner
                if isinstance(owner, Symbol):
                    part = StackFrame(shown_name(owner.name), owner.name, contents.file)
                else:
                    part = StackFrame(f"[{owner.cause.value}]", object=contents.file)
                place = frames.place(part)
                sizes[place] = sizes.get(place, 0) + piece.end - piece.start
            outer = (frames.place(file), frames.place(section))
            samples += [
                StackSample((*outer, place), (size_bytes,)) for place, size_bytes in sizes.items() if size_bytes
            ]
    return Stacks((Measure("size", "bytes"),), frames.all, tuple(samples))


def heap_stacks(usage: HeapUsage) -> Stacks:
    """Return the stacks of the call tree of a heap profile: bytes, and blocks if it counts them.

    The amounts that the profile counts over the whole run follow, if they are of the same stacks.

    Raises:
        UsageError: If it has no call tree.
    """
    tree = usage.tree
    if tree is None:
        raise UsageError(f"{usage.file} has no call tree at that moment: choose another with --at")
    frames = _Frames()
    places = [frames.place(_frame(tree.frames[number], call)) for number, call in enumerate(usage.calls)]
    cut = frames.place(StackFrame(_CUT))
    alone = frames.place(StackFrame(NO_STACK))
    counted = _counted(usage, tree)
    amounts_of = [amounts for _, amounts in counted]
    starts = _starts(tree, _DEEPEST)
    left = _MOST_FRAMES
    samples = []
    for node, amounts in enumerate(zip(*amounts_of, strict=True)):
        # A faulty profile that counts something twice would give a negative amount, which viewers refuse.
        if max(amounts) <= 0:
            continue
        stack = [] if starts[node] == node else [cut]
        step = starts[node]
        while step > 0:
            stack.append(places[tree.frame_indexes[step]])
            step = tree.parents[step]
        samples.append(StackSample(tuple(stack or [alone]), tuple(max(0, amount) for amount in amounts)))
        left -= len(stack)
        if left <= 0:
            starts, left = _starts(tree, _SHALLOW), _NO_LIMIT
    return Stacks(tuple([measure for measure, _ in counted]), frames.all, tuple(samples))


def _starts(tree: CallTree, most: int) -> "array[int]":
    """Return for each node the outermost one of its stack that is shown: itself if the stack is not too deep."""
    starts, depths = array("i", [0]), array("i", [0])
    for node, parent in enumerate(tree.parents[1:], 1):
        depth = depths[parent] + 1
        depths.append(depth)
        starts.append(node if depth <= most else starts[parent])
    return starts


def _frame(frame: Frame, call: Call) -> StackFrame:
    owner = "" if call.owner.startswith("[") else call.owner
    if call.function.startswith("["):
        # The reason for the missing name, and the object: such frames of several objects stay apart.
        name = f"{call.function} in {owner.rsplit('/', 1)[-1]}" if owner else call.owner or call.function
        return StackFrame(name[:_LONGEST_NAME], "", owner, addr=frame.addr or 0)
    name = call.function[:_LONGEST_NAME]
    return StackFrame(shown_name(name), name, owner, frame.file or "", frame.line or 0, frame.addr or 0)


def _counted(usage: HeapUsage, tree: CallTree) -> list[tuple[Measure, list[int]]]:
    """Return what is counted of each node of a call tree, without the nodes below it."""
    unit = "count" if usage.profile.counted is Counted.EVENTS else "bytes"
    counts = [(usage.tally or "live", tree)]
    counts += [(t.name, t.tree) for t in usage.profile.tallies if t.name in _OF_RUN and t.tree is not tree]
    measures = []
    for name, counted_tree in counts:
        if (counted_tree.parents, counted_tree.frame_indexes) == (tree.parents, tree.frame_indexes):
            measures.append((Measure(name, unit), counted_tree.own_bytes()))
            own_blocks = counted_tree.own_blocks()
            measures += [] if own_blocks is None else [(Measure(f"{name}_blocks", "count"), own_blocks)]
    return measures


def folded(stacks: Stacks, _about: About) -> str:
    """Format one line per stack with its amount of the first measure; stacks with amount 0 are left out."""
    names = [printable(frame.name).replace(_SEPARATOR, ":") or "[no name]" for frame in stacks.frames]
    sums: dict[str, int] = {}
    for sample in stacks.samples:
        if amount := sample.amounts[0]:
            stack = _safe(_SEPARATOR.join([names[place] for place in sample.frames]))
            sums[stack] = sums.get(stack, 0) + amount
    return "".join(f"{stack} {amount}\n" for stack, amount in sums.items())


def _safe(line: str) -> str:
    """Return a line that is neither a comment nor a command to a CI log."""
    return f"\\x{ord(line[0]):02x}{line[1:]}" if line.startswith(("#", "::")) else line


def speedscope(stacks: Stacks, about: About) -> str:
    """Format one profile for each measure, the most important first."""
    frames: list[dict[str, Any]] = []
    for frame in stacks.frames:
        entry: dict[str, Any] = {"name": printable(frame.name)}
        if frame.file or frame.object:
            # speedscope colours frames by their file: the object stands in for an unknown source file.
            entry["file"] = printable(frame.file or frame.object)
        if frame.file and frame.line:
            entry["line"] = frame.line
        frames.append(entry)
    profiles = [_profile(stacks, place, about.name) for place in range(len(stacks.measures))]
    head = {
        "$schema": SCHEMA,
        "name": printable(about.name),
        "exporter": f"footprint@{about.version}",
        "activeProfileIndex": 0,
    }
    members = [*head.items(), ("shared", {"frames": frames}), ("profiles", profiles)]
    return "{" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in members) + "}\n"


def _profile(stacks: Stacks, place: int, name: str) -> dict[str, Any]:
    measure = stacks.measures[place]
    shown = [sample for sample in stacks.samples if sample.amounts[place]]
    weights = [sample.amounts[place] for sample in shown]
    return {
        "type": "sampled",
        "name": f"{measure.name}: {printable(name)}",
        "unit": _UNITS[measure.unit],
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [list(sample.frames) for sample in shown],
        "weights": weights,
    }


def pprof(stacks: Stacks, about: About) -> bytes:
    """Format a profile; the most important measure is the default sample type, and stands last as is the custom."""
    strings = _Strings()
    # Objects and frames are numbered from 1; 0 means none.
    names = dict.fromkeys(frame.object for frame in stacks.frames if frame.object)
    objects = {name: number for number, name in enumerate(names, 1)}
    order = list(reversed(range(len(stacks.measures))))
    parts = []
    for place in order:
        measure = stacks.measures[place]
        value_type = _number(1, strings.place(measure.name)) + _number(2, strings.place(measure.unit))
        parts.append(_message(_SAMPLE_TYPE, value_type))
    for sample in stacks.samples:
        # pprof wants the innermost frame first.
        locations = _packed(1, [place + 1 for place in reversed(sample.frames)])
        parts.append(_message(_SAMPLE, locations + _packed(2, [sample.amounts[place] for place in order])))
    for name, number in objects.items():
        has_names = _number(7, 1) + _number(8, 1) + _number(9, 1)
        parts.append(_message(_MAPPING, _number(1, number) + _number(5, strings.place(name)) + has_names))
    for number, frame in enumerate(stacks.frames, 1):
        line = _number(1, number) + _number(2, frame.line)
        location = _number(1, number) + _number(2, objects.get(frame.object, 0)) + _number(3, frame.addr)
        parts.append(_message(_LOCATION, location + _message(4, line)))
        function = (
            _number(1, number)
            + _number(2, strings.place(frame.name))
            + _number(3, strings.place(frame.linker_name or frame.name))
            + _number(4, strings.place(frame.file))
        )
        parts.append(_message(_FUNCTION, function))
    parts.append(_number(_COMMENT, strings.place(f"footprint {about.version}: {about.name}")))
    parts.append(_number(_DEFAULT_SAMPLE_TYPE, strings.place(stacks.measures[0].name)))
    parts += [_message(_STRINGS, text) for text in strings.all]
    # gzip without the time: equal answers make equal files.
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(b"".join(parts)) + packer.flush()


class _Strings:
    """The table of strings; the first one is empty."""

    def __init__(self) -> None:
        self._places = {b"": 0}

    def place(self, text: str) -> int:
        return self._places.setdefault(printable(text).encode(), len(self._places))

    @property
    def all(self) -> Iterable[bytes]:
        return self._places


def _number(field: int, value: int) -> bytes:
    """Format an integer field; 0 is the default and is not written."""
    return _varint(field << 3 | _VARINT) + _varint(value) if value else b""


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))


def _message(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Format a varint: seven bits per byte, the lowest first; a negative number as 64-bit two's complement."""
    left = value & 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
