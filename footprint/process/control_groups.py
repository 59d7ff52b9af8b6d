"""Control groups of others: the processes in one, what the kernel charges to it, and its limits.

Source: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v1/pids.rst and cgroup-v2.rst of Linux 6.18.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.errors import AccessError, UsageError
from footprint.process.status import parse_status
from footprint.text.units import decimal

UNIFIED: Final = ""
"""The controller of version 2, as /proc/PID/cgroup has it."""

_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_CONTAINER: Final = re.compile(r"[0-9a-f]{12,64}")
_UNIT_TYPES: Final = (".service", ".scope", ".slice", ".socket", ".mount", ".swap")
# Version 1 prints the largest number of pages where there is no limit.
_UNLIMITED_BYTES: Final = 1 << 62
# The parts of `kernel` in memory.stat, for Linux before 5.18, which does not print the sum.
_KERNEL_PARTS: Final = ("kernel_stack", "pagetables", "percpu", "vmalloc", "slab")
_PROPORTIONAL: Final = re.compile(r"^Pss_(?:Anon|Shmem):\s+([0-9]{1,15}) kB$", re.MULTILINE)
_RESIDENT: Final = re.compile(r"^Rss(?:Anon|Shmem):\s+([0-9]{1,15}) kB$", re.MULTILINE)


class Hierarchy(NamedTuple):
    """A mounted hierarchy of control groups.

    Attributes:
        version: 1 or 2.
        controllers: Its controllers as /proc/PID/cgroup names them: `memory`, `name=systemd`; of version 2 "".
        root: The path of the group that is mounted.
        mount: Where it is mounted.
    """

    version: int
    controllers: frozenset[str]
    root: str
    mount: str

    def folder_of(self, path: str | None) -> str:
        """Return the directory of a group; the mount point where the group is outside of the mounted tree."""
        relative = os.path.relpath(path or self.root, self.root)
        return self.mount if relative == "." or relative.startswith("..") else os.path.join(self.mount, relative)


class CgroupCharges(NamedTuple):
    """The memory charged to a control group at one moment.

    Attributes:
        total_bytes: The total of the kernel. It includes pages that are charged before use, up to 63 for each CPU.
        anonymous_bytes: Anonymous pages.
        page_cache_bytes: Pages of files that processes of the group read or touched first.
        shared_memory_bytes: Pages of shared memory and of tmpfs that they touched first.
        kernel_bytes: Page tables, kernel stacks, kernel objects.
        slab_bytes: The part of it for kernel objects; None where it is not told.
        socket_bytes: Data in sockets.
        stat: All numbers of memory.stat of version 2.
    """

    total_bytes: int
    anonymous_bytes: int
    page_cache_bytes: int
    shared_memory_bytes: int
    kernel_bytes: int
    slab_bytes: int | None
    socket_bytes: int
    stat: Mapping[str, int] = MappingProxyType({})

    @property
    def held_bytes(self) -> int:
        """What cannot be dropped: all but page cache and what is charged before use."""
        return self.anonymous_bytes + self.shared_memory_bytes + self.kernel_bytes + self.socket_bytes


class ControlGroup(NamedTuple):
    """A control group, in the hierarchies that matter here.

    Attributes:
        path: Its path below the mount point.
        folder: A directory that lists its processes.
        version: 1 or 2: that of the hierarchy with the memory controller.
        memory: Its directory in that hierarchy, and the mount point; None where it has none.
        tasks: Its directory in the hierarchy with the controller `pids`, and the mount point, or None.
    """

    path: str
    folder: str
    version: int
    memory: tuple[str, str] | None
    tasks: tuple[str, str] | None

    def charges(self) -> CgroupCharges | None:
        """Read what is charged to it; None where the memory controller is not enabled for it.

        Raises:
            AccessError: If it cannot be read.
        """
        if self.memory is None or not os.path.exists(os.path.join(self.memory[0], "memory.stat")):
            return None
        return read_charges(self.memory[0], self.version)


class CgroupLimit(NamedTuple):
    """A limit of a group or of one above it.

    Attributes:
        name: The file and the group: `memory.max of /system.slice`.
        unit: `bytes` or `tasks`.
        most: The limit.
        charged: What the group that has the limit holds of it: memory that cannot be dropped, or tasks.
        charged_below: What the group that was asked about holds of it.
    """

    name: str
    unit: str
    most: int
    charged: int
    charged_below: int


def parse_hierarchies(mounts: str) -> tuple[Hierarchy, ...]:
    """Find the mounted hierarchies in a text of `/proc/PID/mountinfo`."""
    hierarchies = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(), [*after.split(), "", "", ""][:3]
        if len(fields) < 5 or kind not in {"cgroup", "cgroup2"}:
            continue
        root, mount = (_OCTAL.sub(lambda code: chr(int(code.group(1), 8)), field) for field in fields[3:5])
        controllers = frozenset(options.split(",")) if kind == "cgroup" else frozenset({UNIFIED})
        hierarchies.append(Hierarchy(1 if kind == "cgroup" else 2, controllers, root, mount))
    return tuple(hierarchies)


def parse_membership(text: str) -> dict[str, str]:
    """Read `/proc/PID/cgroup`: the path of the group for each controller."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if path:
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


