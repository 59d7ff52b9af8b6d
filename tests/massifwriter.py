"""Write the text of massif from values; a profile that is read from it must have them again."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from footprint.heap.profile import CallTree, Frame

ROOT = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc."


class Line(NamedTuple):
    """One node of a tree: its bytes, the text behind them, and its callers."""

    size_bytes: int
    label: str
    callers: "tuple[Line, ...]" = ()


class Moment(NamedTuple):
    """One snapshot; its number is its place."""

    time: float
    live_bytes: int
    extra_bytes: int = 0
    stack_bytes: int = 0
    tree: Line | None = None
    is_peak: bool = False


def massif(
    moments: Sequence[Moment], description: str = "(none)", command: str = "./program", time_unit: str = "i"
) -> bytes:
    """Write a whole file as Valgrind does."""
    lines = [f"desc: {description}", f"cmd: {command}", f"time_unit: {time_unit}"]
    for number, moment in enumerate(moments):
        lines += ["#-----------", f"snapshot={number}", "#-----------", f"time={moment.time}"]
        lines += [f"mem_heap_B={moment.live_bytes}", f"mem_heap_extra_B={moment.extra_bytes}"]
        lines += [f"mem_stacks_B={moment.stack_bytes}"]
        if moment.tree is None:
            lines.append("heap_tree=empty")
        else:
            lines.append(f"heap_tree={'peak' if moment.is_peak else 'detailed'}")
            lines += node_lines(moment.tree)
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def node_lines(node: Line, depth: int = 0) -> Iterator[str]:
    """Write a tree, a node a line."""
    yield f"{' ' * depth}n{len(node.callers)}: {node.size_bytes} {node.label}"
    for caller in node.callers:
        yield from node_lines(caller, depth + 1)


def label(frame: Frame) -> str:
    """Write a frame as Valgrind does."""
    if frame.label is not None:
        return frame.label
    place = ""
    if frame.file is not None:
        place = f" ({frame.file}:{frame.line})"
    elif frame.object is not None:
        place = f" (in {frame.object})"
    return f"0x{frame.addr:X}: {frame.function or '???'}{place}"


def lines_of(tree: CallTree) -> Line:
    """Return a tree that was read as it would be written."""
    callers: list[list[int]] = [[] for _ in range(len(tree))]
    for node, parent in enumerate(tree.parents[1:], 1):
        callers[parent].append(node)
    built: dict[int, Line] = {}
    for node in range(len(tree) - 1, -1, -1):
        below = tuple(built.pop(caller) for caller in callers[node])
        built[node] = Line(tree.node_bytes[node], label(tree.frame(node)), below)
    return built[0]
