"""The measurement of what this kernel spends on its objects, with children in a memory cgroup.

Children of some kinds have many threads, mappings or open files. What each kind of open file and a watch cost, others
tell, which open many of one kind.
"""

import os
import sys
from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from footprint.attribution.kernel import KernelConstants, count_objects, kernel_costs, usual_price_bytes, watch_of
from footprint.errors import AccessError, FootprintError
from footprint.process.cgroup import Launcher, MemoryGroup, await_ready, make_group
from footprint.process.descriptions import DescriptionOwners, OpenFileKind, read_open_files
from footprint.process.snapshot import read_process
from footprint.sources.calibration import keep_constants, uncalibrated

_PATIENCE_SECONDS: Final = 60.0
# Children cost the same in the end as at first.
_SAME: Final = 0.03
# A child with threads, mappings (every other one writable, and written where asked) and open files; then it blocks a
# signal, which `await_ready` waits for. It ends by itself.
_CHILD: Final = """
import _thread, mmap, os, sys, time
threads, mappings, is_written, files = map(int, sys.argv[1:])
_thread.stack_size(65536)
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(files)]
for number in range(mappings):
    access = mmap.PROT_READ if number % 2 else mmap.PROT_READ | mmap.PROT_WRITE
    kept.append(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, access))
    if is_written and not number % 2:
        kept[-1][0] = 1
for _ in range(threads):
    _thread.start_new_thread(time.sleep, (1200,))
import _signal
_signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGUSR2})
time.sleep(1200)
"""
# Few enough that the table of open files, of 64 entries at first, need not grow.
_FILES: Final = 50


class _Mean(NamedTuple):
    """What children of one kind are made of on average, and what kernel memory beside page tables they cost."""

    objects_bytes: float
    threads: float
    mappings: float
    written: float
    files: float


def calibrate() -> KernelConstants:
    """Measure what this kernel spends on its objects, with small children in a memory cgroup, and keep it.

    It takes some 30 seconds, and 600 MB meanwhile.

    Raises:
        AccessError: Where no group can be made, kernel memory is not accounted, or the result cannot be kept.
    """
    system = os.uname()
    with make_group() as group, Launcher(group) as launcher:

        def mean(count: int, threads: int = 0, mappings: int = 0, files: int = 0, *, is_written: bool = False) -> _Mean:
            words = [str(number) for number in (threads, mappings, int(is_written), files)]
            return _mean(group, launcher, [sys.executable, "-ISc", _CHILD, *words], count)

        mean(2)  # what comes first is charged with files, too
        first = mean(48)
        sizes: dict[str, Any] = _solve(
            first,
            mean(24, threads=1),
            mean(8, threads=17),
            mean(12, mappings=400),
            mean(12, mappings=400, is_written=True),
            mean(24, files=_FILES),
            stack_bytes=uncalibrated(system.release, system.machine).stack_bytes,
        )
        constants = uncalibrated(system.release, system.machine)
        _check(sizes, constants, first, mean(24))
        open_files = measure_open_files(group, launcher, constants._replace(**sizes))
    return keep_constants(system.release, system.machine, {**sizes, "open_file_bytes": open_files})


def _check(sizes: dict[str, int], constants: KernelConstants, first: _Mean, last: _Mean) -> None:
    """Check measured sizes against those that are known, and the last children against the first.

    Raises:
        AccessError: Where one does not hold: then none does.
    """
    if first.objects_bytes <= 0:
        cause = "kernel memory is not accounted in it (cgroup.memory=nokmem, or Linux before 4.5)"
        raise AccessError("memory cgroup", cause)
    odd = [
        f"{name} {size:,} where about {getattr(constants, name):,} is usual"
        for name, size in sizes.items()
        if not getattr(constants, name) / _MOST_FACTOR <= size <= getattr(constants, name) * _MOST_FACTOR
    ]
    if abs(last.objects_bytes - first.objects_bytes) > _SAME * first.objects_bytes:
        odd.append(f"a process {first.objects_bytes:,.0f} at first and {last.objects_bytes:,.0f} in the end")
    if odd:
        cause = f"the measurement does not hold ({'; '.join(odd)} B): nothing is kept; try again when less runs"
        raise AccessError("memory cgroup", cause)


