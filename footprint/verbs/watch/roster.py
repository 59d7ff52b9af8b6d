"""The processes of a target: which are there now, and which came and ended between two looks."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from footprint.errors import AccessError, UsageError
from footprint.process.kernel_events import Executed, Exited, Forked, KernelEvents, TaskEnd
from footprint.process.status import Stat, read_stat
from footprint.series.records import Came, Ended
from footprint.text.command_line import command_line

_Event = Forked | Executed | Exited | TaskEnd
Chooser = Callable[[], Collection[int]]
"""Finds the processes of a target that are there now."""

# Looking for processes takes at most this part of the time that passes.
_CHOICE_WORK: Final = 0.002
# Those that have ended are in lists of the kernel for a moment.
_MOST_GONE: Final = 1000


class RosterMember(NamedTuple):
    """A process of the target.

    Attributes:
        number: Its number in the series.
        pid: Its PID.
        start_ticks: When it was started, which tells it from a later process with its PID; None where it ended before
            that was read.
        stack_addr: Where the stack of its program begins, which tells it from the next one that it executes; the same.
        parent_pid: Its parent; None where that is not known.
    """

    number: int
    pid: int
    start_ticks: int | None
    stack_addr: int | None
    parent_pid: int | None


class _SeenEnd:
    """What events have said of a member that has ended."""

    def __init__(self) -> None:
        self.status: int | None = None
        # What taskstats said of the main thread, and when, where others go on.
        self.end: TaskEnd | None = None
        self.ms = 0
        self.peak_bytes: int | None = None
        self.turn = 0


class Roster:
    """The processes of a target.

    Args:
        choose: Finds those that are there.
        events: Starts and ends as the kernel reports them; None where it does not.
        has_children: Whether what a member forks is a member, too.
        name: The name whose processes are members; None where they are chosen otherwise.
        are_started: Whether none of them ran before the watch began.
    """

    def __init__(
        self,
        choose: Chooser,
        events: KernelEvents | None,
        *,
        has_children: bool,
        name: str | None = None,
        are_started: bool = False,
    ) -> None:
        self._choose = choose
        self._events = events
        self._has_children = has_children
        self._name = name
        self._are_started = are_started
        self._next_choice = 0.0
        self._turn = 0
        self._last_number = 0
        self._ends: dict[int, _SeenEnd] = {}
        # What taskstats said in the last turn of processes whose events are read in this one.
        self._early_ends: list[TaskEnd] = []
        # By PID, how often the rest of the events of this turn says that its process has ended.
        self._coming_ends: Counter[int] = Counter()
        # Members whose fork may not have been read yet: events of their PIDs before it are those of earlier processes.
        self._unforked: set[int] = set()
        self._unnamed: dict[int, int | None] = {}
        self._gone: dict[int, int | None] = {}
        self.members: dict[int, RosterMember] = {}
        self.seen_count = 0

    def refresh(self, seconds: float, work_seconds: Callable[[], float]) -> Iterator[Came | Ended]:
        """Find out who came and who ended.

        Args:
            seconds: The time since the watch began.
            work_seconds: Returns our own processor time, by which the next look at all processes is set.
        """
        ms = round(seconds * 1000)
        self._turn += 1
        if self._events is not None:
            yield from self._on_events(self._events.read(), ms)
            yield from self._ended(ms)
        if seconds >= self._next_choice:
            began = work_seconds()
            try:
                chosen = self._choose()
            except (AccessError, UsageError):
                # None is there now.
                chosen = ()
            for pid in chosen:
                yield from self.add(pid, None, ms)
            self._next_choice = seconds + (work_seconds() - began) / _CHOICE_WORK

    def add(self, pid: int, parent_pid: int | None, ms: int, *, has_ended: bool = False) -> Iterator[Came | Ended]:
        """Add a process, unless it is a member; one that has ended by now is named at its end."""
        stat = read_stat(pid)
        if has_ended and stat is not None and not stat.has_only_other_threads:
            # A later process may have its PID by now.
            stat = None
        # One that is listed at its exit, or is gone by now, is what its events say.
        is_ended = stat is None or (stat.is_dead and not stat.has_only_other_threads)
        if pid == os.getpid() or (is_ended and parent_pid is None):
            return
        member = self.members.get(pid)
        if stat is not None and self._gone.get(pid) == stat.start_ticks:
            # It is at its exit: its end was seen.
            return
        if member is not None and (stat is None or member.start_ticks in {None, stat.start_ticks}):
            addrs = (member.stack_addr, 0 if stat is None else stat.stack_addr)
            if stat is not None and all(addrs) and len(set(addrs)) > 1 and pid not in self._unnamed:
                # The stack of each program is at another address: it has executed one.
                self.members[pid] = member._replace(stack_addr=stat.stack_addr)
                yield Came(ms, member.number, pid, stat.parent_pid, _command(pid, stat.name))
            return
        if member is not None:
            # Another process has its PID by now.
            yield from self._finish(pid, ms)
        if self._events is not None:
            self._unforked.add(pid)
        self._last_number += 1
        self.seen_count += 1
        if stat is None:
            self.members[pid] = RosterMember(self._last_number, pid, None, None, parent_pid)
            self._unnamed[pid] = parent_pid
        else:
            parent_pid = stat.parent_pid if parent_pid is None else parent_pid
            self.members[pid] = RosterMember(self._last_number, pid, stat.start_ticks, stat.stack_addr, parent_pid)
            is_older = self._turn == 1 and not self._are_started
            yield Came(ms, self._last_number, pid, parent_pid, _command(pid, stat.name), is_older)

    def end(
        self,
        pid: int,
        ms: int,
        peak_bytes: int | None,
        source: str,
        status: int | None,
        end: TaskEnd | None = None,
        *,
        file_bytes: int | None = None,
    ) -> Iterator[Came | Ended]:
        """Remove a member that has ended."""
        name, lived_ms = ("", None) if end is None else (end.name, end.lived_ms)
        member = self.members.pop(pid, None)
        if member is None:
            return
        self._gone[pid] = member.start_ticks
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]
        is_unnamed = pid in self._unnamed
        parent_pid = self._unnamed.pop(pid, None)
        if is_unnamed and (name or member.start_ticks is None):
            yield Came(max(0, ms - (lived_ms or 0)), member.number, pid, parent_pid, name or f"process {pid}")
        has_exited = status is not None and os.WIFEXITED(status)
        exit_code = os.WEXITSTATUS(status) if has_exited and status is not None else None
        yield Ended(ms, member.number, peak_bytes, source, exit_code, lived_ms, file_bytes)

    def lose(self, pid: int, peak_bytes: int | None, ms: int) -> Iterator[Came | Ended]:
        """Remove a member that is not there any more; events may say more about its end in the next turn.

        Args:
            pid: The process.
            peak_bytes: The most resident memory at the last look at it.
            ms: The time.
        """
        if self._events is None:
            yield from self.end(pid, ms, peak_bytes, "status", None)
        else:
            self._end_of(pid).peak_bytes = peak_bytes

    def _on_events(self, read: Iterable[_Event], ms: int) -> Iterator[Came | Ended]:
        """Follow the events of a turn, in which a PID may be that of several processes, most of them not members."""
        unread = list(read)
        events, unmatched = _with_task_ends(unread, self._early_ends)
        forked = {event.pid for event in events if isinstance(event, Forked)}
        self._unforked = {pid for pid in self._unforked & forked if self._stat_of(pid) is not None}
        self._coming_ends = Counter(e.pid for e in (*events, *unmatched) if isinstance(e, Exited | TaskEnd))
        for event in events:
            self._coming_ends[event.pid] -= isinstance(event, Exited | TaskEnd)
            if isinstance(event, Forked) or event.pid not in self._unforked:
                yield from self._on_event(event, ms)
                self._unforked.discard(event.pid)
        last_turn, self._early_ends = set(self._early_ends), []
        for end in unmatched:
            if end in last_turn or end.pid in self._ends:
                yield from self._on_task_end(end, ms)
            else:
                # Its process may be at its exit still, and its fork unread.
                self._early_ends.append(end)
        for event in unread:
            seen = self._ends.get(event.group_pid) if isinstance(event, TaskEnd) else None
            if isinstance(event, TaskEnd) and seen is not None and seen.end is not None:
                peak_bytes = max(seen.end.peak_resident_bytes, event.peak_resident_bytes)
                seen.end = seen.end._replace(peak_resident_bytes=peak_bytes)

    def _on_event(self, event: _Event, ms: int) -> Iterator[Came | Ended]:
        match event:
            case Forked(parent_pid, pid):
                before = self._ends.get(pid)
                if before is not None and before.status is not None:
                    # Its PID is given again.
                    yield from self._finish(pid, ms)
                if self._has_children and parent_pid in self.members and parent_pid not in self._unforked:
                    yield from self.add(pid, parent_pid, ms, has_ended=self._coming_ends[pid] > 0)
            case Executed(pid):
                yield from self._on_execution(pid, ms)
            case Exited(pid, status):
                if pid in self.members:
                    self._end_of(pid).status = status
            case TaskEnd():
                yield from self._on_task_end(event, ms)

    def _on_execution(self, pid: int, ms: int) -> Iterator[Came | Ended]:
        member = self.members.get(pid)
        # A later process may have its PID by now.
        is_there = (member is not None or self._name is not None) and not self._coming_ends[pid]
        stat = read_stat(pid) if is_there else None
        if stat is None:
            if member is not None:
                # It was seen as a copy of its parent, and has ended: its end has the name of its last program.
                self._unnamed.setdefault(pid, member.parent_pid)
            return
        # What has ended was its main thread, if any.
        self._ends.pop(pid, None)
        if member is not None and pid not in self._unnamed:
            self.members[pid] = member._replace(stack_addr=stat.stack_addr)
            yield Came(ms, member.number, pid, stat.parent_pid, _command(pid, stat.name))
        elif member is None and stat.name == os.fsencode(self._name or ""):
            yield from self.add(pid, stat.parent_pid, ms)

    def _on_task_end(self, end: TaskEnd, ms: int) -> Iterator[Came | Ended]:
        if end.pid in self.members and self._goes_on(end.pid):
            seen = self._end_of(end.pid)
            seen.end, seen.ms = end, ms
        elif end.pid in self.members:
            yield from self._finish(end.pid, ms, end)
        elif self._name is not None and end.name == self._name:
            stat = read_stat(end.pid)
            if stat is not None and stat.has_only_other_threads:
                return
            # It came and ended between two looks.
            self._last_number += 1
            self.seen_count += 1
            yield Came(max(0, ms - end.lived_ms), self._last_number, end.pid, end.parent_pid, end.name)
            yield Ended(ms, self._last_number, end.peak_resident_bytes, "taskstats", None, end.lived_ms)

    def _stat_of(self, pid: int) -> Stat | None:
        """Read the stat line of a member; return None where it is gone, and a later process may have its PID."""
        member, stat = self.members.get(pid), read_stat(pid)
        is_there = member is not None and stat is not None and member.start_ticks in {None, stat.start_ticks}
        return stat if is_there else None

    def _goes_on(self, pid: int) -> bool:
        """Return whether a member is there whose main thread has ended: by pthread_exit, or another thread's exec."""
        stat = self._stat_of(pid)
        if stat is None or stat.is_dead:
            return stat is not None and stat.has_only_other_threads
        return self.members[pid].start_ticks is not None

    def _end_of(self, pid: int) -> _SeenEnd:
        end = self._ends.get(pid)
        if end is None:
            end = self._ends[pid] = _SeenEnd()
            end.turn = self._turn
        return end

    def _ended(self, ms: int) -> Iterator[Came | Ended]:
        """Remove those that have ended; what taskstats says of them may come a turn later."""
        for pid, seen in list(self._ends.items()):
            if seen.turn != self._turn and not self._goes_on(pid):
                yield from self._finish(pid, ms)

    def _finish(self, pid: int, ms: int, end: TaskEnd | None = None) -> Iterator[Came | Ended]:
        """Remove a member with all that was said of its end."""
        seen = self._ends.pop(pid, _SeenEnd())
        if end is None and seen.end is not None:
            end = seen.end._replace(lived_ms=seen.end.lived_ms + ms - seen.ms)
        if end is None:
            yield from self.end(pid, ms, seen.peak_bytes, "status", seen.status)
        else:
            yield from self.end(pid, ms, end.peak_resident_bytes, "taskstats", end.status, end)


