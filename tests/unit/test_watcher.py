"""The engine of a watch, with a clock, processes and audits of our own."""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from footprint.attribution.kernel import BUILT_IN
from footprint.errors import AccessError, Note, UsageError
from footprint.model.audit import Audit
from footprint.model.over_time import ProcessCounters
from footprint.process.kernel_events import Executed, Exited, Forked, KernelEvents, TaskEnd
from footprint.process.status import Stat
from footprint.series.records import AuditKept, Began, Came, Closed, Ended, NoteRecord, OwnersSeen, Record, Sampled
from footprint.sources.target import NO_CHOICE, ProcessChoice
from footprint.verbs.watch import call as call_module
from footprint.verbs.watch import roster as roster_module
from footprint.verbs.watch import watcher as watcher_module
from footprint.verbs.watch.audits import AuditBudget, AuditMoment, Joined, Reading, RiseStep
from footprint.verbs.watch.roster import Roster
from footprint.verbs.watch.tick_costs import TickCosts
from footprint.verbs.watch.watcher import Sources, Watcher

KIB = 1024
MIB = 1 << 20
BEGAN = Began("server", 1_700_000_000, 1000, 16 * KIB, {"kernel": "6.18", "machine": "x86_64"}, "0.1.0")
CLOSED = Closed(0, 0, 0, "polling")
# A kernel whose objects cost nothing: the cost is memory, and the stacks of threads.
FREE = BUILT_IN._replace(process_bytes=0, thread_bytes=0, mapping_bytes=0, written_bytes=0, file_bytes=0)


@dataclass
class Process:
    """A process of the simulated machine."""

    private_bytes: int = MIB
    start_ticks: int = 1
    parent_pid: int = 1
    name: bytes = b"work"
    state: str = "S"
    stack_addr: int = 0
    flags: int = 0
    thread_count: int = 1


@dataclass
class Machine:
    """A machine whose clock stands still unless a test moves it."""

    processes: dict[int, Process] = field(default_factory=dict)
    events: list[Forked | Executed | Exited | TaskEnd] = field(default_factory=list)
    work_seconds: float = 0.0
    read_cost_seconds: float = 0.0
    audit_cost_seconds: float = 0.0
    records: list[Record] = field(default_factory=list)
    audits_fail: bool = False
    listed: set[int] = field(default_factory=set)

    def stat(self, pid: int) -> Stat | None:
        process = self.processes.get(pid)
        if process is None:
            return None
        fields = (process.name, process.state, process.parent_pid, 1, process.flags, process.start_ticks, 0)
        return Stat(*fields, process.stack_addr, process.thread_count)

    def read(self) -> Iterator[Forked | Executed | Exited | TaskEnd]:
        events, self.events = self.events, []
        yield from events

    def open_reader(self, pid: int) -> "Reader":
        if pid not in self.processes:
            raise ProcessLookupError
        return Reader(self, pid, self.processes[pid])

    def take(self, pids: Sequence[int], is_peak: bool) -> Reading:  # noqa: FBT001 # as the engine calls it
        assert isinstance(is_peak, bool)
        if self.audits_fail:
            raise AccessError("server", "permission denied")
        self.work_seconds += self.audit_cost_seconds
        held = sum(self.processes[pid].private_bytes for pid in pids)
        return Reading(lambda: Joined(cast("Audit", held), {"[heap]": held}), {})

    def watcher(
        self, *, has_events: bool = False, has_children: bool = True, name: str | None = None, every_ms: int = 1000
    ) -> Watcher:
        events = cast("KernelEvents", self) if has_events else None
        chosen = list(self.processes)
        roster = Roster(
            lambda: [*chosen, *self.listed] if has_events else list(self.processes),
            events,
            has_children=has_children,
            name=name,
        )
        return Watcher(BEGAN._replace(every_ms=every_ms), roster, self.sources())

    def sources(self) -> Sources:
        return Sources(
            self.open_reader,
            self.take,
            self.processes.__contains__,
            str,
            lambda: self.work_seconds,
            self.records.extend,
            TickCosts(FREE, lambda pids: dict.fromkeys(pids, ())),
        )

    def of(self, kind: type[Record]) -> list[Record]:
        return [record for record in self.records if isinstance(record, kind)]


