"""The peak of a program and its descendants, by counters that are read often while it runs.

A memory cgroup has a counter of its own for the peak: nothing is missed, however short. Where no group can be made, the
kernel's peak of each process (VmHWM) is read while it lives.
"""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.command_line import command_line
from footprint.errors import AccessError
from footprint.model.evidence import Evidence
from footprint.model.peak import Peak, PeakHolder
from footprint.process.launch.memory import counted_sizes

if TYPE_CHECKING:
    from footprint.process.cgroup import MemoryGroup

__all__ = ("PeakWatch",)

_LOOK_SECONDS: Final = 0.002
# Looking takes at most this part of a processor.
_WORK_SHARE: Final = 1 / 16
# A peak counts as reached where they hold this part of it and take no more.
_NEAR: Final = 0.97
# A process holds much of it from this part on.
_LARGE: Final = 0.02
_MOST_PROCESSES: Final = 10_000
_MOST_HOLDERS: Final = 20


class _Seen(NamedTuple):
    """A process at the last look at it: its command, the peak and the current size of its resident memory."""

    command: str
    peak_bytes: int
    resident_bytes: int
    held_bytes: int
    look: int


class PeakWatch:
    """Looks at a program and its descendants, and keeps the moment at which they held most.

    Args:
        group: An empty memory cgroup for them; None where none can be made.
        hold_bytes: What they may hold at most: the kernel holds them there until `let_go`. None for any amount.
    """

    def __init__(self, group: "MemoryGroup | None", hold_bytes: int | None = None) -> None:
        self._group = group
        self._hold_bytes = hold_bytes
        self._root = 0
        self._started_at = time.monotonic()
        self._next_look = 0.0
        self._look_count = 0
        self._seen: dict[int, _Seen] = {}
        self._counter_bytes = 0
        self._peak = Peak(0, Evidence.MEASURED, "", 0, 0.0, (), 0)
        self._is_rising = True
        self.now_bytes = 0
        # What the new process holds as a copy of us counts in its ru_maxrss.
        self._inherited_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def begin(self, pid: int, *, adopter: int | None) -> None:
        """Watch a process that is about to execute the program; its orphans become children of the adopter."""
        self._root = pid if adopter is None else adopter
        self._started_at = time.monotonic()
        if self._group is not None:
            try:
                self._group.enter(pid)
                self._group.read_peak()
                if self._hold_bytes is not None:
                    self._group.hold_at(self._hold_bytes)
            except (AccessError, OSError):
                self._group = None

    @property
    def seconds_to_look(self) -> float:
        """Return how long to wait for the next look."""
        return max(0.0, self._next_look - time.monotonic())

    def has_reached(self, peak_bytes: int) -> bool:
        """Return whether they hold so much, or nearly so much and no longer take more."""
        if self._hold_bytes is not None and self._group is not None:
            with suppress(OSError):
                return self._group.holds()
        return self.now_bytes >= (peak_bytes if self._is_rising else peak_bytes * _NEAR)

    def let_go(self) -> None:
        """Hold them no longer; from now on looks find the peak."""
        if self._hold_bytes is not None and self._group is not None:
            self._hold_bytes = None
            with suppress(OSError):
                self._group.hold_at(None)

    def largest(self) -> list[int]:
        """Find the processes that hold most of it, the largest first."""
        found = [(seen.resident_bytes, pid) for pid, seen in self._seen.items() if seen.look == self._look_count]
        return [pid for held_bytes, pid in sorted(found, reverse=True) if held_bytes > self.now_bytes * _LARGE]

    def pids(self) -> list[int]:
        """Find the program and its descendants that are alive."""
        if self._group is not None:
            with suppress(OSError):
                return self._group.pids()[:_MOST_PROCESSES]
        return [pid for pid in _descendants(self._root) if pid != os.getpid()][:_MOST_PROCESSES]

    def look(self, *, is_forced: bool = False) -> None:
        """Read the counters, but not too often."""
        began = time.monotonic()
        if began < self._next_look and not is_forced:
            return
        self._look_count += 1
        before_bytes = self.now_bytes
        if self._group is not None:
            self._look_at_group(began)
        else:
            self._look_at_processes(began)
        self._is_rising = self.now_bytes > before_bytes
        self._next_look = began + max(_LOOK_SECONDS, (time.monotonic() - began) / _WORK_SHARE)

    def see(self, pid: int) -> int:
        """Read a process, also one that is stopped at its exit, and return what it held since the last look."""
        sizes = counted_sizes(pid, "status")
        peak_bytes, resident_bytes = sizes.get(b"VmHWM", 0), sizes.get(b"VmRSS", 0)
        if not peak_bytes:
            return 0
        before = self._seen.get(pid)
        is_same = before is not None and peak_bytes == before.peak_bytes
        # Execution of a program resets the peak, and changes the command.
        command = before.command if before is not None and is_same else _command(pid)
        held_bytes = resident_bytes if is_same else peak_bytes
        self._seen[pid] = _Seen(command, peak_bytes, resident_bytes, held_bytes, self._look_count)
        if self._group is None and held_bytes > self._peak.peak_bytes:
            self._keep(held_bytes, Evidence.MEASURED, "VmHWM", 0, time.monotonic())
        return held_bytes

    def _look_at_group(self, now: float) -> None:
        group = self._group
        if group is None:
            return
        usage = group.read_peak()
        most_bytes = usage.most_bytes_since(self._counter_bytes)
        self._counter_bytes = usage.peak_bytes
        self.now_bytes = max(0, usage.total_bytes - usage.page_cache_bytes)
        for pid in self.pids():
            self.see(pid)
        if most_bytes > self._peak.peak_bytes:
            evidence = Evidence.DERIVED if usage.page_cache_bytes else Evidence.MEASURED
            self._keep(most_bytes, evidence, group.peak_file, usage.page_cache_bytes, now)

    def _look_at_processes(self, now: float) -> None:
        pids = self.pids()
        held_bytes = sum(map(self.see, pids))
        self.now_bytes = sum(self._seen[pid].resident_bytes for pid in pids if pid in self._seen)
        if held_bytes > self._peak.peak_bytes:
            is_one = len(pids) == 1
            evidence = Evidence.MEASURED if is_one else Evidence.ESTIMATED
            self._keep(held_bytes, evidence, "VmHWM" if is_one else "VmRSS", 0, now)

    def _keep(self, peak_bytes: int, evidence: Evidence, source: str, cache_bytes: int, now: float) -> None:
        alive = [(pid, seen) for pid, seen in self._seen.items() if seen.look >= self._look_count - 1]
        alive.sort(key=lambda each: -each[1].held_bytes)
        holders = tuple(PeakHolder(pid, seen.command, seen.held_bytes) for pid, seen in alive[:_MOST_HOLDERS])
        seconds = max(0.0, now - self._started_at)
        self._peak = Peak(peak_bytes, evidence, source, cache_bytes, seconds, holders, 0)

    def result(self, most_resident_bytes: int = 0) -> Peak:
        """Return the peak so far.

        Args:
            most_resident_bytes: The largest resident memory of any process that was waited for (ru_maxrss).
        """
        peak = self._peak._replace(process_count=len(self._seen))
        seen_bytes = max((seen.peak_bytes for seen in self._seen.values()), default=0)
        if self._group is not None or most_resident_bytes <= max(self._inherited_bytes, seen_bytes, peak.peak_bytes):
            return peak
        # A process ended before anyone could look at it, and held more than all others.
        return peak._replace(
            peak_bytes=most_resident_bytes, evidence=Evidence.ESTIMATED, source="ru_maxrss", holders=()
        )


def _descendants(root: int) -> Iterator[int]:
    """Find a process and its descendants."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    waiting.extend(map(int, file.read().split()))


def _command(pid: int) -> str:
    """Read the command line of a process, or its name."""
    for name in ("cmdline", "comm"):
        with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            words = command_line(file.read())
            if words:
                return words
    return f"process {pid}"
