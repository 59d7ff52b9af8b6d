"""A program that is started to be watched, with all that it starts."""

import os
import resource
import shlex
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

from footprint.errors import AccessError, Note
from footprint.process.counters import parse_counters
from footprint.process.launch import group_with_limits, watch_program
from footprint.process.status import parse_status, read_stat
from footprint.series.records import GroupPeak
from footprint.series.timeline import Timeline
from footprint.text.command_line import shown_words
from footprint.verbs.watch.audits import AuditMoment, Audits
from footprint.verbs.watch.roster import Roster
from footprint.verbs.watch.session import Session, WatchOptions

if TYPE_CHECKING:
    from footprint.process.cgroup import MemoryGroup


_LONGEST_SECONDS: Final = 1e7
_LOOK_SECONDS: Final = 0.01
# Looking between two ticks takes at most this part of a processor.
_LOOK_SHARE: Final = 0.01
_TURN_SECONDS: Final = 0.1
# Between two ticks a peak matters from this size on.
_STEP_BYTES: Final = 4 << 20
_STEP_SHARE: Final = 0.1
_LONGEST_RISE_SECONDS: Final = 0.2
# Before that it loads its libraries.
_START_SECONDS: Final = 0.1


def watch_command(command: tuple[str, ...], options: WatchOptions, session: Session) -> Timeline:
    """Start a program, and watch it to its end; what it leaves behind is ended.

    Raises:
        AccessError: If it cannot be started.
    """
    name = shlex.join(shown_words(command))
    with ExitStack() as opened:
        onlooker = _CommandWatch(name, session, group_with_limits(opened))
        ending = watch_program(
            command,
            onlooker,
            onlooker.read_at_end,
            most_seconds=_LONGEST_SECONDS if options.most_seconds is None else options.most_seconds,
            follows=session.events is None,
        )
        watcher = onlooker.watcher
        for note in ending.notes:
            if note.slug != "freed-before-exit":
                watcher.tell(note, watcher.timeline.ms)
        if ending.signal is not None or ending.exit_code:
            how = ending.signal or f"exit code {ending.exit_code}"
            watcher.tell(Note("command-failed", command[0], f"it ended with {how}"), watcher.timeline.ms)
        onlooker.look_last()
        how = "events" if session.events is not None else "ptrace"
        return session.close(watcher, onlooker.roster.seen_count, how)


