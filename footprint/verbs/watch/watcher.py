"""The engine of a watch: ticks in, records out. The clock and what it reads are given to it."""

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from footprint.errors import FootprintError, Note
from footprint.model.audited import Audited
from footprint.model.process_counters import ProcessCounters
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Closed,
    Ended,
    GroupPeak,
    OwnersSeen,
    Record,
    Sampled,
    Told,
    packed,
)
from footprint.series.timeline import Timeline
from footprint.verbs.watch.audits import Reading
from footprint.verbs.watch.moments import AuditBudget, AuditMoment, RiseStep, held_bytes_of, owners_of
from footprint.verbs.watch.roster import Roster

__all__ = ("CounterSource", "Sources", "Watcher")

# Ticks take at most this part of a processor.
_TICK_SHARE: Final = 0.01
# How much the last tick counts for what a tick usually costs.
_NEW_WEIGHT: Final = 0.1
# An audit is worked on where nothing has risen for so long.
_CALM_SECONDS: Final = 1.0
_REPLACED: Final = frozenset({AuditMoment.PEAK, AuditMoment.GROWTH})


class CounterSource(Protocol):
    """Reads the counters of one process."""

    is_divided: bool
    """Whether what is COW-shared is divided among those that share it."""

    def read(self, now: float, reader_count: int) -> ProcessCounters | None:
        """Read the counters; None for a zombie. OSError where it has ended."""

    def close(self) -> None:
        """Close what is open."""


class Sources(NamedTuple):
    """What a watch reads.

    Attributes:
        open_reader: Opens the counters of a process; OSError where it has ended.
        read: Reads processes for an audit, and stops them meanwhile where that is asked for and allowed.
        is_there: Returns whether a process is there.
        write_audit: Writes an audit as JSON in one line.
        work_seconds: Our own processor time so far.
        sink: Is given the records of each turn.
    """

    open_reader: Callable[[int], CounterSource]
    read: Callable[[tuple[int, ...], bool], Reading]
    is_there: Callable[[int], bool]
    write_audit: Callable[[Audited], str]
    work_seconds: Callable[[], float]
    sink: Callable[[Sequence[Record]], None]


class _Waiting(NamedTuple):
    """What was read for an audit.

    Attributes:
        moment: Why; None for the sums of the owners only.
        ms: When.
        cost_seconds: The processor time that reading took.
        reading: It.
    """

    moment: AuditMoment | None
    ms: int
    cost_seconds: float
    reading: Reading


class _Finished(NamedTuple):
    """An audit that is finished, and what each owner holds in it."""

    waiting: _Waiting
    audit: Audited
    owners: Mapping[str, int]


