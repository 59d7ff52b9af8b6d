"""What this kernel spends on each kind of open file and on a watch: measured by children that open many of one kind."""

import os
import sys
from statistics import fmean
from typing import Final, NamedTuple

from footprint.attribution.kernel import KernelConstants, kernel_costs, usual_price_bytes, watch_of
from footprint.errors import AccessError, FootprintError
from footprint.process.cgroup import Launcher, MemoryGroup, await_ready
from footprint.process.descriptions import DescriptionOwners, OpenFileKind, read_open_files
from footprint.process.snapshot import read_process

_PATIENCE_SECONDS: Final = 60.0
_MOST_SECONDS: Final = 1200
# A price is of the order of the one that is known, or is not kept.
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