class _CommandWatch:
    """Looks at a program between its events: ticks, and quick looks at the peak of its cgroup.

    Args:
        name: The command.
        session: The watch.
        group: An empty memory cgroup for it; None where none can be made.
    """

    def __init__(self, name: str, session: Session, group: "MemoryGroup | None") -> None:
        self._session = session
        self._group = group
        self._root = 0
        self._adopter: int | None = None
        self._next_tick = 0.0
        self._next_look = 0.0
        self._next_turn = 0.0
        self._counter_bytes = 0
        self._most_bytes = 0
        self._before_bytes = 0
        self._rises_since = 0.0
        self._is_over = False
        self.roster = Roster(self._pids, session.events, has_children=True, are_started=True)
        self.watcher = session.start(name, self.roster, Audits(name, is_one=False, stops_at_peak=True), _START_SECONDS)

    def begin(self, pid: int, *, adopter: int | None) -> None:
        """Put the program into the cgroup, before it executes anything."""
        # What has happened by now is of processes that had its PID before.
        self.watcher.refresh(self._session.seconds)
        self._root, self._adopter = pid, adopter
        # It has the limits that it would have by itself.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, self._session.own_file_limits)
        if self._session.events is not None:
            # What it forks before the first tick is a member, too.
            for record in self.roster.add(pid, os.getpid(), 0):
                self.watcher.add_unstarted(record)
        if self._group is not None:
            try:
                self._group.enter(pid)
                self._group.read_peak()
            except (AccessError, OSError):
                self._group = None

    @property
    def seconds_to_look(self) -> float:
        """Return how long to wait for the next look."""
        return max(0.0, min(self._next_tick, self._next_look, self._next_turn) - self._session.seconds)

    def look(self, *, is_forced: bool = False) -> None:
        """Tick where it is time for that, and see whether they hold much more than in any audit.

        Raises:
            KeyboardInterrupt: If a signal has asked for the end.
        """
        if self._session.is_over:
            raise KeyboardInterrupt
        now = self._session.seconds
        if now >= self._next_tick or is_forced:
            self._is_over = is_forced
            self._session.tick(self.watcher, is_last=is_forced)
            self._see_peak()
            self._next_tick = max(self._next_tick + self.watcher.every_seconds, self._session.seconds)
        if now >= self._next_turn:
            self._session.turn(self.watcher)
            self._next_turn = now + _TURN_SECONDS
        if self._session.seconds >= self._next_look:
            self._look_at_peak()

    def _look_at_peak(self) -> None:
        """Tick at once where they hold clearly more than at the last such tick: the tick decides on an audit.

        While they take more from look to look, the peak is still to come: it waits for that, but not for long.
        """
        if self._group is None:
            self._next_look = _LONGEST_SECONDS
            return
        began = time.thread_time()
        held_bytes = 0
        with suppress(OSError, ValueError):
            held_bytes = self._group.read_total()
        cost = time.thread_time() - began
        self._next_look = self._session.seconds + max(_LOOK_SECONDS, cost / _LOOK_SHARE)
        is_rising = held_bytes > 1.01 * self._before_bytes
        self._before_bytes = held_bytes
        if held_bytes <= self._most_bytes + max(_STEP_BYTES, _STEP_SHARE * self._most_bytes):
            self._rises_since = self._session.seconds
        elif not is_rising or self._session.seconds > self._rises_since + _LONGEST_RISE_SECONDS:
            self._most_bytes = held_bytes
            self._session.tick(self.watcher)

    def _see_peak(self) -> None:
        """Read the peak of the cgroup."""
        if self._group is not None:
            with suppress(OSError, ValueError):
                usage = self._group.read_peak()
                peak_bytes = usage.most_bytes_since(self._counter_bytes)
                self._counter_bytes = usage.peak_bytes
                ms = round(self._session.seconds * 1000)
                self.watcher.see_group(GroupPeak(ms, peak_bytes, self._group.peak_file))

    def see(self, pid: int) -> None:
        """Keep the peak of a descendant that is stopped at its exit."""
        ms = round(self._session.seconds * 1000)
        with suppress(OSError):
            with open(f"/proc/{pid}/status", "rb") as file:
                text = file.read()
            counters = parse_counters(text)
            if counters is None or f"\nTgid:\t{pid}\n".encode() not in text or _has_live_threads(pid):
                return
            for record in self.roster.add(pid, parse_status(text).parent_pid, ms):
                self.watcher.on_member(record)
            peak_bytes, file_bytes = counters.peak_resident_bytes, counters.file_bytes
            for ended in self.roster.end(pid, ms, peak_bytes, "exit stop", None, file_bytes=file_bytes):
                self.watcher.on_member(ended)

    def read_at_end(self) -> None:
        """Make the audit of the end, while the memory of the program is still there."""
        if not self._is_over:
            self._session.tick(self.watcher, is_last=True)
        if self.watcher.pids:
            self.watcher.audit(AuditMoment.END, self._session.seconds)

    def look_last(self) -> None:
        """See what has ended, and how; what events say of it may come a turn later."""
        self._see_peak()
        for _ in range(2):
            self._session.tick(self.watcher, is_last=True)

    def has_reached(self, peak_bytes: int) -> bool:
        """Return False: it is watched to its end, whatever it holds."""
        return peak_bytes < 0

    @property
    def is_at_brink(self) -> bool:
        """A watched program is never stopped before a limit."""
        return False

    def killed_at(self) -> None:
        """Return None: its signal is told."""

    def largest(self) -> list[int]:
        """Return nothing: none is held."""
        return []

    def let_go(self) -> None:
        """Do nothing: none is held."""

    def _pids(self) -> list[int]:
        """Find the processes of the program that are there."""
        if self._group is not None:
            with suppress(OSError):
                return self._group.pids()
        if not self._root:
            return []
        from footprint.process.status import descendants  # noqa: PLC0415 # only where there is no cgroup

        with suppress(AccessError):
            return [pid for pid in descendants(self._adopter or self._root) if pid != os.getpid()]
        return []


def _has_live_threads(pid: int) -> bool:
    """Return whether threads go on where the main thread is at its exit: by pthread_exit, or another one's exec."""
    threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    stats = [read_stat(pid, thread) for thread in threads if thread != pid]
    return any(stat is not None and not stat.is_dead and not stat.is_killed for stat in stats)