def _mean(group: MemoryGroup, launcher: Launcher, command: Sequence[str], count: int) -> _Mean:
    """Start children of a kind, and see what they are made of, and what the group grew by."""
    before = group.usage()
    pids = launcher.start(command, count)
    await_ready(pids)
    # What matters here is a counter in version 1, and one of the sums that come late in version 2.
    after = group.settled(_PATIENCE_SECONDS, still_seconds=0.5 if group.version == 1 else 2.2)
    snapshots = [read_process(pid) for pid in pids]
    objects = [count_objects(snapshot.memory.mappings) for snapshot in snapshots]
    statuses = [snapshot.status for snapshot in snapshots if snapshot.status is not None]
    page_table_bytes = fmean(status.page_table_bytes or 0 for status in statuses)
    descriptors = fmean(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids) - 3  # those it was given are the launcher's
    return _Mean(
        (after.kernel_bytes - before.kernel_bytes) / count - page_table_bytes,
        fmean(status.thread_count or 1 for status in statuses),
        fmean(mean.mapping_count for mean in objects),
        fmean(mean.written_count for mean in objects),
        fmean(mean.file_count for mean in objects) + descriptors,
    )


def _solve(
    plain: _Mean, two: _Mean, many: _Mean, mapped: _Mean, written: _Mean, opened: _Mean, *, stack_bytes: int
) -> dict[str, int]:
    """Find the size of each thing, one after the other, each from two kinds of children that differ by little else."""
    mapping = (mapped.objects_bytes - plain.objects_bytes) / (mapped.mappings - plain.mappings)

    def more(kind: _Mean, than: _Mean) -> float:
        """Return by how much one kind costs more than another, without their mappings."""
        return kind.objects_bytes - than.objects_bytes - mapping * (kind.mappings - than.mappings)

    reverse_map = more(written, plain) / (written.written - plain.written)
    file = more(opened, plain) / (opened.files - plain.files)
    # The first thread that is started costs something once: the C library looks around in /proc.
    thread = (more(many, two) - reverse_map * (many.written - two.written)) / (many.threads - two.threads)
    rest = thread * plain.threads + mapping * plain.mappings + reverse_map * plain.written + file * plain.files
    return {
        "stack_bytes": stack_bytes,
        "process_bytes": round(plain.objects_bytes - rest),
        "thread_bytes": round(thread) - stack_bytes,
        "mapping_bytes": round(mapping),
        "written_bytes": round(reverse_map),
        "file_bytes": round(file),
    }


# --- open files -------------------------------------------------------------------------------------------------------

_MOST_SECONDS: Final = 1200
# A price or size is of the order of the one that is known, or is not kept.
_MOST_FACTOR: Final = 2.0
_COUNT: Final = 300
_CHILDREN: Final = 4
# Each line makes `count` descriptors, `size` of them at once; it fails where the kernel or a limit refuses.
_OPENING: Final = """
import os, resource, sys, time
count = int(sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
kept = []
def each(make):
    kept.extend(make() for _ in range(count))
def watched(poll):
    each(lambda: os.eventfd(0))
    for one in kept:
        poll.register(one)
    kept.append(poll)
def text():
    one = os.open("/proc/self/stat", os.O_RDONLY)
    os.read(one, 1)
    return one
def socket_of(family, type_):
    import socket
    return lambda: socket.socket(family, type_)
def checked(call, *arguments):
    one = call(*arguments)
    assert one >= 0
    return one
def inotify():
    import ctypes
    libc = ctypes.CDLL(None)
    each(lambda: checked(libc.inotify_init1, 0))
def noticed():
    import ctypes
    libc = ctypes.CDLL(None)
    kept.append(checked(libc.inotify_init1, 0))
    folder = os.path.dirname(os.__file__)
    for name in sorted(os.listdir(folder))[:count]:
        checked(libc.inotify_add_watch, kept[0], os.path.join(folder, name).encode(), 2)
def rings():
    import ctypes
    libc = ctypes.CDLL(None)
    each(lambda: checked(libc.syscall, 425, 8, ctypes.create_string_buffer(120)))
{kind}
import _signal
_signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGUSR2})
time.sleep({seconds})
"""


class _Kind(NamedTuple):
    """How many of a kind of open file are made, and how.

    Attributes:
        code: The line of Python that makes them.
        made: How often each child makes one.
        size: How many descriptors it makes at once.
        children: The number of children; a user may have few instances of some kinds.
    """

    code: str
    made: int = _COUNT
    size: int = 1
    children: int = _CHILDREN


