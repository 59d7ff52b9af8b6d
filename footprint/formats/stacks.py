"""Stacks with amounts, for viewers of profiles: a ledger as owner, section and symbol, or call trees."""

from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

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


_SEPARATOR: Final = ";"


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