# --- finding ----------------------------------------------------------------------------------------------------------


def find_control_group(path: str, root: str = "/") -> ControlGroup:
    """Find a control group by its path, with or without the mount point before it.

    Args:
        path: Such as `/system.slice/nginx.service` or `/sys/fs/cgroup/memory/jobs/7`.
        root: The directory that is taken for `/`.

    Raises:
        AccessError: If there is no such group.
    """
    hierarchies = _hierarchies(root)
    wanted = os.path.normpath("/" + path.lstrip("/"))
    for hierarchy in sorted(hierarchies, key=lambda hierarchy: -len(hierarchy.mount)):
        if os.path.commonpath([hierarchy.mount, wanted]) == hierarchy.mount:
            wanted = os.path.join(hierarchy.root, os.path.relpath(wanted, hierarchy.mount))
            break
    controllers = chain.from_iterable(hierarchy.controllers for hierarchy in hierarchies)
    return _located(os.path.normpath(wanted), dict.fromkeys(controllers, wanted), hierarchies, root)


def find_unit(unit: str, root: str = "/") -> ControlGroup:
    """Find the control group of a systemd unit, wherever in the tree it is.

    Raises:
        AccessError: If no process is in such a group.
        UsageError: If the system and a user, or several users, have a unit of this name.
    """
    # As systemctl: a name may have dots (php8.2-fpm), only the types of units that hold processes end it.
    name = unit if unit.endswith(_UNIT_TYPES) else f"{unit}.service"
    return _found_by(lambda part: part == name, unit, "no process is in a control group of this unit", root)


def find_container(identifier: str, root: str = "/") -> ControlGroup:
    """Find the control group of a container by its ID, or by the first 12 digits of it.

    Raises:
        AccessError: If no process is in such a group.
        UsageError: If it is no ID, or too short.
    """
    wanted = identifier.lower()
    if not _CONTAINER.fullmatch(wanted):
        raise UsageError(f"{identifier[:80]!r} is not the ID of a container: write at least 12 hexadecimal digits")
    # conmon, which podman and CRI-O keep beside each container, has a group of the same name.
    holds = re.compile(rf"(?<!conmon-)(?<![0-9a-f]){wanted}").search
    cause = "no process is in a control group of this container"
    return _found_by(lambda part: holds(part) is not None, identifier, cause, root)


def control_group_of(pids: Sequence[int], root: str = "/") -> ControlGroup:
    """Find the control group of a process, or the lowest one that holds several.

    Raises:
        AccessError: If there is no such process, or no hierarchy is mounted.
    """
    # One of several may have ended by now.
    memberships = [membership for pid in pids if (membership := parse_membership(_text(root, f"/proc/{pid}/cgroup")))]
    if not memberships:
        raise AccessError(f"pid {pids[0]}", "its control group cannot be read")
    first, *others = memberships
    paths = {
        controller: os.path.commonpath([path, *(other.get(controller, "/") for other in others)])
        for controller, path in first.items()
    }
    return _located(paths.get("memory") or paths.get(UNIFIED) or "/", paths, _hierarchies(root), root)


