"""Rule `heap-unused`: memory that a function asks for, and that nothing reads or nothing writes.

DHAT counts the bytes that are read and written in the blocks of each call stack. It counts one run only: what this run
did not read another may. So the confidence is medium at most.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.findings.heap_functions import LEAST_BYTES, at_most_held, function_facts, requested
from footprint.findings.registry import Fact, HeapFacts, Rule
from footprint.heap.attribution import charged_frames
from footprint.heap.profile import Frame
from footprint.members import NamedTuple
from footprint.model.finding import Confidence, Finding, SourceLocation
from footprint.model.heap_account import Share
from footprint.text.units import format_bytes

# Pages within larger blocks that nothing touches are not in memory.
_PAGE_BYTES: Final = 4096


class _Kind(NamedTuple):
    """One way not to use memory.

    Attributes:
        name: The kind of the finding.
        what: The second half of the message.
        remedy: What to do.
    """

    name: str
    what: str
    remedy: str


_KINDS: Final = {
    # By whether it is read, and whether it is written.
    (False, False): _Kind(
        "untouched", "and nothing reads or writes them", "leave the allocation out, or allocate when it is needed"
    ),
    (False, True): _Kind("unread", "and nothing reads what is written there", "leave out the memory and the writes"),
    (True, False): _Kind(
        "unwritten",
        "which are read, and which nothing writes",
        "they hold the zeros of calloc: read one static constant instead, or allocate when there is something to write",
    ),
}


def heap_unused(heap: HeapFacts) -> tuple[Finding, ...]:
    """Find functions whose memory is never read or never written, by what was in use at the peak."""
    groups = [group for group in _unused(heap.usage) if group.size_bytes >= LEAST_BYTES]
    findings = [_finding(group, heap) for group in groups]
    return tuple(sorted(findings, key=lambda finding: (-finding.saving_bytes, finding.subject, finding.kind)))


def _finding(group: "_Group", heap: HeapFacts) -> Finding:
    kind = group.kind
    share = Share(group.owner, group.function, group.size_bytes, group.block_count)
    facts = function_facts(share)
    counts = f"DHAT counts {group.written_bytes:,} bytes written and {group.read_bytes:,} read in the profiled run"
    reasons: tuple[str, ...] = (f"{counts}; another run may use them",)
    mean_bytes = group.size_bytes // max(1, group.block_count)
    is_resident = group.written_bytes > 0 or mean_bytes <= _PAGE_BYTES
    if is_resident:
        saving_bytes, reasons = at_most_held(group.size_bytes, reasons, share, heap.held_bytes)
    else:
        pages = f"of blocks of {format_bytes(mean_bytes)} the pages that nothing writes are not in memory"
        saving_bytes, reasons = 0, (*reasons, pages)
    return Finding(
        RULE.name,
        kind.name,
        facts.subject,
        f"{facts.shown} {requested(share)} at the peak, {kind.what}",
        saving_bytes,
        Confidence.MEDIUM if is_resident else Confidence.LOW,
        reasons,
        kind.remedy,
        location=group.location,
        object=facts.object_path or None,
    )


RULE: Final = Rule(
    "heap-unused", "Memory of the allocator that nothing reads or nothing writes", (Fact.HEAP,), heap_unused
)


class _Group:
    """The blocks of one function that are unused in one way."""

    def __init__(self, kind: _Kind, owner: str, function: str) -> None:
        self.kind, self.owner, self.function = kind, owner, function
        self.size_bytes = self.block_count = self.read_bytes = self.written_bytes = 0
        self._lines: dict[SourceLocation, int] = {}

    def add(self, frame: Frame, amounts: tuple[int, int, int, int]) -> None:
        size_bytes, block_count, read_bytes, written_bytes = amounts
        self.size_bytes += size_bytes
        self.block_count += block_count
        self.read_bytes += read_bytes
        self.written_bytes += written_bytes
        if frame.file is not None:
            line = SourceLocation(frame.file, frame.line)
            self._lines[line] = self._lines.get(line, 0) + size_bytes

    @property
    def location(self) -> SourceLocation | None:
        """The line that asks for most of them."""
        return max(self._lines, key=self._lines.__getitem__, default=None)


def _unused(usage: HeapUsage) -> Iterable[_Group]:
    """Return the unused memory by kind, owner and function."""
    groups: dict[tuple[_Kind, str, str], _Group] = {}
    for frame_index, amounts in _stacks(usage):
        kind = _KINDS.get((amounts[2] > 0, amounts[3] > 0))
        owner, function, *_ = usage.calls[frame_index]
        if kind is None or function.startswith("["):
            continue
        group = groups.setdefault((kind, owner, function), _Group(kind, owner, function))
        group.add(usage.profile.frames[frame_index], amounts)
    return groups.values()


def _stacks(usage: HeapUsage) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Yield for each unused stack the charged frame, its bytes and blocks at the peak, and what is read and written."""
    peak = usage.profile.peak
    trees = {tally.name: tally.tree for tally in usage.profile.tallies}
    if peak is None or peak.tree is None or not {"read", "written"} <= trees.keys():
        return
    tree, read, written = peak.tree, trees["read"], trees["written"]
    if not (read.has_shape_of(tree) and written.has_shape_of(tree)):
        return
    ends = tree.stack_ends
    columns = (ends.sizes, ends.counts or (), read.stack_ends.sizes, written.stack_ends.sizes)
    for frame_index, amounts in zip(charged_frames(tree, usage.calls), zip(*columns, strict=True), strict=True):
        if frame_index >= 0 and amounts[0] > 0 and not (amounts[2] and amounts[3]):
            yield frame_index, amounts
