"""The engine of a watch: ticks in, records out. The clock and what it reads are given to it."""

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from footprint.errors import FootprintError, Note
from footprint.model.audit import Audit
from footprint.model.over_time import ProcessCounters
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Closed,
    Ended,
    GroupPeak,
    NoteRecord,
    OwnersSeen,
    Record,
    Sampled,
    packed,
)
from footprint.series.timeline import Timeline
from footprint.text.escape import shortened
from footprint.text.units import format_bytes
from footprint.verbs.watch.audits import AuditBudget, AuditMoment, Joined, Reading, RiseStep, cost_of
from footprint.verbs.watch.roster import Roster
from footprint.verbs.watch.tick_costs import TickCosts

# Ticks take at most this part of a processor.
_TICK_SHARE: Final = 0.01
# How much the last tick counts for what a tick usually costs.
_NEW_WEIGHT: Final = 0.1
# An audit is worked on where nothing has risen for so long.
_CALM_SECONDS: Final = 1.0
# Where relatives come or end, reading anew what all share takes at most this part of a processor.
_RENEWAL_SHARE: Final = 0.01
# An audit is that of the end where it explains so nearly what the last tick has counted.
_MOST_OFF_BYTES: Final = 64 << 10
_MOST_OFF_SHARE: Final = 0.01
_MOST_PROGRAM_NOTES: Final = 20
_REPLACED: Final = frozenset({AuditMoment.PEAK, AuditMoment.GROWTH})