def _found_by(matches: Callable[[str], bool], name: str, cause: str, root: str) -> ControlGroup:
    """Find the group in whose path a part matches, by the processes in it.

    Raises:
        AccessError: If there is none.
        UsageError: If there are several.
    """
    places: dict[str, dict[str, str]] = {}
    for pid in sorted(int(entry) for entry in os.listdir(_under(root, "/proc")) if entry.isdigit()):
        paths = {
            controller: cut
            for controller, path in parse_membership(_text(root, f"/proc/{pid}/cgroup")).items()
            if (cut := _cut(path, matches)) is not None
        }
        if paths:
            path = paths.get("memory") or paths.get(UNIFIED) or next(iter(paths.values()))
            places.setdefault(path, paths)
    if not places:
        raise AccessError(name, cause)
    if len(places) > 1:
        raise UsageError(f"{len(places)} control groups have this name: choose one by --cgroup {' or '.join(places)}")
    ((path, paths),) = places.items()
    return _located(path, paths, _hierarchies(root), root)


def _cut(path: str, matches: Callable[[str], bool]) -> str | None:
    """Return a path up to the part that matches; None where none does."""
    parts = path.split("/")
    place_found = next((place for place, part in enumerate(parts) if matches(part)), None)
    return None if place_found is None else "/".join(parts[: place_found + 1])


def _located(path: str, paths: dict[str, str], hierarchies: tuple[Hierarchy, ...], root: str) -> ControlGroup:
    """Find the directories of a group.

    Raises:
        AccessError: If none of the hierarchies has it.
    """

    def place(controller: str) -> tuple[str, str] | None:
        for hierarchy in sorted(hierarchies, key=lambda hierarchy: hierarchy.version):
            wanted = paths.get(controller if hierarchy.version == 1 else UNIFIED)
            if wanted is not None and (hierarchy.version == 2 or controller in hierarchy.controllers):
                folder = _under(root, hierarchy.folder_of(wanted))
                if os.path.isdir(folder):
                    return folder, _under(root, hierarchy.mount)
        return None

    listed = next(filter(None, map(place, ("memory", "name=systemd", *sorted(paths)))), None)
    if listed is None:
        raise AccessError(path, "there is no such control group")
    is_first = any("memory" in hierarchy.controllers for hierarchy in hierarchies)
    return ControlGroup(path, listed[0], 1 if is_first else 2, place("memory"), place("pids"))


def _hierarchies(root: str) -> tuple[Hierarchy, ...]:
    return parse_hierarchies(_text(root, "/proc/self/mountinfo"))


# --- reading ----------------------------------------------------------------------------------------------------------


def pids_of(group: ControlGroup) -> tuple[int, ...]:
    """Read the PIDs of the processes in a group and the groups below it, in ascending order.

    Raises:
        AccessError: If there is none.
    """
    pids: set[int] = set()
    for folder, _, files in os.walk(group.folder):
        if "cgroup.procs" in files:
            # Processes of another PID namespace are listed as 0.
            pids.update(pid for word in _text(folder, "cgroup.procs").split() if (pid := decimal(word)))
    if not pids:
        raise AccessError(group.path, "no process is in this control group")
    return tuple(sorted(pids))


def held_by_others(group: ControlGroup, pids: Collection[int | None], root: str = "/") -> tuple[int, int]:
    """Add up what the processes of a group and of those below it hold that are not among `pids`, nor footprint itself.

    Returns:
        Their memory that cannot be dropped, in bytes: anonymous and shared memory by proportional shares, where they
        can be read, and page tables; and the number of their threads.
    """
    size_bytes = thread_count = 0
    try:
        members = pids_of(group)
    except AccessError:
        return 0, 0
    for pid in members:
        if pid in pids or pid == os.getpid():
            continue
        text = _text(root, f"/proc/{pid}/status")
        status = parse_status(os.fsencode(text))
        sizes = _PROPORTIONAL.findall(_text(root, f"/proc/{pid}/smaps_rollup")) or _RESIDENT.findall(text)
        size_bytes += sum(map(int, sizes)) * 1024 + (status.page_table_bytes or 0)
        thread_count += status.thread_count or 0
    return size_bytes, thread_count


