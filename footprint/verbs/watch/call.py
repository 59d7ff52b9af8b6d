"""`footprint.watch`: processes over time, and `footprint.replay`: a watch that was kept in a file."""

import os
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from footprint.errors import AccessError, UsageError
from footprint.process.cgroup import MemoryGroup
from footprint.process.control_groups import ControlGroup
from footprint.process.status import read_stat
from footprint.series.file import read_series
from footprint.series.records import GroupPeak
from footprint.series.timeline import Timeline
from footprint.sources.target import NO_CHOICE, Named, ProcessChoice, resolve_processes
from footprint.system.files import StrPath, open_input
from footprint.system.limits import untimed
from footprint.verbs.watch.audits import AuditMoment, Audits
from footprint.verbs.watch.roster import Chooser, Roster
from footprint.verbs.watch.session import KEPT_BYTES, Session, WatchOptions
from footprint.verbs.watch.watcher import Watcher

_LEAST_SECONDS: Final = 0.01
_MOST_SECONDS: Final = 1e7


def watch(  # noqa: PLR0913 # keyword-only
    targets: Sequence[Named] = (),
    *,
    command: Sequence[str] = (),
    tree: int | None = None,
    name: str | None = None,
    cgroup: str | None = None,
    unit: str | None = None,
    container: str | None = None,
    every_seconds: float = 1.0,
    most_seconds: float | None = None,
    series: StrPath | None = None,
    kept_bytes: int = KEPT_BYTES,
) -> Timeline:
    """Watch processes over time: what they cost, their peak, and what grows.

    Args:
        targets: PIDs.
        command: A program with its arguments, which is started, and watched with all that it starts, to its end.
        tree: A process that is watched with all its descendants.
        name: A name; all processes that have it are watched.
        cgroup: The path of a control group; all processes in it and below it are watched.
        unit: A unit of systemd; all its processes are watched.
        container: The ID of a container; all its processes are watched.
        every_seconds: The time between two ticks.
        most_seconds: How long to watch; None until all processes have ended, or an interrupt.
        series: A file that keeps what is seen.
        kept_bytes: What that file may take.

    Raises:
        AccessError: If no process is there, the command cannot be started, or the file cannot be made.
        UsageError: If nothing is named, or the times make no sense.
    """
    choice = ProcessChoice(tree, name, cgroup, unit, container)
    path = None if series is None else os.fspath(series)
    return watched(targets, choice, tuple(command), WatchOptions(every_seconds, most_seconds, path, kept_bytes))


def replay(series: StrPath) -> Timeline:
    """Read a series that a watch has kept.

    Raises:
        AccessError: If it cannot be opened.
        InputError: If it is no series, or damaged.
    """
    name = os.fspath(series)
    return Timeline.of(read_series(open_input(name), name), name)


def watched(
    targets: Sequence[Named], choice: ProcessChoice, command: tuple[str, ...], options: WatchOptions
) -> Timeline:
    """Watch what was named, as `watch` does."""
    _check(targets, choice, command, options)
    with untimed(), ExitStack() as opened:
        if command:
            from footprint.verbs.watch.own_command import watch_command  # noqa: PLC0415 # ptrace, cgroups

            return watch_command(command, options, Session(options, opened, has_starts=True))
        return _watch_processes(targets, choice, options, Session(options, opened, has_starts=choice != NO_CHOICE))


def _check(targets: Sequence[Named], choice: ProcessChoice, command: Sequence[str], options: WatchOptions) -> None:
    """Check that one thing is named, and that the times make sense.

    Raises:
        UsageError: If not.
    """
    if bool(command) + (bool(targets) or choice != NO_CHOICE) != 1:
        raise UsageError("name what to watch: PIDs, --tree and the like, or a program after --")
    if not _LEAST_SECONDS <= options.every_seconds <= _MOST_SECONDS:
        raise UsageError(f"{options.every_seconds:g} s is no time between two ticks: it is 10 ms or more")
    if options.most_seconds is not None and not 0 < options.most_seconds <= _MOST_SECONDS:
        raise UsageError(f"{options.most_seconds:g} s is no time to watch for")


# --- processes that run already ---------------------------------------------------------------------------------------


def _watch_processes(
    targets: Sequence[Named], choice: ProcessChoice, options: WatchOptions, session: Session
) -> Timeline:
    """Watch processes that run already."""
    chosen = resolve_processes(targets, choice)
    if targets and all(read_stat(pid) is None for pid in chosen.pids):
        raise AccessError(f"pid {chosen.pids[0]}", "no such process")
    is_one = len(targets) == 1 and choice == NO_CHOICE
    roster = Roster(
        _chooser(targets, choice),
        session.events,
        has_children=choice[:1] != (None,) or choice[2:] != (None, None, None),
        name=choice.name,
    )
    audits = Audits(chosen.name, is_one=is_one)
    watcher = session.start(chosen.name, roster, audits)
    group = None if chosen.control_group is None else _GroupCounter(chosen.control_group)
    next_tick = 0.0
    has_end = choice.name is None
    try:
        while not session.is_over:
            seconds = session.seconds
            if options.most_seconds is not None and seconds >= options.most_seconds:
                break
            if seconds >= next_tick:
                if group is not None:
                    group.see(watcher, seconds)
                session.tick(watcher)
                next_tick = max(next_tick + watcher.every_seconds, session.seconds)
                if has_end and not watcher.pids:
                    break
            session.turn(watcher)
            due = next_tick if options.most_seconds is None else min(next_tick, options.most_seconds)
            time.sleep(max(0.0, min(session.turn_seconds, due - session.seconds)))
    except KeyboardInterrupt:
        pass
    session.tick(watcher, is_last=True)
    if watcher.pids:
        watcher.audit(AuditMoment.END, session.seconds)
    if not session.has_starts:
        return session.close(watcher, 0, "named")
    return session.close(watcher, roster.seen_count, "events" if session.events is not None else "polling")


def _chooser(targets: Sequence[Named], choice: ProcessChoice) -> Chooser:
    """Return what finds the processes that are there; a later process with the PID of a named one is none of them."""
    stats = {int(str(pid)): read_stat(int(str(pid))) for pid in (*targets, choice.tree) if pid is not None}
    starts = {pid: stat.start_ticks for pid, stat in stats.items() if stat is not None}

    def choose() -> Collection[int]:
        left = {pid for pid, ticks in starts.items() if (stat := read_stat(pid)) and stat.start_ticks == ticks}
        tree = choice.tree if choice.tree in left else None
        return resolve_processes([pid for pid in starts if pid in left], choice._replace(tree=tree)).pids

    return choose


class _GroupCounter:
    """The peak that the kernel counts for a control group.

    Args:
        group: The group.
    """

    def __init__(self, group: ControlGroup) -> None:
        self._group = None if group.memory is None else MemoryGroup(group.memory[0], group.version)
        self._before_bytes: int | None = None

    def see(self, watcher: Watcher, seconds: float) -> None:
        """Add a peak that was reached since the last tick: one before the watch is none of its own."""
        if self._group is None:
            return
        with suppress(OSError, ValueError):
            usage = self._group.read_peak()
            if self._before_bytes is not None and usage.peak_bytes > self._before_bytes:
                peak_bytes = usage.most_bytes_since(self._before_bytes)
                watcher.see_group(GroupPeak(round(seconds * 1000), peak_bytes, self._group.peak_file))
            self._before_bytes = usage.peak_bytes
