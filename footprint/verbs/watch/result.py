"""What a watch comes to: its figures, what grew, and what changed between two of its audits."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from footprint.elf.notes import STANDARD_PLACES
from footprint.errors import Note, UsageError
from footprint.formats.saved_audit import read_saved
from footprint.model.audit import Audit
from footprint.model.over_time import WatchGap, WatchGapKind
from footprint.release.compare import Comparison, compare
from footprint.series.growth import GrowthKind, GrowthTrend, MappingGrowth, grown_mappings
from footprint.series.moments import WatchedPeak, gaps_of, peak_of
from footprint.series.records import AuditKept
from footprint.series.timeline import OwnerGrowth, Timeline
from footprint.sources.target import AuditFile
from footprint.verbs.audit.request import HeapRequest

# The last audit says more than that at the peak, unless much was freed since.
_STILL_HELD: Final = 0.9
# The peak says nothing about growth.
_OF_GROWTH: Final = frozenset(WatchGapKind) - {WatchGapKind.LOWER_BOUND}


class WatchResult(NamedTuple):
    """What a watch comes to.

    Attributes:
        timeline: What was seen.
        series: The file that has it, all or a part; None where it is kept in none.
        growth: How the cost of all processes went.
        owners: How the private memory of each owner went, those that grew most first.
        comparison: What changed between two audits; None where there are not two.
        compared: These two audits.
        mappings: The mappings that grew between them.
        near_peak: The audit that is nearest to the peak; None where there is none.
        peak: The peak.
        gaps: What the watch cannot tell.
        fails: Why the watch fails; None where it does not.
        split: The last audit, with its heap split by an allocator profile; None where none was named.
    """

    timeline: Timeline
    series: str | None
    growth: GrowthTrend
    owners: tuple[OwnerGrowth, ...]
    comparison: Comparison | None
    compared: tuple[AuditKept, ...]
    mappings: tuple[MappingGrowth, ...]
    near_peak: AuditKept | None
    peak: WatchedPeak
    gaps: tuple[WatchGap, ...] = ()
    fails: str | None = None
    split: Audit | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes of the watch, and those of what was compared."""
        more = () if self.comparison is None else self.comparison.notes
        of_heap = () if self.split is None else self.split.notes
        return tuple(dict.fromkeys((*self.timeline.notes, *more, *of_heap)))


def result_of(
    timeline: Timeline,
    series: str | None,
    most_per_second: float | None = None,
    heap: HeapRequest | None = None,
    accepted: AbstractSet[WatchGapKind] = frozenset(),
) -> WatchResult:
    """Compute what a watch comes to.

    Args:
        timeline: What was seen.
        series: The file that has it.
        most_per_second: The growth in bytes a second from which on it fails; None for any.
        heap: The allocator profile that the heap at the end is split by; None for none.
        accepted: What the watch need not tell to pass.

    Raises:
        AccessError: If the profile cannot be opened.
        InputError: If an audit in it, or the profile, is damaged.
        UsageError: If there is a profile, and the audits are of several processes.
    """
    growth = timeline.growth()
    compared = _compared(timeline.taken)
    name = series or timeline.began.target
    comparison = None
    if compared:
        before, now = (_audit(entry, name) for entry in compared)
        comparison = compare(before, now)
    gaps, peak = gaps_of(timeline, growth), peak_of(timeline)
    return WatchResult(
        timeline,
        series,
        growth,
        tuple(timeline.owner_growth()),
        comparison,
        compared,
        tuple(grown_mappings(*(entry.mappings for entry in compared))) if compared else (),
        max(timeline.taken, key=lambda entry: entry.held_bytes, default=None),
        peak,
        gaps,
        None if most_per_second is None else _failure(growth, most_per_second, gaps, accepted),
        None if heap is None else _with_heap(timeline, name, heap),
    )


def _failure(
    growth: GrowthTrend, most_per_second: float, gaps: Sequence[WatchGap], accepted: AbstractSet[WatchGapKind]
) -> str | None:
    """Return why a watch fails that must not grow: it grows, or cannot tell."""
    if growth.slope is not None and growth.kind is GrowthKind.GROWS and growth.slope.least > most_per_second:
        return "it grows"
    open_gaps = [gap for gap in gaps if gap.kind in _OF_GROWTH - accepted]
    return "; ".join(f"{gap.detail} (--accept {gap.kind.value} accepts that)" for gap in open_gaps) or None


def _audit(kept: AuditKept, name: str) -> Audit:
    return read_saved(AuditFile(f"{name}@{kept.moment}", kept.answer(name))).audit


def _with_heap(timeline: Timeline, name: str, heap: HeapRequest) -> Audit:
    """Split the heap of the last audit by who asked for it."""
    from footprint.verbs.audit.heap_account import with_heap  # noqa: PLC0415 # profiles, which few watches have

    last = _audit(timeline.taken[-1], name) if timeline.taken else None
    if last is None or last.is_group:
        raise UsageError(f"{name} has no audit of one process: --heap goes with one process")
    return with_heap(last, heap, snapshot=None, debug=STANDARD_PLACES)


def _compared(taken: Sequence[AuditKept]) -> tuple[AuditKept, ...]:
    """Choose two audits: the first one, and the last one, or that at the peak where most was freed since."""
    if len(taken) < 2:
        return ()
    first, *others = taken
    most = max(others, key=lambda other: other.held_bytes)
    last = others[-1]
    return first, (last if last.held_bytes >= _STILL_HELD * most.held_bytes else most)
