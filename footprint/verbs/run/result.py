"""What running a program gave: the audit of one start, and how far the starts differ."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from footprint.attribution.group import group_up
from footprint.errors import Note
from footprint.model.audit import Audit, Spreads, start_spread
from footprint.model.costs import DailyStarts, Spread, StartMeasurement, StartStage, daily_starts
from footprint.model.over_time import Peak, RunFailure, RunFailureKind, failures_of_start
from footprint.process.launch.moment import Ending, When
from footprint.process.snapshot import Snapshot
from footprint.process.start_counters import start_stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Ending):
    """One start of a program.

    Attributes:
        audit: The program at the moment it was taken.
        children: The processes that it had started and that were alive then; empty where they were not asked for.
        snapshots: What was read of the program, then of each child.
        moment: What it was really taken at.
        wanted_moment: The moment that was asked for; None for the one that it was taken at.
    """

    audit: Audit
    children: tuple[Audit, ...]
    snapshots: tuple[Snapshot, ...]
    moment: When
    wanted_moment: When | None = None

    @property
    def explained_bytes(self) -> int | None:
        """The cost of the processes that were audited, of the kinds that the peak counts; None if unknown."""
        group = group_up(self.members)
        if self.peak is None or self.peak.has_kernel_memory:
            return group.totals.per_process.bytes
        kinds = [group.figures[name].bytes for name in ("private_bytes", "shared_between_bytes", "own_shared_bytes")]
        return None if None in kinds else sum(size or 0 for size in kinds)

    @property
    def members(self) -> tuple[tuple[Snapshot, Audit], ...]:
        """The program and each child, as a group of processes is made of them."""
        return tuple(zip(self.snapshots, (self.audit, *self.children), strict=True))


@dataclass(frozen=True, slots=True)
class RunResult:
    """A program that was run once or several times.

    Attributes:
        command: The program and its arguments, without secrets.
        when: The moment that was asked for: `exit`, `settled`, a time, or `output`.
        start: The start whose cost is the median.
        start_count: How many there were.
        private: Private memory over all starts; None where it is not known.
        per_process: The cost of one process over all starts; None where it is not known.
        owners: Of several starts, by owner its private memory and what the kernel spends; 0 where a start lacks it.
        kinds: Of several starts, by kind its memory.
        retained: Of several starts, by the path of an object the private memory of all that leaves with it.
        peaks: The peak over all starts; None where it is not known, and for the moment `peak`.
        notes: All notes on the start that is shown, and on how the starts differ.
        peak: The peak; with the moment `peak` that of the run before. None where nobody asked for it.
        start_cost: What its starts cost up to the entry point, main and the moment; None where nobody asked for it.
        spent: What the starts cost up to the moment; None where that was not seen.
        starts_a_day: How many starts a day there are; None where nobody said so.
    """

    command: tuple[str, ...]
    when: str
    start: Start
    start_count: int
    private: Spread | None
    per_process: Spread | None
    owners: Mapping[str, Spread]
    kinds: Mapping[str, Spread]
    retained: Mapping[str, Spread]
    notes: tuple[Note, ...]
    peaks: Spread | None = None
    peak: Peak | None = None
    start_cost: StartMeasurement | None = None
    spent: StartStage | None = None
    starts_a_day: int | None = None

    def with_start_cost(self, measurement: StartMeasurement | None, starts_a_day: int | None) -> "RunResult":
        """Return it with what was measured of its starts, and how many a day there are."""
        if measurement is None:
            return self
        audit = replace(self.audit, start_cpu_us=measurement.processor_us.median)
        start, cost = replace(self.start, audit=audit), measurement._replace(moment=self.spent)
        return replace(self, start=start, start_cost=cost, starts_a_day=starts_a_day)

    @property
    def daily(self) -> DailyStarts | None:
        """What so many starts a day take."""
        return daily_starts(self.starts_a_day, self.start_cost)

    @property
    def audit(self) -> Audit:
        """The audit of the median start."""
        return self.start.audit

    @property
    def spreads(self) -> Spreads:
        """How far the starts differ, as `check` takes it together with the audit."""
        sums = self.private, self.per_process, self.owners
        tables = self.kinds, self.retained
        return Spreads(*sums, self.start_count, self.peaks, *tables, *start_spread(self.start_cost))


class Expected(NamedTuple):
    """What counts as success of a program that is run.

    Attributes:
        exit_code: The exit code of success.
        allowed: The failures that are accepted.
    """

    exit_code: int = 0
    allowed: frozenset[RunFailureKind] = frozenset()


def cost_per_process(start: Start) -> tuple[int, ...]:
    """Order starts by cost per process, else by private memory."""
    totals = start.audit.totals
    return ((totals.private.bytes if totals.per_process.bytes is None else totals.per_process.bytes) or 0,)


def private_memory(start: Start) -> tuple[int, ...]:
    """Order starts by private memory, and where that is equal by cost per process."""
    totals = start.audit.totals
    return totals.private.bytes or 0, totals.per_process.bytes or 0


def median_start(
    command: tuple[str, ...],
    when: str,
    starts: Iterable[Start],
    order: Callable[[Start], tuple[int, ...]] = cost_per_process,
    expected: Expected | None = None,
) -> RunResult:
    """Choose the start in the middle of an order, and say how far they differ, and which of them failed."""
    in_time = list(starts)
    failures = [
        failure
        for number, start in enumerate(in_time, 1)
        for failure in _failures(number, start, expected or Expected())
    ]
    ordered = sorted(in_time, key=order)
    chosen = ordered[(len(ordered) - 1) // 2]
    chosen = replace(chosen, audit=replace(chosen.audit, run_failures=tuple(failures), peak_bytes=_peak_bytes(chosen)))
    spent = [start.spent for start in ordered]
    endings = {(start.exit_code, start.signal) for start in ordered}
    notes = [*chosen.notes, *chosen.audit.notes]
    if len(endings) > 1:
        texts = sorted(
            signal or ("ended by footprint" if code is None else f"exit code {code}") for code, signal in endings
        )
        notes.append(Note("starts-differ", command[0], f"its starts ended differently: {', '.join(texts)}"))
    several = [start.audit for start in ordered] if len(ordered) > 1 else []
    costs = [[(linked.path, linked.retained_bytes) for linked in audit.objects] for audit in several]
    return RunResult(
        command=command,
        when=when,
        start=chosen,
        start_count=len(ordered),
        private=_spread(start.audit.totals.private.bytes for start in ordered),
        per_process=_spread(start.audit.totals.per_process.bytes for start in ordered),
        owners=_spreads_by([[(row.owner, row.bytes) for row in audit.ledger] for audit in several]),
        kinds=_spreads_by([[(row.kind.value, row.bytes) for row in audit.ledger] for audit in several]),
        retained=_spreads_by(costs) if all(costs) else {},
        notes=tuple(notes),
        peaks=_spread(map(_peak_bytes, ordered)),
        spent=None if None in spent else start_stage([counters for counters in spent if counters]),
        peak=chosen.peak,
    )


def _peak_bytes(start: Start) -> int | None:
    return None if start.peak is None else start.peak.peak_bytes


def _failures(number: int, start: Start, expected: Expected) -> list[RunFailure]:
    """Return how a start failed, without what is accepted."""
    failures = failures_of_start(
        number,
        exit_code=start.exit_code,
        signal=start.signal,
        wanted_moment=start.wanted_moment or start.moment,
        moment=start.moment,
        is_missed=any(note.slug == "moment-not-reached" for note in start.notes),
        expected_exit=expected.exit_code,
        crashes=start.crashes,
        out_of_memory=start.out_of_memory,
    )
    return [failure for failure in failures if failure.kind not in expected.allowed]


def _spreads_by(starts: Sequence[Iterable[tuple[str, int | None]]]) -> dict[str, Spread]:
    """Return how far the sum of each name differs between starts, without those of which a part is unknown."""
    sums: dict[str, list[int | None]] = {}
    for number, parts in enumerate(starts):
        for name, size_bytes in parts:
            sizes = sums.setdefault(name, [0] * len(starts))
            sum_before = sizes[number]
            sizes[number] = None if sum_before is None or size_bytes is None else sum_before + size_bytes
    spreads = {name: _spread(sizes) for name, sizes in sums.items()}
    return {name: spread for name, spread in spreads.items() if spread is not None}


def _spread(figures: Iterable[int | None]) -> Spread | None:
    sizes = list(figures)
    present = [size for size in sizes if size is not None]
    return Spread.of(present) if len(present) == len(sizes) else None