def read_charges(folder: str, version: int) -> CgroupCharges:
    """Read what is charged to a group with the memory controller.

    Raises:
        AccessError: If it cannot be read.
    """
    stat = _numbers(_text(folder, "memory.stat"))
    total_bytes = _number(folder, "memory.usage_in_bytes" if version == 1 else "memory.current")
    if total_bytes is None:
        # The root of version 2 has no total.
        total_bytes = stat.get("anon", 0) + stat.get("file", 0) + _kernel_bytes(stat)
    if not stat:
        raise AccessError(folder, "its memory.stat cannot be read")
    if version == 1:
        shared_bytes = stat.get("total_shmem", 0)
        return CgroupCharges(
            total_bytes,
            stat.get("total_rss", 0),
            stat.get("total_cache", 0) - shared_bytes,
            shared_bytes,
            _number(folder, "memory.kmem.usage_in_bytes") or 0,
            None,
            _number(folder, "memory.kmem.tcp.usage_in_bytes") or 0,
        )
    shared_bytes = stat.get("shmem", 0)
    return CgroupCharges(
        total_bytes,
        stat.get("anon", 0),
        stat.get("file", 0) - shared_bytes,
        shared_bytes,
        _kernel_bytes(stat),
        stat.get("slab"),
        stat.get("sock", 0),
        MappingProxyType(stat),
    )


def _kernel_bytes(stat: dict[str, int]) -> int:
    return stat.get("kernel", sum(stat.get(part, 0) for part in _KERNEL_PARTS))


def read_limits(group: ControlGroup) -> tuple[CgroupLimit, ...]:
    """Read the limits of a group and of those above it; a group without a limit is left out."""
    limits = []
    charges = group.charges()
    if group.memory is not None:
        # Above memory.high the kernel takes memory back, and slows down who asks for more.
        files = ("memory.limit_in_bytes",) if group.version == 1 else ("memory.max", "memory.high")
        below = charges.held_bytes if charges else 0
        for folder, name in _upwards(*group.memory):
            for file in files:
                most = _number(folder, file)
                if most is not None and most < _UNLIMITED_BYTES:
                    held_bytes = read_charges(folder, group.version).held_bytes
                    limits.append(CgroupLimit(f"{file} of {name}", "bytes", most, held_bytes, below))
    if group.tasks is not None:
        below = _number(group.tasks[0], "pids.current") or 0
        for folder, name in _upwards(*group.tasks):
            most = _number(folder, "pids.max")
            if most is not None:
                held_bytes = _number(folder, "pids.current") or 0
                limits.append(CgroupLimit(f"pids.max of {name}", "tasks", most, held_bytes, below))
    return tuple(limits)


def read_memory_left(group: ControlGroup) -> list[tuple[str, int, int]]:
    """Read what more memory a group and those above it may take until the kernel kills processes.

    Page cache does not count. These are counters that are exact at each moment; those of `read_limits` may be two
    seconds old.

    Returns:
        The name of each limit, the limit, and what is left of it.
    """
    file, used = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    if group.version == 2:
        file, used = "memory.max", "memory.current"
    limits = []
    for folder, name in _upwards(*group.memory) if group.memory is not None else ():
        most = _number(folder, file)
        if most is not None and most < _UNLIMITED_BYTES:
            cache_bytes = read_charges(folder, group.version).page_cache_bytes
            limits.append((f"{file} of {name}", most, most - (_number(folder, used) or 0) + cache_bytes))
    return limits


def _upwards(folder: str, mount: str) -> Iterator[tuple[str, str]]:
    """Yield the directory of a group and of those above it, each with its path below the mount point."""
    while True:
        relative = os.path.relpath(folder, mount)
        yield folder, "/" if relative == "." else f"/{relative}"
        if relative == "." or relative.startswith(".."):
            return
        folder = os.path.dirname(folder)


def _numbers(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    numbers = {row[0]: decimal(row[1]) for row in rows if len(row) == 2}
    return {name: number for name, number in numbers.items() if number is not None}


def _number(folder: str, name: str) -> int | None:
    """Read a file with one number; None where there is none, such as for `max`."""
    return decimal(_text(folder, name).strip())


def _under(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _text(folder: str, path: str) -> str:
    return kernel_text(_under(folder, path), 1 << 22)


def kernel_text(path: str, most_count: int = -1) -> str:
    """Read a file of the kernel; "" where there is none, or it may not be read.

    Args:
        path: The file.
        most_count: How many characters to read at the most; all if negative.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(most_count)
    except OSError:
        return ""