def _with_task_ends(unread: Sequence[_Event], early: Sequence[TaskEnd]) -> tuple[list[_Event], list[TaskEnd]]:
    """Put what taskstats says of processes behind the events of their ends: a PID may be given several times in a turn.

    The kernel reports to taskstats first. Its reports are read last, so that some may be there without the event. A
    program that another thread than the main one executes gets the PID: the end of the main thread is left out then.

    Args:
        unread: The events as they were read.
        early: The reports of the last turn whose events are still to come.

    Returns:
        The events in their order, and the reports whose events are still to come.

    Source: execve(2), "Effect on process attributes".
    """
    reports: dict[int, list[TaskEnd]] = {}
    for event in (*early, *unread):
        # A thread that has ended is not its process.
        if isinstance(event, TaskEnd) and event.group_pid in {0, event.pid}:
            reports.setdefault(event.pid, []).append(event)
    events: list[_Event] = []
    last_ends: dict[int, tuple[_Event, ...]] = {}
    of_main_threads: set[int] = set()
    for event in unread:
        if isinstance(event, Exited):
            waiting = reports.get(event.pid, [])
            last_ends[event.pid] = (event, *waiting[:1])
            del waiting[:1]
            events += last_ends[event.pid]
        elif not isinstance(event, TaskEnd):
            ends = last_ends.pop(event.pid, ())
            if isinstance(event, Executed):
                of_main_threads.update(map(id, ends))
            events.append(event)
    events = [event for event in events if id(event) not in of_main_threads]
    return events, [report for left in reports.values() for report in left]


def _command(pid: int, name: bytes) -> str:
    """Read the command line of a process; its name where it has none."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        words = command_line(file.read())
        if words:
            return words
    return name.decode("utf-8", "surrogateescape")