_KINDS: Final = {
    OpenFileKind.FILE: _Kind("each(lambda: os.open(os.devnull, os.O_RDONLY))"),
    OpenFileKind.TEXT: _Kind("each(text)"),
    OpenFileKind.MEMORY: _Kind("each(lambda: os.memfd_create('footprint'))"),
    OpenFileKind.PIPE: _Kind("each(os.pipe)", size=2),
    OpenFileKind.TERMINAL: _Kind("each(os.openpty)", 50, 2),
    OpenFileKind.EVENT: _Kind("each(lambda: os.eventfd(0))"),
    OpenFileKind.PROCESS: _Kind("each(lambda: os.pidfd_open(os.getpid()))"),
    OpenFileKind.EPOLL: _Kind("import select; each(select.epoll)"),
    OpenFileKind.INOTIFY: _Kind("inotify()", 50, children=2),
    OpenFileKind.RING: _Kind("rings()", 50),
    OpenFileKind.UNIX: _Kind("import socket; each(socket.socketpair)", size=2),
    OpenFileKind.TCP: _Kind("each(socket_of(2, 1))"),
    OpenFileKind.UDP: _Kind("each(socket_of(2, 2))"),
    OpenFileKind.SOCKET: _Kind("each(socket_of(16, 3))"),
}
# Each waits for `count` things, which cost something too: so many events, or nothing but files that others know.
_WATCHES: Final = {
    OpenFileKind.EPOLL: _Kind("import select; watched(select.epoll())"),
    OpenFileKind.INOTIFY: _Kind("noticed()", 100),
}


def measure_open_files(group: MemoryGroup, launcher: Launcher, constants: KernelConstants) -> dict[str, int]:
    """Measure open files, and return their price by kind, without those that cannot be made here.

    Args:
        group: The group that the launcher is in.
        launcher: It starts the children.
        constants: What this kernel spends on all else.
    """
    base_bytes = _beyond(group, launcher, constants, _Kind("pass"))
    if base_bytes is None:
        return {}
    prices: dict[str, int] = {}
    for name, kind in _KINDS.items():
        found_bytes = _beyond(group, launcher, constants, kind)
        if found_bytes is not None:
            prices[name.value] = round((found_bytes - base_bytes) / (kind.made * kind.size))
    for name, kind in _WATCHES.items():
        _beyond(group, launcher, constants, kind)  # what comes first is charged with the inodes
        found_bytes = _beyond(group, launcher, constants, kind)
        if found_bytes is not None and {OpenFileKind.EVENT, name} <= prices.keys():
            event_bytes = prices[OpenFileKind.EVENT] if name is OpenFileKind.EPOLL else 0
            prices[watch_of(name)] = round((found_bytes - base_bytes - prices[name]) / kind.made) - event_bytes
    return {name: size for name, size in prices.items() if _holds(name, size)}


def _holds(name: str, size_bytes: int) -> bool:
    """Return whether a price is near the one that is known of other kernels."""
    known_bytes = usual_price_bytes(name)
    return known_bytes / _MOST_FACTOR <= size_bytes <= known_bytes * _MOST_FACTOR


def _beyond(group: MemoryGroup, launcher: Launcher, constants: KernelConstants, kind: _Kind) -> float | None:
    """Start children, and return the kernel memory of each beyond what is priced; None where they cannot run."""
    code = _OPENING.replace("{kind}", kind.code).replace("{seconds}", str(_MOST_SECONDS))
    before = group.usage()
    try:
        pids = launcher.start([sys.executable, "-ISc", code, str(kind.made)], kind.children)
        await_ready(pids)
        after = group.settled(_PATIENCE_SECONDS, still_seconds=0.5 if group.version == 1 else 2.2)
        growth_bytes = (after.kernel_bytes - before.kernel_bytes) / kind.children
        return growth_bytes - fmean(_priced_bytes(pid, constants) for pid in pids)
    except FootprintError:
        return None


def _priced_bytes(pid: int, constants: KernelConstants) -> int:
    """Return what is priced of a child, and the contents of its open files.

    Raises:
        AccessError: Where it has ended.
    """
    snapshot = read_process(pid)
    mappings = snapshot.memory.mappings
    costs = kernel_costs(snapshot.status, len(mappings), constants, mappings)
    if not os.path.exists(f"/proc/{pid}"):
        raise AccessError(f"pid {pid}", "it has ended")
    contents_bytes = sum(item.content_bytes for item in DescriptionOwners().charged_to(pid, read_open_files(pid)))
    return sum(cost.size_bytes for cost in costs) + contents_bytes