class Watcher:
    """Looks at the processes of a target.

    Args:
        began: The first record.
        roster: The processes.
        sources: What is read.
        first_audit_seconds: When the audit of the start is made.
    """

    def __init__(self, began: Began, roster: Roster, sources: Sources, first_audit_seconds: float = 0.0) -> None:
        self.timeline = Timeline(began)
        self.every_seconds = began.every_ms / 1000
        self._roster = roster
        self._sources = sources
        self._readers: dict[int, CounterSource] = {}
        self._figures: dict[int, ProcessCounters] = {}
        self._budget = AuditBudget(self.every_seconds)
        self._audited_bytes = -1
        self._before_bytes = 0
        self._first_audit_seconds = first_audit_seconds
        self._has_begun = False
        self._has_changed = False
        self._last_step = 0.0
        self._waiting: list[_Waiting] = []
        self._last: _Finished | None = None
        self._work_start = sources.work_seconds()
        self._told: set[tuple[str, str]] = set()
        self._queue: list[Record] = []
        self._tick_cost_seconds = 0.0
        self._numbers: dict[int, int] = {}
        sources.sink([began])

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the processes that are there."""
        return tuple(sorted(self._readers))

    def add(self, record: Record) -> None:
        """Add a record."""
        self.timeline.add(record)
        self._queue.append(record)

    def tell(self, note: Note, ms: int) -> None:
        """Add a note, once."""
        if note[:2] not in self._told:
            self._told.add(note[:2])
            self.add(Told(ms, note))

    def flush(self) -> None:
        """Hand over the records."""
        records, self._queue = self._queue, []
        if records:
            self._sources.sink(records)

    def refresh(self, seconds: float) -> None:
        """Find out who came and who ended."""
        for record in self._roster.refresh(seconds, self._sources.work_seconds):
            self.on_member(record)

    def on_member(self, record: Came | Ended) -> None:
        """Add a process that came or ended."""
        self.add(record)
        self._has_changed = True
        if isinstance(record, Came):
            # One that has executed another program has other memory.
            self._close(record.pid)
            try:
                self._readers[record.pid] = self._sources.open_reader(record.pid)
            except OSError as error:
                if error.errno == errno.EMFILE:
                    detail = f"only {len(self._readers):,} processes at a time are read: {error.strerror}"
                    self.tell(Note("processes-not-watched", self.timeline.began.target, detail), record.ms)
                return
            self._numbers[record.number] = record.pid
        elif record.number in self._numbers:
            self._close(self._numbers.pop(record.number))

    def _close(self, pid: int) -> None:
        self._figures.pop(pid, None)
        reader = self._readers.pop(pid, None)
        if reader is not None:
            reader.close()

    def tick(self, seconds: float, *, is_last: bool = False) -> None:
        """Read the counters of all processes, and make an audit where the moment matters; none at the last tick."""
        began = self._sources.work_seconds()
        ms = round(seconds * 1000)
        self.refresh(seconds)
        changed = {}
        for pid, reader in list(self._readers.items()):
            member = self._roster.members.get(pid)
            figures = self._read(pid, reader, seconds)
            if figures is not None and member is not None and figures != self._figures.get(pid):
                changed[member.number] = self._figures[pid] = figures
        self._has_changed |= bool(changed)
        own_cpu_ms = round((self._sources.work_seconds() - self._work_start) * 1000)
        self.add(Sampled(ms, changed, own_cpu_ms))
        cost = self._sources.work_seconds() - began
        self._slow_down(cost, ms)
        if not is_last:
            self._decide(seconds)
        self.flush()

    def _read(self, pid: int, reader: CounterSource, seconds: float) -> ProcessCounters | None:
        counters = None
        with suppress(OSError):
            counters = reader.read(seconds, len(self._readers))
        if counters is not None:
            if not reader.is_divided:
                detail = f"what is shared since a fork counts in each process: smaps_rollup of pid {pid} cannot be read"
                self.tell(Note("shares-not-read", self.timeline.began.target, detail), round(seconds * 1000))
            return counters
        last = self._figures.get(pid)
        peak_bytes = None if last is None else last.peak_resident_bytes
        self._close(pid)
        for record in self._roster.lose(pid, peak_bytes, round(seconds * 1000)):
            self.on_member(record)
        return None

    def _slow_down(self, cost_seconds: float, ms: int) -> None:
        """Tick less often where a tick takes too long."""
        # Opening the files of many processes takes long once.
        weight = 0 if ms == 0 else _NEW_WEIGHT
        self._tick_cost_seconds += weight * (cost_seconds - self._tick_cost_seconds)
        asked_seconds = self.timeline.began.every_ms / 1000
        self.every_seconds = max(asked_seconds, self._tick_cost_seconds / _TICK_SHARE)
        if self.every_seconds == asked_seconds:
            return
        detail = (
            f"a tick takes {1000 * self._tick_cost_seconds:.2g} ms of a processor: from here on there is one every "
            f"{1000 * self.every_seconds:.0f} ms, so that the watch takes 1 % of it"
        )
        self.tell(Note("ticks-slowed", self.timeline.began.target, detail), ms)

    # --- audits

    def _decide(self, seconds: float) -> None:
        now_bytes = self.timeline.sums.cost_bytes
        moment = RiseStep(self._audited_bytes, self._before_bytes).moment(now_bytes)
        self._before_bytes = now_bytes
        if moment is not None:
            self._last_step = seconds
        if self._readers:
            if not self._has_begun:
                if seconds >= self._first_audit_seconds:
                    self.audit(AuditMoment.START, seconds)
            elif moment is not None and self._budget.allows(seconds):
                self.audit(moment, seconds)
            elif not self._waiting and self._budget.is_look_due(seconds):
                self._look(seconds)
        if seconds >= self._last_step + _CALM_SECONDS:
            self.finish_audits(seconds)

    def _look(self, seconds: float) -> None:
        """See what each owner holds: where no counter has changed since the last audit, what it held then."""
        if self._has_changed or self._last is None:
            self.audit(None, seconds)
        else:
            ms = round(seconds * 1000)
            self._last = self._last._replace(waiting=self._last.waiting._replace(moment=None, ms=ms))
            self.add(OwnersSeen(ms, self._last.owners))
            self._budget.put_off(seconds)

    def audit(self, moment: AuditMoment | None, seconds: float) -> None:
        """Read all processes for an audit; without a moment only the sums of its owners will be kept."""
        self._has_begun = True
        self._has_changed = False
        began = self._sources.work_seconds()
        held_bytes = self.timeline.sums.cost_bytes
        try:
            reading = self._sources.read(self.pids, moment is AuditMoment.PEAK)
        except FootprintError as error:
            if any(map(self._sources.is_there, self.pids)):
                note = Note("audit-failed", self.timeline.began.target, f"{error}: there is no audit of this moment")
                self.tell(note, round(seconds * 1000))
            return
        finally:
            cost_seconds = self._spend(began, moment, seconds)
        if moment in _REPLACED:
            # Of several peaks in a row the last one is the highest.
            self._waiting = [one for one in self._waiting if one.moment not in _REPLACED]
        self._waiting.append(_Waiting(moment, round(seconds * 1000), cost_seconds, reading))
        self._audited_bytes = max(self._audited_bytes, held_bytes)

    def finish_audits(self, seconds: float) -> None:
        """Join what was read with the files, which takes long: it waits until nothing rises."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            began = self._sources.work_seconds()
            found = one.reading.join()
            owners = owners_of(found)
            self.add(OwnersSeen(one.ms, owners))
            if one.moment is not None:
                self._keep(one.moment, one, found)
            self._last = _Finished(one, found, owners)
            self._spend(began, one.moment, seconds, one.cost_seconds)

    def _keep(self, moment: AuditMoment, one: _Waiting, found: Audited) -> None:
        audit = packed(self._sources.write_audit(found))
        self.add(AuditKept(one.ms, moment.value, held_bytes_of(found), audit, one.reading.mappings))

    def _spend(self, began: float, moment: AuditMoment | None, seconds: float, before_seconds: float = 0.0) -> float:
        """Count the processor time since `began` for an audit that has taken some before, and return it."""
        cost_seconds = self._sources.work_seconds() - began
        is_asked = moment in {AuditMoment.START, AuditMoment.END, AuditMoment.SIGNAL}
        self._budget.spend(cost_seconds, seconds, whole_seconds=before_seconds + cost_seconds, is_asked=is_asked)
        return cost_seconds

    def see_group(self, peak: GroupPeak) -> None:
        """Add a new peak of the cgroup, if it is one."""
        known = self.timeline.group_peak
        if known is None or peak.peak_bytes > known.peak_bytes:
            self.add(peak)

    def end_audits(self, seconds: float) -> None:
        """Finish the audits: the last one is that of the end."""
        self.finish_audits(seconds)
        last = self._last
        if last is not None and last.waiting.moment not in {AuditMoment.START, AuditMoment.END}:
            self._keep(AuditMoment.END, last.waiting, last.audit)
        self.flush()

    def close(self, closed: Closed) -> None:
        """End the watch, whose audits are finished."""
        self.add(closed)
        self.flush()
        for pid in list(self._readers):
            self._close(pid)