class Reader:
    """The counters of a process; a later one with its PID is another."""

    is_divided = True

    def __init__(self, machine: Machine, pid: int, process: Process) -> None:
        self.machine, self.pid, self.process = machine, pid, process

    def read(self, now: float, reader_count: int) -> ProcessCounters | None:
        assert now >= 0
        assert reader_count > 0
        self.machine.work_seconds += self.machine.read_cost_seconds
        if self.machine.processes.get(self.pid) is not self.process:
            raise ProcessLookupError
        if self.process.state == "Z" and self.process.thread_count < 2:
            return None
        size = self.process.private_bytes
        return ProcessCounters(size, 0, 0, size, size, 1)

    def renew(self) -> None:
        pass

    def learn_private(self, private_bytes: int) -> None:
        assert private_bytes >= 0

    def close(self) -> None:
        pass


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(roster_module, "read_stat", found.stat)
    monkeypatch.setattr(roster_module, "_command", lambda _, name: name.decode())
    monkeypatch.setattr(watcher_module, "cost_of", lambda held: held)
    return found


# --- audits -----------------------------------------------------------------------------------------------------------


def test_there_is_an_audit_at_the_start_at_a_peak_at_a_jump_and_at_the_end(machine: Machine) -> None:
    machine.processes[100] = server = Process(10 * MIB)
    watcher = machine.watcher()
    sizes = [10, 10, 30, 30, 30, 12, 12, 12, 28, 28, 28, 28]
    for second, size in enumerate(sizes):
        server.private_bytes = size * MIB
        watcher.tick(second)
    watcher.audit(AuditMoment.END, len(sizes))
    watcher.end_audits(0)
    watcher.close(CLOSED)
    taken = [record for record in machine.records if isinstance(record, AuditKept)]
    assert [(one.moment, one.ms, one.held_bytes // MIB) for one in taken] == [
        ("start", 0, 10),
        ("peak", 2000, 30),
        ("growth", 8000, 28),
        ("end", 12_000, 28),
    ]


def test_of_a_rise_over_several_ticks_the_audit_of_its_top_is_kept(machine: Machine) -> None:
    machine.processes[100] = server = Process(10 * MIB)
    watcher = machine.watcher()
    for tenth, size in enumerate([10, 20, 40, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80]):
        server.private_bytes = size * MIB
        watcher.tick(tenth / 10)
    watcher.end_audits(0)
    watcher.close(CLOSED)
    peaks = [record for record in machine.records if isinstance(record, AuditKept) and record.moment == "peak"]
    assert [(peak.ms, peak.held_bytes) for peak in peaks] == [(300, 80 * MIB)]


def ended_after(machine: Machine, sizes: Sequence[int]) -> list[tuple[str, int]]:
    """Watch a process that ends by itself after some seconds; return the audits that are kept."""
    machine.processes[100] = server = Process(10 * MIB)
    watcher = machine.watcher()
    for second, size in enumerate(sizes):
        server.private_bytes = size
        watcher.tick(second)
    del machine.processes[100]
    watcher.tick(len(sizes))
    watcher.end_audits(len(sizes))
    watcher.close(CLOSED)
    return [(record.moment, record.ms) for record in machine.records if isinstance(record, AuditKept)]


def test_a_target_that_ends_by_itself_has_the_last_look_as_its_end(machine: Machine) -> None:
    kept = ended_after(machine, [10 * MIB, 10 * MIB, 10 * MIB + 4 * KIB])
    assert kept == [("start", 0), ("end", 2000)]
    assert not machine.of(NoteRecord)


def test_the_audit_of_the_start_is_never_that_of_the_end(machine: Machine) -> None:
    machine.audit_cost_seconds = 1.0
    assert ended_after(machine, [10 * MIB] * 5) == [("start", 0)]


def test_where_the_end_was_not_audited_the_last_audit_has_another_name_and_a_note(machine: Machine) -> None:
    machine.audit_cost_seconds = 1.0  # more than the budget of looks has
    assert ended_after(machine, [10 * MIB, 10 * MIB + 900 * KIB]) == [("start", 0)]
    (told,) = machine.of(NoteRecord)
    assert cast("NoteRecord", told).note.slug == "end-not-audited"
    assert cast("NoteRecord", told).note.detail == (
        "the last audit is that of 0 s, of 10 MiB; at the last tick before their end the processes cost 10.9 MiB"
    )


def test_audits_that_nobody_asked_for_take_little_of_a_processor(machine: Machine) -> None:
    machine.processes[100] = Process()
    machine.audit_cost_seconds = 0.1
    watcher = machine.watcher()
    for second in range(3601):
        watcher.tick(second)
    # 0.15 s are free, and 0.2 % of an hour are 7.2 s: 73 looks, and the audit of the start.
    assert 65 <= len(machine.of(OwnersSeen)) <= 76


def test_where_no_counter_changes_nothing_is_read_to_see_what_each_owner_holds(machine: Machine) -> None:
    machine.processes[100] = server = Process(10 * MIB)
    machine.audit_cost_seconds = 0.001
    watcher = machine.watcher()
    readings: list[int] = []
    for second in range(40):
        server.private_bytes += KIB if second == 20 else 0
        before = machine.work_seconds
        watcher.tick(second)
        if machine.work_seconds > before:
            readings.append(second)
    # The start, and the first look after the change.
    assert readings[0] == 0
    assert len(readings) == 2
    assert readings[1] >= 20
    seen = [record for record in machine.records if isinstance(record, OwnersSeen)]
    assert len(seen) > 30
    assert {one.owners["[heap]"] for one in seen if one.ms < 20_000} == {10 * MIB}
    assert {one.owners["[heap]"] for one in seen[-10:]} == {10 * MIB + KIB}


def test_processes_that_no_file_can_be_opened_for_are_one_note(machine: Machine) -> None:
    machine.processes |= {pid: Process(MIB) for pid in range(100, 105)}
    opened = machine.open_reader

    def open_reader(pid: int) -> Reader:
        if pid > 102:
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(pid)

    machine.open_reader = open_reader  # type: ignore[method-assign]
    watcher = machine.watcher()
    watcher.tick(0)
    (note,) = watcher.timeline.notes
    assert note.slug == "processes-not-watched"
    assert note.detail == "only 3 processes at a time are read: Too many open files"
    assert watcher.timeline.last_cost_bytes == 3 * (MIB + BEGAN.stack_bytes)


def test_what_processes_share_and_nobody_may_read_is_one_note(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.processes |= {100: Process(MIB), 101: Process(MIB)}
    monkeypatch.setattr(Reader, "is_divided", False)
    watcher = machine.watcher()
    watcher.tick(0)
    watcher.tick(1)
    (note,) = watcher.timeline.notes
    assert note.slug == "shares-not-read"
    assert note.detail == "what is shared since a fork counts in each process: smaps_rollup of pid 100 cannot be read"


def test_an_audit_that_fails_is_one_note(machine: Machine) -> None:
    machine.processes[100] = Process()
    machine.audits_fail = True
    watcher = machine.watcher()
    for second in range(5):
        watcher.audit(AuditMoment.SIGNAL, second)
        watcher.tick(second)
    (note,) = machine.of(NoteRecord)
    assert cast("NoteRecord", note).note.slug == "audit-failed"


def test_a_rise_counts_from_a_megabyte_or_a_tenth_on() -> None:
    assert RiseStep(10 * MIB, 10 * MIB).moment(11 * MIB) is None
    assert RiseStep(10 * MIB, 10 * MIB).moment(11 * MIB + 1) is AuditMoment.PEAK
    assert RiseStep(100 * MIB, 100 * MIB).moment(109 * MIB) is None
    assert RiseStep(100 * MIB, 10 * MIB).moment(14 * MIB) is None
    assert RiseStep(100 * MIB, 10 * MIB).moment(14 * MIB + 1) is AuditMoment.GROWTH


def test_an_audit_that_was_asked_for_is_outside_of_the_budget() -> None:
    budget = AuditBudget(1.0)
    budget.spend(5.0, 0, whole_seconds=5.0, is_asked=True)
    assert not budget.allows(0)  # the next one would take as long
    assert budget.allows(1500 + 1)


# --- ticks ------------------------------------------------------------------------------------------------------------


def test_a_tick_has_only_what_has_changed(machine: Machine) -> None:
    machine.processes |= {100: Process(1 * MIB), 101: Process(2 * MIB)}
    watcher = machine.watcher()
    watcher.tick(0)
    machine.processes[101].private_bytes = 3 * MIB
    watcher.tick(1)
    watcher.tick(2)
    ticks = [record for record in machine.records if isinstance(record, Sampled)]
    assert [list(tick.figures) for tick in ticks] == [[1, 2], [2], []]
    assert watcher.timeline.sums.cost_bytes == 4 * MIB + 2 * 16 * KIB


def test_ticks_come_less_often_where_they_take_too_long(machine: Machine) -> None:
    machine.processes |= {pid: Process() for pid in range(100, 150)}
    machine.read_cost_seconds = 0.001
    watcher = machine.watcher()
    for second in range(60):
        watcher.tick(second)
    # 50 ms are 1 % of 5 s.
    assert 4.5 < watcher.every_seconds <= 5.0
    (note,) = machine.of(NoteRecord)
    assert cast("NoteRecord", note).note.slug == "ticks-slowed"


def test_quick_ticks_that_are_slowed_are_told_in_milliseconds(machine: Machine) -> None:
    machine.processes[100] = Process()
    machine.read_cost_seconds = 0.0004
    watcher = machine.watcher(every_ms=10)
    for turn in range(200):
        watcher.tick(turn / 100)
    (note,) = machine.of(NoteRecord)
    assert (
        "a tick takes 0.11 ms of a processor: from here on there is one every 11 ms"
        in cast("NoteRecord", note).note.detail
    )


def test_the_end_of_an_earlier_process_is_not_that_of_the_next_one_with_its_pid(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    # Within one turn it ends, and its parent forks another one that gets its PID.
    machine.processes[100] = Process(private_bytes=9 * MIB, start_ticks=2, parent_pid=100)
    machine.events = [Exited(100, 0), Forked(100, 100), TaskEnd(100, 100, 1, "work", 5 * MIB, 0, 40)]
    watcher.tick(1)
    watcher.tick(2)
    (first,) = machine.of(Ended)
    assert cast("Ended", first)[1:4] == (1, 5 * MIB, "taskstats")
    assert list(watcher.timeline.alive) == [2]
    assert watcher.timeline.last_cost_bytes == 9 * MIB + 16 * KIB
    machine.events = [Exited(100, 0), TaskEnd(100, 100, 1, "work", 9 * MIB, 0, 2000)]
    del machine.processes[100]
    watcher.tick(3)
    watcher.tick(4)
    assert [cast("Ended", one)[1:4] for one in machine.of(Ended)] == [
        (1, 5 * MIB, "taskstats"),
        (2, 9 * MIB, "taskstats"),
    ]


def test_our_own_time_is_in_each_tick(machine: Machine) -> None:
    machine.processes[100] = Process()
    machine.read_cost_seconds = 0.002
    watcher = machine.watcher()
    for second in range(3):
        watcher.tick(second)
    assert [record.own_cpu_ms for record in machine.records if isinstance(record, Sampled)] == [2, 4, 6]


# --- who is there -----------------------------------------------------------------------------------------------------


def life(machine: Machine) -> list[tuple[object, ...]]:
    """Return who came and ended: number, PID and name; number, peak and its source."""
    result: list[tuple[object, ...]] = []
    for record in machine.records:
        if isinstance(record, Came):
            result.append((record.number, record.pid, record.command))
        elif isinstance(record, Ended):
            result.append((record.number, record.peak_resident_bytes, record.source, record.exit_code))
    return result


def test_without_events_the_peak_of_a_process_is_that_of_the_last_tick(machine: Machine) -> None:
    machine.processes[100] = Process(5 * MIB)
    watcher = machine.watcher()
    watcher.tick(0)
    del machine.processes[100]
    watcher.tick(1)
    assert life(machine) == [(1, 100, "work"), (1, 5 * MIB, "status", None)]
    assert watcher.pids == ()


def test_a_process_that_is_replaced_by_one_with_its_pid_has_another_number(machine: Machine) -> None:
    machine.processes[100] = Process(5 * MIB, start_ticks=1)
    watcher = machine.watcher()
    watcher.tick(0)
    machine.processes[100] = Process(7 * MIB, start_ticks=2, name=b"other")
    watcher.tick(1)
    watcher.tick(2)
    numbers = {record.number: record for record in machine.records if isinstance(record, Came)}
    assert {number: one.command for number, one in numbers.items()} == {1: "work", 2: "other"}
    assert watcher.timeline.sums.of == {2: 7 * MIB + 16 * KIB}


def test_a_process_that_is_still_listed_after_its_end_does_not_come_again(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher()
    watcher.tick(0)
    for ended in watcher._roster.end(100, 500, 2 * MIB, "exit stop", None):
        watcher.on_member(ended)
    watcher.tick(1)
    assert life(machine) == [(1, 100, "work"), (1, 2 * MIB, "exit stop", None)]


def test_a_zombie_is_not_there(machine: Machine) -> None:
    machine.processes[100] = Process(5 * MIB)
    watcher = machine.watcher()
    watcher.tick(0)
    machine.processes[100].state = "Z"
    for second in range(1, 4):
        watcher.tick(second)
    assert life(machine) == [(1, 100, "work"), (1, 5 * MIB, "status", None)]


def test_a_child_that_lives_between_two_ticks_is_seen_with_its_peak(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.events = [
        Forked(100, 200),
        Executed(200),
        Forked(200, 201),  # a grandchild
        Exited(201, 0),
        Exited(200, 3 << 8),
        Forked(50, 300),  # of somebody else
        TaskEnd(201, 201, 200, "sort", 9 * MIB, 0, lived_ms=7),
        TaskEnd(200, 200, 100, "sh", 100 * MIB, 3 << 8),
        TaskEnd(300, 300, 50, "cron", MIB, 0),
    ]
    watcher.tick(1)
    assert life(machine) == [
        (1, 100, "work"),
        (3, 201, "sort"),
        (3, 9 * MIB, "taskstats", 0),
        (2, 200, "sh"),
        (2, 100 * MIB, "taskstats", 3),
    ] or sorted(life(machine)[1:], key=str) == sorted(
        [(3, 201, "sort"), (3, 9 * MIB, "taskstats", 0), (2, 200, "sh"), (2, 100 * MIB, "taskstats", 3)], key=str
    )
    lived = [(one.came.command, one.came.ms, one.lived_ms(1000)) for one in watcher.timeline.ended.values()]
    assert ("sort", 993, 7) in lived


def test_what_taskstats_says_may_come_a_turn_later_or_never(machine: Machine) -> None:
    machine.processes |= {100: Process(5 * MIB), 101: Process(6 * MIB)}
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes.clear()
    machine.events = [Exited(100, 0), Exited(101, 9)]
    watcher.tick(1)
    machine.events = [TaskEnd(100, 100, 1, "work", 8 * MIB, 0)]
    watcher.tick(2)
    watcher.tick(3)
    assert life(machine)[2:] == [(1, 8 * MIB, "taskstats", 0), (2, 6 * MIB, "status", None)]


def test_a_process_that_executes_another_program_keeps_its_number(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[100].name = b"server"
    machine.events = [Executed(100)]
    watcher.tick(1)
    assert life(machine) == [(1, 100, "work"), (1, 100, "server")]
    assert watcher.timeline.process_count == 1
    assert watcher.timeline.alive[1].came.command == "server"


def test_a_process_that_goes_on_as_another_program_is_a_note(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[100].name = b"server"
    machine.events = [Executed(100)]
    watcher.tick(1)
    (told,) = machine.of(NoteRecord)
    assert cast("NoteRecord", told).note == (
        "program-changed",
        "pid 100 at 1 s",
        "it executed server; before, it was work",
    )


@pytest.mark.parametrize("name", ["true", ""], ids=["taskstats", "no name"])
def test_a_child_that_a_tick_has_seen_before_it_executed_a_short_program_has_the_name_of_that(
    machine: Machine, name: str
) -> None:
    machine.processes[100] = Process(name=b"sh")
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(parent_pid=100, name=b"sh")
    machine.events = [Forked(100, 200)]
    watcher.tick(1)
    del machine.processes[200]
    machine.events = [Executed(200), Exited(200, 0), TaskEnd(200, 200, 100, name, MIB, 0, lived_ms=990)]
    watcher.tick(2)
    (ended,) = watcher.timeline.ended.values()
    assert (ended.came.command, ended.came.parent_pid) == (name or "sh", 100)
    assert (ended.came.ms, ended.lived_ms(2000)) == (1000, 990)
    assert not machine.of(NoteRecord)


def test_a_child_that_executes_its_program_before_a_tick_has_seen_it_is_no_note(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(parent_pid=100, name=b"sort")
    machine.events = [Forked(100, 200), Executed(200)]
    watcher.tick(1)
    assert not machine.of(NoteRecord)


def test_without_events_the_address_of_the_stack_tells_that_a_process_has_executed_another_program(
    machine: Machine,
) -> None:
    machine.processes[100] = Process(stack_addr=0x7FFF0000)
    watcher = machine.watcher()
    watcher.tick(0)
    machine.processes[100] = server = machine.processes[100]
    server.name, server.stack_addr = b"server", 0x7FFE0000
    watcher.tick(1)
    watcher.tick(2)
    assert life(machine) == [(1, 100, "work"), (1, 100, "server")]
    server.stack_addr = 0  # of a program of root nobody else is told
    watcher.tick(3)
    assert len(life(machine)) == 2


def test_a_thread_that_ends_is_not_its_process(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.events = [TaskEnd(101, 100, 1, "work", 8 * MIB, 0), TaskEnd(100, 99, 1, "work", 8 * MIB, 0)]
    watcher.tick(1)
    watcher.tick(2)
    assert life(machine) == [(1, 100, "work")]


def test_a_process_whose_main_thread_ends_goes_on_with_the_others(machine: Machine) -> None:
    machine.processes[100] = server = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    # pthread_exit(3) in main().
    server.state, server.thread_count = "Z", 2
    machine.events = [Exited(100, 0), TaskEnd(100, 100, 1, "server", MIB, 0, 90)]
    for second in (1, 2):
        watcher.tick(second)
    server.private_bytes = 60 * MIB
    machine.events = [Forked(100, 200), Exited(200, 0), TaskEnd(200, 200, 100, "true", MIB, 0)]
    watcher.tick(3)
    assert watcher.pids == (100,)
    assert watcher.timeline.last_cost_bytes == 60 * MIB + 16 * KIB
    assert peaks(watcher) == [(200, "true", 1)]
    del machine.processes[100]
    machine.events = [TaskEnd(101, 100, 1, "worker", 70 * MIB, 0, 2000), TaskEnd(400, 300, 1, "other", 90 * MIB, 0)]
    watcher.tick(4)
    watcher.tick(5)
    assert peaks(watcher) == [(200, "true", 1), (100, "work", 70)]
    assert watcher.timeline.ended[1].lived_ms(0) == 90 + 3000


@pytest.mark.parametrize("turn_count", [1, 2, 3])
def test_a_process_goes_on_whose_main_thread_ends_since_another_one_executes_a_program(
    machine: Machine, turn_count: int
) -> None:
    machine.processes[100] = server = Process(stack_addr=7)
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    # The kernel gives the PID and the start of the main thread to the thread that executes a program.
    events: list[Forked | Executed | Exited | TaskEnd]
    events = [Exited(100, 0), TaskEnd(100, 100, 1, "work", MIB, 0), Executed(100)]
    server.name, server.stack_addr = b"server", 8
    for second, part in enumerate({1: [events], 2: [events[:2], events[2:]], 3: [[one] for one in events]}[turn_count]):
        machine.events = list(part)
        watcher.tick(1 + second)
    server.private_bytes = 60 * MIB
    watcher.tick(5)
    assert watcher.pids == (100,)
    assert watcher.timeline.last_cost_bytes == 60 * MIB + 16 * KIB
    assert [one.came.command for one in watcher.timeline.alive.values()] == ["server"]
    del machine.processes[100]
    machine.events = [Exited(100, 0), TaskEnd(100, 100, 1, "server", 70 * MIB, 0)]
    watcher.tick(6)
    assert peaks(watcher) == [(100, "server", 70)]


def test_a_child_whose_main_thread_ends_in_the_turn_of_its_fork_is_measured(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(
        start_ticks=7, parent_pid=100, state="Z", thread_count=2, private_bytes=60 * MIB, name=b"worker"
    )
    machine.events = [Forked(100, 200), Exited(200, 0), TaskEnd(200, 200, 100, "worker", MIB, 0)]
    watcher.tick(1)
    watcher.tick(2)
    assert watcher.pids == (100, 200)
    assert life(machine)[1:] == [(2, 200, "worker")]


def test_a_child_of_which_another_thread_executes_a_program_in_the_turn_of_its_fork_is_measured(
    machine: Machine,
) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(start_ticks=7, parent_pid=100, name=b"worker")
    end = TaskEnd(200, 200, 100, "starter", MIB, 0)
    machine.events = [Forked(100, 200), Executed(200), Exited(200, 0), Executed(200), end]
    watcher.tick(1)
    watcher.tick(2)
    assert watcher.pids == (100, 200)
    assert watcher.timeline.process_count == 2


def test_forks_of_a_single_process_are_not_watched(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True, has_children=False)
    watcher.tick(0)
    machine.events = [Forked(100, 200)]
    watcher.tick(1)
    assert watcher.pids == (100,)


def test_a_name_finds_what_executes_it_later_and_what_came_and_went(machine: Machine) -> None:
    machine.processes[100] = Process(name=b"worker")
    watcher = machine.watcher(has_events=True, has_children=False, name="worker")
    watcher.tick(0)
    machine.processes |= {200: Process(name=b"worker"), 201: Process(name=b"other")}
    machine.events = [Executed(200), Executed(201), Exited(300, 0), TaskEnd(300, 300, 1, "worker", 3 * MIB, 0)]
    watcher.tick(1)
    assert life(machine)[1:] == [(2, 200, "worker"), (3, 300, "worker"), (3, 3 * MIB, "taskstats", None)]


def test_the_watch_itself_is_never_in_it(machine: Machine) -> None:
    machine.processes |= {100: Process(), os.getpid(): Process()}
    watcher = machine.watcher()
    watcher.tick(0)
    assert watcher.pids == (100,)


def test_a_note_is_told_once(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher()
    for second in range(3):
        watcher.tell(Note("clock-set", "server", f"after {second} s"), second)
        watcher.tick(second)
    assert len(machine.of(NoteRecord)) == 1


def test_of_three_processes_with_one_pid_in_a_turn_each_has_its_own_peak(machine: Machine) -> None:
    machine.processes |= {1: Process(), 100: Process(parent_pid=1)}
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[100] = Process(start_ticks=3)
    ends = [TaskEnd(100, 100, 1, name, size, 0, 5) for name, size in (("work", 5 * MIB), ("short", 7 * MIB))]
    machine.events = [Exited(100, 0), Forked(1, 100), Exited(100, 0), Forked(1, 100), *ends]
    watcher.tick(1)
    watcher.tick(2)
    peaks = [(one.came.command, one.peak_resident_bytes) for one in watcher.timeline.ended.values()]
    assert peaks == [("work", 5 * MIB), ("short", 7 * MIB)]
    assert [one.came.pid for one in watcher.timeline.alive.values()] == [1, 100]


# --- PIDs that are given again, and events that come between two readings ---------------------------------------------


def peaks(watcher: Watcher) -> list[tuple[int, str, int]]:
    """Return the PID, command and peak in MiB of each process that has ended."""
    ended = watcher.timeline.ended.values()
    return [(one.came.pid, one.came.command, (one.peak_resident_bytes or 0) // MIB) for one in ended]


def test_the_end_of_a_foreign_process_is_not_that_of_a_child_with_its_pid(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(start_ticks=7, parent_pid=100)
    machine.events = [Exited(200, 0), Forked(100, 200), TaskEnd(200, 200, 50, "cron", 9 * MIB, 0)]
    machine.listed = {200}
    for second in (1, 2):
        watcher.tick(second)
    assert life(machine) == [(1, 100, "work"), (2, 200, "work")]
    assert watcher.timeline.process_count == 2


def test_a_child_that_has_ended_has_its_own_peak_where_a_foreign_process_had_its_pid(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    ends = [TaskEnd(200, 200, 50, "cron", 9 * MIB, 0), TaskEnd(200, 200, 100, "true", MIB, 0)]
    machine.events = [Exited(200, 0), Forked(100, 200), Exited(200, 0), Forked(50, 200), *ends]
    for second in (1, 2):
        watcher.tick(second)
    assert peaks(watcher) == [(200, "true", 1)]


def test_a_thread_that_has_ended_is_not_the_process_that_gets_its_id(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.processes[200] = Process(start_ticks=7, parent_pid=100, name=b"sort")
    machine.events = [Forked(100, 200), TaskEnd(200, 50, 1, "thread", 9 * MIB, 0)]
    watcher.tick(1)
    assert life(machine)[1:] == [(2, 200, "sort")]
    del machine.processes[200]
    machine.events = [Exited(200, 0), TaskEnd(200, 200, 100, "sort", 2 * MIB, 0)]
    watcher.tick(2)
    assert peaks(watcher) == [(200, "sort", 2)]


@pytest.mark.parametrize("is_listed", [False, True], ids=["gone", "at its exit"])
def test_what_taskstats_says_may_come_a_turn_before_the_fork(machine: Machine, *, is_listed: bool) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    if is_listed:
        machine.listed = {200}
        machine.processes[200] = Process(start_ticks=7, parent_pid=100, flags=4)
    machine.events = [TaskEnd(200, 200, 100, "true", 5 * MIB, 0)]
    watcher.tick(1)
    machine.events = [Forked(100, 200), Executed(200)]
    watcher.tick(2)
    machine.processes.pop(200, None)
    machine.events = [Exited(200, 0)]
    watcher.tick(3)
    watcher.tick(4)
    assert peaks(watcher) == [(200, "true", 5)]
    assert watcher.timeline.process_count == 2


def test_a_process_at_its_exit_does_not_come_again(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.listed = {200}
    machine.processes[200] = Process(start_ticks=7, parent_pid=100, flags=4)
    machine.events = [Forked(100, 200), TaskEnd(200, 200, 100, "true", MIB, 0)]
    watcher.tick(1)
    machine.events = [Exited(200, 0)]
    watcher.tick(2)
    watcher.tick(3)
    assert life(machine)[1:] == [(2, 200, "true"), (2, MIB, "taskstats", 0)]


def test_a_listed_process_that_is_gone_when_it_is_looked_at_is_no_member(machine: Machine) -> None:
    machine.processes[100] = Process()
    watcher = machine.watcher(has_events=True)
    machine.listed = {200}
    watcher.tick(0)
    # A foreign process gets its PID.
    machine.listed = set()
    machine.events = [Forked(50, 200), Forked(200, 201), Exited(201, 0), TaskEnd(201, 201, 200, "cron", MIB, 0)]
    watcher.tick(1)
    machine.events = [Exited(200, 0), TaskEnd(200, 200, 50, "cron", MIB, 0)]
    watcher.tick(2)
    watcher.tick(3)
    assert life(machine) == [(1, 100, "work")]


def test_events_from_before_its_fork_are_those_of_an_earlier_process_with_its_pid(machine: Machine) -> None:
    machine.processes |= {100: Process(), 200: Process(start_ticks=7, parent_pid=100)}
    watcher = machine.watcher(has_events=True)
    watcher.tick(0)
    machine.events = [
        Forked(200, 201),
        Exited(201, 0),
        Executed(200),
        Exited(200, 0),
        Forked(100, 200),
        TaskEnd(201, 201, 200, "cron", 9 * MIB, 0),
        TaskEnd(200, 200, 50, "cron", 9 * MIB, 0),
    ]
    watcher.tick(1)
    watcher.tick(2)
    assert life(machine) == [(1, 100, "work"), (2, 200, "work")]
    assert watcher.pids == (100, 200)


def test_a_process_of_a_name_that_ends_between_two_readings_of_the_events_is_counted_once(machine: Machine) -> None:
    machine.processes[100] = Process(name=b"worker")
    watcher = machine.watcher(has_events=True, has_children=False, name="worker")
    watcher.tick(0)
    machine.events = [TaskEnd(300, 300, 1, "worker", 3 * MIB, 0)]
    watcher.tick(1)
    machine.processes[300] = Process(name=b"worker", state="Z")
    machine.events = [Executed(300), Exited(300, 0)]
    watcher.tick(2)
    watcher.tick(3)
    assert peaks(watcher) == [(300, "worker", 3)]
    assert watcher.timeline.process_count == 2


def test_a_later_process_with_the_pid_of_a_named_one_is_not_what_was_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_module, "read_stat", machine.stat)
    monkeypatch.setattr("footprint.process.status.processes", lambda: {p: machine.stat(p) for p in machine.processes})
    machine.processes = {100: Process(), 101: Process(), 102: Process(parent_pid=101)}
    named = call_module._chooser([100, "101"], NO_CHOICE)
    tree = call_module._chooser([], ProcessChoice(tree=101))
    both = call_module._chooser([100], ProcessChoice(tree=101))
    assert (list(named()), list(tree()), list(both())) == ([100, 101], [101, 102], [100, 101, 102])
    machine.processes[101] = Process(start_ticks=7)
    assert (list(named()), list(both())) == ([100], [100])
    with pytest.raises(UsageError):
        tree()
