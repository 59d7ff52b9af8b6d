"""A memory cgroup of our own: the kernel counts in it the real cost of processes, kernel memory included.

Source: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of Linux 6.18.
"""

import contextlib
import errno
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from footprint.errors import AccessError
from footprint.process.control_groups import (
    UNIFIED,
    control_group_of,
    kernel_text,
    parse_hierarchies,
    parse_membership,
    read_charges,
    read_memory_left,
)
from footprint.text.units import format_bytes

CURE: Final = "be root, or run it by `systemd-run --user --scope`"
"""The advice where no group can be made."""

_PATIENCE_SECONDS: Final = 10.0
# The kernel adds up memory.stat every two seconds, or sooner where much has changed.
_STILL_SECONDS: Final = 2.2
_POLL_SECONDS: Final = 0.1
_READY_SECONDS: Final = 600.0
_SERIAL: Final = itertools.count()
_FILES: Final = {1: "memory.usage_in_bytes", 2: "memory.current"}
_PEAK_FILES: Final = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
# systemd sets pids.max on each unit.
_LIMIT_FILES: Final = ("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max")
_OWN_NAME: Final = re.compile(r"footprint-([0-9]+)-[0-9]+")
_STALE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class MemoryController:
    """The memory controller, as seen by this process.

    Attributes:
        version: 1 or 2.
        mount: Its mount point.
        folder: The directory of the group of this process.
    """

    version: int
    mount: str
    folder: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Return the groups in which to make a group, the best first: a parent without limits changes no figure."""
        beside = self.mount if self.folder == self.mount else os.path.dirname(self.folder)
        return tuple(dict.fromkeys((self.mount, beside, self.folder)))

    @property
    def limiting_parents(self) -> tuple[str, ...]:
        """Return the groups in which a group can have all limits of our own one, the best first.

        Version 2 allows none inside our own one, unless that is the root. A group beside it gets a copy of its limits.
        """
        is_alone = self.version == 1 or self.folder == self.mount
        return (self.folder,) if is_alone else (self.folder, os.path.dirname(self.folder))


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """The memory charged to a group at one moment.

    Attributes:
        total_bytes: The total of the kernel. It includes up to 63 pages per CPU that are charged before use.
        anonymous_bytes: Anonymous pages.
        file_bytes: Page cache and shared memory that processes of the group touched first.
        kernel_bytes: Page tables, kernel stacks, kernel objects.
    """

    total_bytes: int
    anonymous_bytes: int
    file_bytes: int
    kernel_bytes: int

    @property
    def used_bytes(self) -> int:
        """Return the total without the pages that are charged before use."""
        return self.anonymous_bytes + self.file_bytes + self.kernel_bytes


class PeakUsage(NamedTuple):
    """The largest and the current charge of a group.

    Attributes:
        peak_bytes: The largest total so far.
        total_bytes: The current total.
        page_cache_bytes: The current page cache: pages of files that the kernel drops when it needs memory.
    """

    peak_bytes: int
    total_bytes: int
    page_cache_bytes: int

    def most_bytes_since(self, counter_bytes: int) -> int:
        """Return the most without page cache since a look at which the peak was `counter_bytes`.

        A peak that is no new one may be that of page cache which has gone since.
        """
        is_new = self.peak_bytes > counter_bytes
        return max(0, (self.peak_bytes if is_new else self.total_bytes) - self.page_cache_bytes)


def find_memory_controller(mounts: str, membership: str) -> MemoryController | None:
    """Find the memory controller in the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`, or return None."""
    groups = parse_membership(membership)
    controller = None
    for hierarchy in parse_hierarchies(mounts):
        if hierarchy.version == 1 and "memory" in hierarchy.controllers:
            return MemoryController(1, hierarchy.mount, hierarchy.folder_of(groups.get("memory")))
        if hierarchy.version == 2:
            controller = MemoryController(2, hierarchy.mount, hierarchy.folder_of(groups.get(UNIFIED)))
    return controller


class MemoryGroup:
    """A group for processes of ours; a context manager that ends the remaining processes in it and removes it."""

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.version = version
        self._high = "max"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def enter(self, pid: int) -> None:
        """Move a process into the group. Its earlier charges stay with its old group.

        Raises:
            AccessError: Where the kernel refuses.
        """
        try:
            with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(pid))
        except OSError as error:
            raise AccessError(self.path, f"process {pid} cannot be moved into it: {error.strerror}") from error

    def pids(self) -> list[int]:
        """Read the PIDs of the processes in the group."""
        # Processes of another PID namespace are listed as 0, which has a special meaning for kill(2).
        return [int(word) for word in self._read("cgroup.procs").split() if word != "0"]

    def usage(self) -> GroupUsage:
        """Read the charges of the group."""
        charges = read_charges(self.path, self.version)
        file_bytes = charges.page_cache_bytes + charges.shared_memory_bytes
        return GroupUsage(charges.total_bytes, charges.anonymous_bytes, file_bytes, charges.kernel_bytes)

    @property
    def peak_file(self) -> str:
        """The name of the counter that `read_peak` reads."""
        return _PEAK_FILES[self.version]

    def read_total(self) -> int:
        """Read the current charges, page cache included.

        Raises:
            OSError: Where the group is gone.
        """
        return int(self._read(_FILES[self.version]))

    def read_peak(self) -> PeakUsage:
        """Read the peak and the current charges.

        Raises:
            OSError: Where the kernel has no such counter (version 2 before Linux 5.19).
        """
        peak_bytes, total_bytes = int(self._read(self.peak_file)), int(self._read(_FILES[self.version]))
        stat = dict(line.split(" ", 1) for line in self._read("memory.stat").splitlines())
        names = ("total_cache", "total_shmem") if self.version == 1 else ("file", "shmem")
        cache_bytes, shared_bytes = (int(stat.get(name, 0)) for name in names)
        return PeakUsage(peak_bytes, total_bytes, cache_bytes - shared_bytes)

    def hold_at(self, size_bytes: int | None) -> None:
        """Make the kernel hold processes that take more than so much, until this is called with None.

        Version 1 holds them altogether; version 2 only lets them take more slowly.

        Raises:
            OSError: Where the kernel refuses.
        """
        if self.version == 1:
            if size_bytes is None:
                # The kernel would kill what it holds if it might do so before the limit is gone.
                self._write("memory.limit_in_bytes", "-1")
                self._write("memory.oom_control", "0")
            else:
                self._write("memory.oom_control", "1")
                self._write("memory.limit_in_bytes", str(size_bytes))
        elif size_bytes is None:
            self._write("memory.high", self._high)
        else:
            self._high = self._read("memory.high").strip()
            self._write("memory.high", str(size_bytes))

    def holds(self) -> bool:
        """Return whether the kernel holds a process now."""
        if self.version == 1:
            return "under_oom 1" in self._read("memory.oom_control")
        limit = self._read("memory.high").strip()
        return limit.isdigit() and int(self._read(_FILES[2])) >= int(limit)

    def settled(
        self, patience_seconds: float, *, tolerance: float = 0.0, still_seconds: float = _STILL_SECONDS
    ) -> GroupUsage:
        """Wait until the used memory changes by at most a share of itself for some time, or until patience ends."""
        end = time.monotonic() + patience_seconds
        then, since = self.usage(), time.monotonic()
        while True:
            time.sleep(_POLL_SECONDS)
            now, at = self.usage(), time.monotonic()
            if abs(now.used_bytes - then.used_bytes) > tolerance * then.used_bytes:
                then, since = now, at
            elif at - since >= still_seconds or at > end:
                return now

    def remove(self) -> None:
        """End the processes in the group and remove it; a group that is still in use after some seconds stays."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with contextlib.suppress(OSError):
                for pid in self.pids():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            try:
                os.rmdir(self.path)
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > end:
                    return
                time.sleep(0.02)
            else:
                return

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(text)

    def _read(self, name: str) -> str:
        with open(os.path.join(self.path, name), encoding="ascii") as file:
            return file.read()


# The kernel charges the stack and page tables of a child to the group of the process that forks, so that process
# must be in the group.
_LAUNCHER: Final = """
import json, os, signal, sys
null = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
started = []
for line in sys.stdin:
    count, *command = json.loads(line)
    pids = [os.posix_spawnp(command[0], command, os.environ, file_actions=actions) for _ in range(count)]
    started += pids
    print(json.dumps(pids), flush=True)
for pid in started:
    os.kill(pid, signal.SIGKILL)
"""


class Room(NamedTuple):
    """What our own group lets a program hold.

    Attributes:
        limit: The limit that is met first: its file and its group.
        size_bytes: What the program may hold until then.
        limit_bytes: The limit.
    """

    limit: str
    size_bytes: int
    limit_bytes: int


def read_room(group: MemoryGroup | None) -> Room | None:
    """Read how much memory a program may hold that we start, in a group of its own or in ours; None without a limit."""
    try:
        ours = control_group_of([os.getpid()])
        limits = read_memory_left(ours)
    except AccessError:
        return None
    rooms = [Room(f"{name}, {format_bytes(most)}", left, most) for name, most, left in limits]
    if group is not None and group.version == 2 and limits and limits[0][0].endswith(f" of {ours.path}"):
        # A group beside ours has a copy of our limit, and does not share it with us.
        rooms[0] = rooms[0]._replace(size_bytes=limits[0][1])
    return min(rooms, key=lambda room: room.size_bytes, default=None)


def read_oom_kill_count(group: MemoryGroup | None) -> int:
    """Read how many processes the kernel has killed for want of memory in a group, or in ours; 0 if unknown."""
    controller = read_memory_controller()
    folder = group.path if group is not None else controller.folder if controller is not None else ""
    texts = (kernel_text(os.path.join(folder, name)) for name in ("memory.events", "memory.oom_control"))
    match = re.search(r"^oom_kill ([0-9]{1,18})$", "\n".join(texts), re.MULTILINE)
    return int(match.group(1)) if match else 0


class Launcher:
    """A small process inside a group that starts programs there; a context manager that ends all of them."""

    def __init__(self, group: MemoryGroup) -> None:
        self._process = subprocess.Popen(  # noqa: S603 # our own interpreter and code
            [sys.executable, "-ISc", _LAUNCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            group.enter(self._process.pid)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._process.communicate()

    def start(self, command: Sequence[str], count: int = 1) -> list[int]:
        """Start copies of a program without input and output, and return their PIDs.

        Raises:
            AccessError: Where the program cannot be started.
        """
        pipe, answers = self._process.stdin, self._process.stdout
        try:
            if pipe is not None:
                pipe.write(json.dumps([count, *command]) + "\n")
                pipe.flush()
            return [int(pid) for pid in json.loads(answers.readline() if answers is not None else "")]
        except (OSError, ValueError) as error:
            raise AccessError(command[0], "it cannot be started in a memory cgroup") from error


_READY_BIT: Final = 1 << (signal.SIGUSR2 - 1)


def await_ready(pids: Sequence[int]) -> None:
    """Wait until each child blocks SIGUSR2, however slow the machine is.

    A child blocks it when it has made all that is measured: that takes no memory of the kernel.

    Raises:
        AccessError: Where one has ended, or does not come so far.
    """
    end = time.monotonic() + _READY_SECONDS
    for pid in pids:
        while not _blocked_signals(pid) & _READY_BIT:
            if time.monotonic() > end:
                raise AccessError(f"pid {pid}", f"it did not start in {_READY_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)


def _blocked_signals(pid: int) -> int:
    match = re.search(r"^SigBlk:\t([0-9a-f]+)$", kernel_text(f"/proc/{pid}/status"), re.MULTILINE)
    if match is None:
        raise AccessError(f"pid {pid}", "it has ended")
    return int(match.group(1), 16)


def make_group(*, keeps_limits: bool = False) -> MemoryGroup:
    """Make a memory group beside or below our own.

    Args:
        keeps_limits: Whether the limits of our own group must hold in it, too.

    Raises:
        AccessError: Where there is no memory controller, or we may not make a group.
    """
    controller = read_memory_controller()
    if controller is None:
        raise AccessError("memory cgroup", "no memory controller is mounted (cgroup v1 or v2)")
    cause = "none of the groups that we could use has the memory controller enabled"
    for parent in controller.limiting_parents if keeps_limits else controller.parents:
        _remove_stale(parent)
        # An earlier process with our PID may have been killed before it could remove its groups.
        names = (os.path.join(parent, f"footprint-{os.getpid()}-{number}") for number in _SERIAL)
        path = next(name for name in names if not os.path.exists(name))
        try:
            os.mkdir(path)
        except OSError as error:
            cause = f"no group can be made in {parent}: {error.strerror}"
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EAGAIN}:
                raise AccessError("memory cgroup", cause) from error
            continue
        is_counted = os.path.exists(os.path.join(path, _FILES[controller.version]))
        if is_counted and (not keeps_limits or parent == controller.folder or _copy_limits(controller.folder, path)):
            return MemoryGroup(path, controller.version)
        os.rmdir(path)
    raise AccessError("memory cgroup", f"{cause}; {CURE}")


def _copy_limits(source: str, target: str) -> bool:
    """Set the limits of a group of version 2 on another one; return whether that has all of them."""
    for name in _LIMIT_FILES:
        limit = kernel_text(os.path.join(source, name)).strip()
        if limit and not limit.startswith("max"):
            try:
                with open(os.path.join(target, name), "w", encoding="ascii") as file:
                    file.write(limit)
            except OSError:
                return False
    return True


def _remove_stale(parent: str) -> None:
    """Remove empty groups of footprint processes that were killed before they could do it."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            match = _OWN_NAME.fullmatch(entry.name)
            if match is None or os.path.exists(f"/proc/{match.group(1)}"):
                continue
            # In another PID namespace the process may be alive, and about to use its new group.
            if time.time() - entry.stat().st_ctime > _STALE_SECONDS:
                with contextlib.suppress(OSError):
                    os.rmdir(entry.path)


def read_memory_controller() -> MemoryController | None:
    """Find the memory controller of this host."""
    return find_memory_controller(kernel_text("/proc/self/mountinfo"), kernel_text("/proc/self/cgroup"))
