"""What the kernel keeps for a process beside memory and threads, against a memory cgroup, or told to be left out."""

import os
import platform
import signal
import subprocess
import sys

import pytest

import footprint
from footprint.process.cgroup import MemoryGroup
from tests.liveprocesses import within

PATIENCE_SECONDS = 60.0
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or platform.machine() != "x86_64", reason="control groups need root; the calls are of x86-64"
)

LIBC = "import ctypes, os, time; libc = ctypes.CDLL(None, use_errno=True); "
READY = "; print('ready', flush=True); time.sleep(600)"
# BPF_MAP_CREATE of an array with one value of 1 MiB.
MAPS = (
    "attr = (ctypes.c_uint32 * 32)(2, 4, 1 << 20, 1); "
    "kept = [libc.syscall(321, 0, attr, 128) for _ in range(4)]; assert min(kept) > 0"
)
# timer_create(CLOCK_MONOTONIC, SIGEV_SIGNAL, ...).
TIMERS = (
    "number = ctypes.c_int(); assert not any(libc.timer_create(1, None, ctypes.byref(number)) for _ in range(2000))"
)
# waitid(..., WEXITED | WNOWAIT) returns once the child is one.
ZOMBIES = (
    "children = [os.fork() or os._exit(0) for _ in range(30)]; "
    "assert all(os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT) for child in children)"
)
FILTERS = (
    "code = ctypes.create_string_buffer(b'\\x06\\x00\\x00\\x00\\x00\\x00\\xff\\x7f', 8); "
    "program = (ctypes.c_size_t * 2)(1, ctypes.addressof(code)); assert not libc.prctl(38, 1, 0, 0, 0); "
    "assert not any(libc.syscall(317, 1, 0, program) for _ in range(20))"
)
NETWORK = "assert not libc.unshare(0x40000000)"
QUEUE = (
    "number = libc.msgget(0, 0o1600); data = ctypes.create_string_buffer(b'\\x01' * 1008, 1008); "
    "assert not any(libc.msgsnd(number, data, 1000, 0) for _ in range(5)); "
    "import atexit, signal; signal.signal(15, lambda *_: (libc.msgctl(number, 0, None), os._exit(0)))"
)


class Started:
    """A program that waits, in a group."""

    def __init__(self, group: MemoryGroup, body: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-ISc", LIBC + body + READY],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: group.enter(os.getpid()),  # noqa: PLW1509 # one thread
        )
        assert self._child.stdout is not None
        self.is_ready = self._child.stdout.readline() == b"ready\n"
        self.pid = self._child.pid

    def end(self) -> None:
        self._child.send_signal(signal.SIGTERM)
        self._child.communicate()


def growth(group: MemoryGroup, body: str) -> tuple[int, int]:
    """Return what we say that a program costs more than without a body, and what a group is charged more for it."""
    figures = []
    for code in ("pass", "pass", body):
        before = group.settled(PATIENCE_SECONDS)
        started = Started(group, code)
        try:
            if not started.is_ready:
                pytest.skip("the kernel refuses it here")
            cost = footprint.audit(started.pid).totals.per_process.bytes or 0
            figures.append((cost, group.settled(PATIENCE_SECONDS).used_bytes - before.used_bytes))
        finally:
            started.end()
    return figures[2][0] - figures[1][0], figures[2][1] - figures[1][1]


@pytest.mark.parametrize(
    "body", [pytest.param(MAPS, id="4 BPF maps of 1 MiB"), pytest.param(TIMERS, id="2,000 timers")]
)
def test_what_proc_tells_the_size_or_number_of_is_priced(group: MemoryGroup, body: str) -> None:
    def attempt() -> tuple[int, int]:
        ours, truth = growth(group, body)
        assert truth > 500_000
        return ours, truth

    within(0.03, attempt)


@pytest.mark.parametrize(
    ("body", "beginning"),
    [
        pytest.param(ZOMBIES, "30 zombies", id="zombies"),
        pytest.param(FILTERS, "20 seccomp filters", id="filters"),
        pytest.param(NETWORK, "1 network namespace", id="network"),
        pytest.param(QUEUE, "4.88 KiB in SysV message queues", id="messages"),
    ],
)
@pytest.mark.parametrize("is_group", [False, True], ids=["alone", "as a tree"])
def test_what_it_does_not_tell_the_size_of_is_counted_in_one_note(
    group: MemoryGroup, body: str, beginning: str, *, is_group: bool
) -> None:
    started = Started(group, body)
    try:
        if not started.is_ready:
            pytest.skip("the kernel refuses it here")
        notes = footprint.audit_group(tree=started.pid).notes if is_group else footprint.audit(started.pid).notes
    finally:
        started.end()
    (note,) = [note for note in notes if note.slug == "kernel-memory-not-counted"]
    assert note.detail.startswith(beginning)
    assert note.detail.endswith("not in the cost, because the kernel does not say how much memory they take")
    assert not [note for note in notes if note.slug == "process-not-read"]