class CounterSource(Protocol):
    """Reads the counters of one process."""

    is_divided: bool
    """Whether what is COW-shared is divided among those that share it."""

    def read(self, now: float, reader_count: int) -> ProcessCounters | None:
        """Read the counters; None for a zombie. OSError where it has ended."""

    def renew(self) -> None:
        """Read again at the next look what is COW-shared."""

    def learn_private(self, private_bytes: int) -> None:
        """Take over what the page bits say is private, of a process that is watched without its relatives."""

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
        costs: Prices the counters.
    """

    open_reader: Callable[[int], CounterSource]
    read: Callable[[tuple[int, ...], bool], Reading]
    is_there: Callable[[int], bool]
    write_audit: Callable[[Audit], str]
    work_seconds: Callable[[], float]
    sink: Callable[[Sequence[Record]], None]
    costs: TickCosts


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
        self._counters: dict[int, ProcessCounters] = {}
        self._figures: dict[int, ProcessCounters] = {}
        self._has_new_relatives = False
        self._next_renewal = 0.0
        self._budget = AuditBudget(self.every_seconds)
        self._audited_bytes = -1
        self._before_bytes = 0
        self._first_audit_seconds = first_audit_seconds
        self._has_begun = False
        self._has_changed = False
        self._last_step = 0.0
        self._waiting: list[_Waiting] = []
        # What was read for the last audit that is finished, and the audit.
        self._last: tuple[_Waiting, Joined] | None = None
        self._work_start = sources.work_seconds()
        self._noted: set[tuple[str, str]] = set()
        self._queue: list[Record] = []
        self._tick_cost_seconds = 0.0
        self._numbers: dict[int, int] = {}
        self._program_note_count = 0
        self._unstarted: set[int] = set()
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
        if note[:2] not in self._noted:
            self._noted.add(note[:2])
            self.add(NoteRecord(ms, note))

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
        if isinstance(record, Came) and record.number in self._numbers:
            self._tell_of_program(record)
        self.add(record)
        self._has_changed = self._has_new_relatives = True
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

    def add_unstarted(self, record: Came | Ended) -> None:
        """Add a process that will execute its program: until then it is a copy of ours."""
        self.on_member(record)
        if isinstance(record, Came):
            self._unstarted.add(record.pid)

    def _tell_of_program(self, came: Came) -> None:
        """Add a note that a process that was seen at a tick goes on as another program."""
        before = self.timeline.alive[came.number].came.command
        if came.pid in self._unstarted or came.pid not in self._figures or came.command == before:
            self._unstarted.discard(came.pid)
            return
        if any(p.came.pid == came.parent_pid and p.came.command == before for p in self.timeline.alive.values()):
            # A child of it, which has executed its program after the fork.
            return
        self._program_note_count += 1
        if self._program_note_count <= _MOST_PROGRAM_NOTES:
            # A later program of the same process is another note.
            subject = f"pid {came.pid} at {came.ms / 1000:g} s"
            detail = f"it executed {shortened(came.command, 80)}; before, it was {shortened(before, 80)}"
            self.tell(Note("program-changed", subject, detail), came.ms)

    def _close(self, pid: int) -> None:
        self._counters.pop(pid, None)
        self._figures.pop(pid, None)
        self._sources.costs.drop(pid)
        reader = self._readers.pop(pid, None)
        if reader is not None:
            reader.close()

    def tick(self, seconds: float, *, is_last: bool = False) -> None:
        """Read the counters of all processes, and make an audit where the moment matters; none at the last tick."""
        began = self._sources.work_seconds()
        ms = round(seconds * 1000)
        self.refresh(seconds)
        is_renewal = self._has_new_relatives and seconds >= self._next_renewal
        if is_renewal:
            self._has_new_relatives = False
            for reader in self._readers.values():
                reader.renew()
        began_reading = self._sources.work_seconds()
        for pid, reader in list(self._readers.items()):
            counters = self._read(pid, reader, seconds)
            if counters is not None:
                self._counters[pid] = counters
        if is_renewal:
            # Opening the files of new processes is no part of it.
            self._next_renewal = seconds + (self._sources.work_seconds() - began_reading) / _RENEWAL_SHARE
        figures = self._sources.costs.priced(self._counters, seconds)
        cost_seconds = self._sources.work_seconds() - began
        self._has_changed |= figures != self._figures
        if not is_last and self._audit_if_due(seconds, self._cost_of(figures)):
            # The audit has priced what the tick has counted.
            figures = self._sources.costs.priced(self._counters, seconds)
        members = self._roster.members
        changed = {
            members[pid].number: f for pid, f in figures.items() if pid in members and f != self._figures.get(pid)
        }
        self._figures = figures
        own_cpu_ms = round((self._sources.work_seconds() - self._work_start) * 1000)
        self.add(Sampled(ms, changed, own_cpu_ms))
        self._slow_down(cost_seconds, ms)
        if not is_last and seconds >= self._last_step + _CALM_SECONDS:
            self.finish_audits(seconds)
        self.flush()

    def _cost_of(self, figures: Mapping[int, ProcessCounters]) -> int:
        return sum([figure.cost_bytes(self.timeline.began.stack_bytes) for figure in figures.values()])

    def _read(self, pid: int, reader: CounterSource, seconds: float) -> ProcessCounters | None:
        counters = None
        with suppress(OSError):
            counters = reader.read(seconds, len(self._readers))
        if counters is not None:
            if not reader.is_divided:
                detail = f"what is shared since a fork counts in each process: smaps_rollup of pid {pid} cannot be read"
                self.tell(Note("shares-not-read", self.timeline.began.target, detail), round(seconds * 1000))
            return counters
        last = self._counters.get(pid)
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

    def _audit_if_due(self, seconds: float, now_bytes: int) -> bool:
        """Read all processes for an audit if it is time for one, and return whether they were read."""
        moment = RiseStep(self._audited_bytes, self._before_bytes).moment(now_bytes)
        self._before_bytes = now_bytes
        if moment is not None:
            self._last_step = seconds
        if not self._readers:
            return False
        if not self._has_begun:
            return seconds >= self._first_audit_seconds and self.audit(AuditMoment.START, seconds, now_bytes)
        if moment is not None and self._budget.allows(seconds):
            return self.audit(moment, seconds, now_bytes)
        return not self._waiting and self._budget.is_look_due(seconds) and self._look(seconds, now_bytes)

    def _look(self, seconds: float, now_bytes: int) -> bool:
        """See what each owner holds: where no counter has changed since the last audit, what it held then."""
        if self._has_changed or self._last is None:
            return self.audit(None, seconds, now_bytes)
        self.add(OwnersSeen(round(seconds * 1000), self._last[1].owners))
        self._budget.put_off(seconds)
        return False

    def audit(self, moment: AuditMoment | None, seconds: float, cost_bytes: int | None = None) -> bool:
        """Read all processes for an audit, and return whether that could be done.

        Args:
            moment: Why; None where only the sums of its owners will be kept.
            seconds: The time.
            cost_bytes: What the processes cost now; what they cost at the last tick without it.
        """
        self._has_begun = True
        self._has_changed = False
        began = self._sources.work_seconds()
        held_bytes = self.timeline.sums.cost_bytes if cost_bytes is None else cost_bytes
        try:
            reading = self._sources.read(self.pids, moment is AuditMoment.PEAK)
        except FootprintError as error:
            if any(map(self._sources.is_there, self.pids)):
                note = Note("audit-failed", self.timeline.began.target, f"{error}: there is no audit of this moment")
                self.tell(note, round(seconds * 1000))
            return False
        finally:
            cost_seconds = self._spend(began, moment, seconds)
        self._sources.costs.learn(reading.prices, reading.files, reading.firsts)
        for pid in reading.private_bytes.keys() & self._readers.keys():
            self._readers[pid].learn_private(reading.private_bytes[pid])
            counters = self._read(pid, self._readers[pid], seconds)
            if counters is not None:
                self._counters[pid] = counters
        if moment in _REPLACED:
            # Of several peaks in a row the last one is the highest.
            self._waiting = [w for w in self._waiting if w.moment not in _REPLACED]
        self._waiting.append(_Waiting(moment, round(seconds * 1000), cost_seconds, reading))
        self._audited_bytes = max(self._audited_bytes, held_bytes)
        return True

    def finish_audits(self, seconds: float) -> None:
        """Join what was read with the files, which takes long: it waits until nothing rises."""
        waiting, self._waiting = self._waiting, []
        for reading in waiting:
            began = self._sources.work_seconds()
            joined = reading.reading.join()
            self.add(OwnersSeen(reading.ms, joined.owners))
            if reading.moment is not None:
                self._keep(reading.moment, reading, joined.audit)
            self._last = reading, joined
            self._spend(began, reading.moment, seconds, reading.cost_seconds)

    def _keep(self, moment: AuditMoment, waiting: _Waiting, audit_read: Audit) -> None:
        audit = packed(self._sources.write_audit(audit_read))
        self.add(AuditKept(waiting.ms, moment.value, cost_of(audit_read), audit, waiting.reading.mappings))

    def _spend(self, began: float, moment: AuditMoment | None, seconds: float, before_seconds: float = 0.0) -> float:
        """Count the processor time since `began` for an audit that has taken some before, and return it."""
        cost_seconds = self._sources.work_seconds() - began
        is_asked = moment in {AuditMoment.START, AuditMoment.END, AuditMoment.SIGNAL}
        self._budget.spend(cost_seconds, seconds, whole_seconds=before_seconds + cost_seconds, is_asked=is_asked)
        return cost_seconds

    def see_group(self, peak: GroupPeak) -> None:
        """Add a new peak of the cgroup, if it is one."""
        best = self.timeline.group_peak
        if best is None or peak.peak_bytes > best.peak_bytes:
            self.add(peak)

    def end_audits(self, seconds: float) -> None:
        """Finish the audits: the last one is that of the end, if it explains what the processes cost then."""
        self.finish_audits(seconds)
        if self._last is None or self._last[0].moment is AuditMoment.END:
            self.flush()
            return
        reading, joined = self._last
        explained_bytes, cost_bytes = cost_of(joined.audit), self.timeline.last_cost_bytes
        is_of_end = abs(explained_bytes - cost_bytes) <= max(_MOST_OFF_BYTES, _MOST_OFF_SHARE * cost_bytes)
        is_kept = reading.moment is not None
        if not is_of_end:
            detail = (
                f"the last audit is that of {reading.ms / 1000:g} s, of {format_bytes(explained_bytes)}; at the "
                f"last tick before their end the processes cost {format_bytes(cost_bytes)}"
            )
            self.tell(Note("end-not-audited", self.timeline.began.target, detail), round(seconds * 1000))
            if not is_kept:
                self._keep(AuditMoment.LAST, reading, joined.audit)
        elif reading.moment is not AuditMoment.START:
            self._keep(AuditMoment.END, reading, joined.audit)
        self.flush()

    def close(self, closed: Closed) -> None:
        """End the watch, whose audits are finished."""
        self.add(closed)
        self.flush()
        for pid in list(self._readers):
            self._close(pid)
