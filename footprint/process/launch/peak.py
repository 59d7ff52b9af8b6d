"""The peak of a program and its descendants, by counters that are read often while it runs.

A memory cgroup has a counter of its own for the peak: nothing is missed, however short. Where no group can be made, the
kernel's peak of each process (VmHWM) is read while it lives; pages of files are taken off.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import AccessError
from footprint.model.over_time import Peak, PeakHolder
from footprint.model.row import Evidence
from footprint.process.launch.moment import counted_sizes
from footprint.text.command_line import command_line

if TYPE_CHECKING:
    from footprint.process.cgroup import MemoryGroup, Room


_LOOK_SECONDS: Final = 0.002
# Looking takes at most this part of a processor, for which it may have to wait.
_WORK_SHARE: Final = 1 / 16
# A peak counts as reached where they hold this part of it and take no more.
_NEAR: Final = 0.97
# The part of a limit at which they are read, so that their owners are known if the kernel kills them at the limit. The
# kernel holds them a little above: they may fill the rest quicker than anyone can look.
_BRINK: Final = 0.9
_HELD_AT: Final = 0.95
# A process holds much of it from this part on.
_LARGE: Final = 0.02
_MOST_PROCESSES: Final = 10_000
_MOST_HOLDERS: Final = 20


class _Sighting(NamedTuple):
    """A process at the last look at it: its command, the peak and the current size of its resident memory.

    `held_bytes` is the most that was resident since the look before, of which `file_bytes` are pages of files.
    """

    command: str
    peak_bytes: int
    resident_bytes: int
    held_bytes: int
    file_bytes: int
    look: int


class PeakWatch:
    """Looks at a program and its descendants, and keeps the moment at which they held most.

    Args:
        group: An empty memory cgroup for them; None where none can be made.
        hold_bytes: What they may hold at most: the kernel holds them there until `let_go`. None for any amount.
        room: The limit that holds for them, if any.
    """

    def __init__(self, group: "MemoryGroup | None", hold_bytes: int | None = None, room: "Room | None" = None) -> None:
        self._group = group
        # Whoever takes them near a peak does not wait for the limit.
        self._room = room if hold_bytes is None else None
        self._hold_bytes = int(_HELD_AT * self._room.size_bytes) if self._room is not None else hold_bytes
        self._limit = "no limit of a control group" if room is None else room.limit
        self._kill_count = 0
        self._is_killed = False
        self._root = 0
        self._started_at = time.monotonic()
        self._next_look = 0.0
        self._look_count = 0
        self._seen: dict[int, _Sighting] = {}
        self._counter_bytes = 0
        self._peak = Peak(0, Evidence.MEASURED, "", 0, 0.0, (), 0)
        self._is_rising = True
        self.now_bytes = 0
        # What the new process holds as a copy of us counts in its ru_maxrss.
        self._inherited_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def begin(self, pid: int, *, adopter: int | None) -> None:
        """Watch a process that is about to execute the program; its orphans become children of the adopter."""
        from footprint.process.cgroup import read_oom_kill_count  # noqa: PLC0415 # only a peak needs it

        self._root = pid if adopter is None else adopter
        self._kill_count = read_oom_kill_count(self._group)
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
        if self._hold_bytes is not None and self._room is None and self._group is not None:
            with suppress(OSError):
                return self._group.holds()
        return self.now_bytes >= (peak_bytes if self._is_rising else peak_bytes * _NEAR)

    @property
    def is_at_brink(self) -> bool:
        """Whether they hold nearly all that a limit allows, until `let_go`."""
        if self._room is None:
            return False
        if self._group is not None:
            return self.now_bytes >= _BRINK * self._room.size_bytes
        # footprint itself holds a part of it, which grows.
        from footprint.process.cgroup import read_room  # noqa: PLC0415 # only a peak needs it

        room = read_room(None)
        return room is not None and room.size_bytes <= (1 - _BRINK) * room.limit_bytes

    def killed_at(self) -> str | None:
        """Return the limit at which the kernel has killed one of them for want of memory; None if it has not."""
        from footprint.process.cgroup import read_oom_kill_count  # noqa: PLC0415 # only a peak needs it

        if not self._is_killed:
            self._is_killed = self._root != 0 and read_oom_kill_count(self._group) > self._kill_count
        return self._limit if self._is_killed else None

    def let_go(self) -> None:
        """Hold them no longer; from now on looks find the peak."""
        self._room = None
        if self._hold_bytes is not None and self._group is not None:
            self._hold_bytes = None
            with suppress(OSError):
                self._group.hold_at(None)

    def largest(self) -> list[int]:
        """Find the processes that hold most of it, the largest first."""
        by_size = [(seen.resident_bytes, pid) for pid, seen in self._seen.items() if seen.look == self._look_count]
        return [pid for held_bytes, pid in sorted(by_size, reverse=True) if held_bytes > self.now_bytes * _LARGE]

    def pids(self) -> list[int]:
        """Find the program and its descendants that are alive."""
        if self._group is not None:
            with suppress(OSError):
                return self._group.pids()[:_MOST_PROCESSES]
        return [pid for pid in _descendants(self._root) if pid != os.getpid()][:_MOST_PROCESSES]

    def look(self, *, is_forced: bool = False) -> None:
        """Read the counters, but not too often."""
        began, work_start = time.monotonic(), time.thread_time()
        if began < self._next_look and not is_forced:
            return
        self._look_count += 1
        before_bytes = self.now_bytes
        if self._group is not None:
            self._look_at_group(self._group, began)
        else:
            self._look_at_processes(began, self._see_stopped if is_forced else self.see)
        self._is_rising = self.now_bytes > before_bytes
        self._next_look = began + max(_LOOK_SECONDS, (time.thread_time() - work_start) / _WORK_SHARE)

    def see(self, pid: int) -> int:
        """Read a process, also one that is stopped at its exit, and return what it held since the last look."""
        held_bytes, file_bytes = self._read(pid)
        if self._group is None and held_bytes - file_bytes > self._peak.peak_bytes:
            self._keep(held_bytes - file_bytes, Evidence.DERIVED, "VmHWM", file_bytes, time.monotonic())
        return held_bytes - file_bytes

    def _read(self, pid: int, *, is_stopped: bool = False) -> tuple[int, int]:
        """Return what a process held since the last look, and the part of it that is pages of files."""
        sizes = counted_sizes(pid, "status")
        peak_bytes, resident_bytes = sizes.get(b"VmHWM", 0), sizes.get(b"VmRSS", 0)
        if not peak_bytes:
            return 0, 0
        before = self._seen.get(pid)
        if not resident_bytes:
            # The kernel has taken the memory of what ended: VmHWM remains, and what of it were pages of files does not.
            if before is not None:
                self._seen[pid] = before._replace(look=self._look_count)
            return 0, 0
        is_same = before is not None and peak_bytes == before.peak_bytes
        # Execution of a program resets the peak, and changes the command.
        command = before.command if before is not None and is_same else _command(pid)
        file_bytes = sizes.get(b"RssFile", 0)
        exact = counted_sizes(pid, "smaps_rollup") if is_stopped else {}
        if b"Anonymous" in exact:
            # The counters may lack 64 pages a thread; what stands still is added up from its mappings.
            private_bytes = exact[b"Anonymous"] + sizes.get(b"RssShmem", 0)
            resident_bytes = exact.get(b"Rss", private_bytes)
            file_bytes = max(0, resident_bytes - private_bytes)
        held_bytes = resident_bytes if is_same else max(peak_bytes, resident_bytes)
        gone_bytes = max(0, held_bytes - resident_bytes)
        # What was resident and is not may be pages of files, such as the cache of the loader: as much as there are now.
        file_bytes = min(held_bytes, file_bytes + (gone_bytes if gone_bytes <= file_bytes else 0))
        self._seen[pid] = _Sighting(command, peak_bytes, resident_bytes, held_bytes, file_bytes, self._look_count)
        return held_bytes, file_bytes

    def _see_stopped(self, pid: int) -> int:
        """Read a process that stands still, and return what it held since the last look."""
        held_bytes, file_bytes = self._read(pid, is_stopped=True)
        return held_bytes - file_bytes

    def _look_at_group(self, group: "MemoryGroup", now: float) -> None:
        usage = group.read_peak()
        most_bytes = usage.most_bytes_since(self._counter_bytes)
        self._counter_bytes = usage.peak_bytes
        self.now_bytes = max(0, usage.total_bytes - usage.page_cache_bytes)
        for pid in self.pids():
            self.see(pid)
        if most_bytes > self._peak.peak_bytes:
            evidence = Evidence.DERIVED if usage.page_cache_bytes else Evidence.MEASURED
            self._keep(most_bytes, evidence, group.peak_file, usage.page_cache_bytes, now)

    def _look_at_processes(self, began: float, see: Callable[[int], int]) -> None:
        pids = self.pids()
        held_bytes = sum(map(see, pids))
        now = [self._seen[pid] for pid in pids if pid in self._seen]
        self.now_bytes = sum(max(0, seen.resident_bytes - seen.file_bytes) for seen in now)
        if held_bytes > self._peak.peak_bytes:
            evidence, source = (Evidence.DERIVED, "VmHWM") if len(pids) == 1 else (Evidence.ESTIMATED, "VmRSS")
            self._keep(held_bytes, evidence, source, sum(seen.file_bytes for seen in now), began)

    def _keep(self, peak_bytes: int, evidence: Evidence, source: str, cache_bytes: int, now: float) -> None:
        alive = [(pid, seen) for pid, seen in self._seen.items() if seen.look >= self._look_count - 1]
        alive.sort(key=lambda member: -member[1].held_bytes)
        holders = tuple(PeakHolder(pid, seen.command, seen.held_bytes) for pid, seen in alive[:_MOST_HOLDERS])
        if self._peak.peak_bytes >= peak_bytes * _NEAR:
            # The counter rose by a little, and whoever held the rest may be gone by now.
            holders = max(holders, self._peak.holders, key=lambda group: sum(holder.resident_bytes for holder in group))
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
