"""What we say one more process costs is what a memory cgroup is charged for it.

Copies are started in a group, by a process inside it. What it grows by between half of the copies and all of them,
divided by their number, is the truth: page cache and libraries were charged before. Two copies never cost the same,
because the place of their address space is random; the one in the middle stands for them.
"""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import footprint
from footprint.attribution.kernel import KernelConstants, kernel_costs
from footprint.errors import AccessError
from footprint.model.row import Evidence
from footprint.process.cgroup import GroupUsage, Launcher, MemoryGroup, make_group
from footprint.process.descriptions import read_own_open_files
from footprint.process.snapshot import read_process
from footprint.sources import kernel_calibration
from footprint.sources.calibration import load_constants
from footprint.sources.kernel_calibration import calibrate
from tests.liveprocesses import within

PATIENCE_SECONDS = 60.0
PYTHON = "import ssl, sqlite3, asyncio, time; time.sleep(600)"
PARENT = """
import os, signal, sys, time
memory = bytearray(200_000_000)
for place in range(0, len(memory), 4096):
    memory[place] = 1
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
for _ in range(2):
    signal.sigwait({signal.SIGUSR1})
    for _ in range(25):
        if os.fork() == 0:
            for place in range(0, int(len(memory) * float(sys.argv[1])), 4096):
                memory[place] = 2
            time.sleep(600)
time.sleep(600)
"""
OPENED = """
import os, socket
opened = [(os.pipe(), socket.socket(), os.eventfd(0), os.open("/", os.O_RDONLY)) for _ in range(40)]
"""
WATCHING = """
import os, select, socket
opened = [(os.pipe(), socket.socketpair(), os.eventfd(0), os.openpty()) for _ in range(60)]
poll = select.epoll()
for pipe, pair, event, terminal in opened:
    for one in (pipe[0], pair[0], event):
        poll.register(one)
"""


@pytest.fixture(autouse=True, scope="module")
def may_make_groups() -> None:
    """Skip where no group can be made, and say why."""
    try:
        with launched() as (group, launcher):
            pids = launcher.start(["sleep", "3600"])
            if not set(pids) < set(group.pids()):
                pytest.skip("processes cannot be started in a memory cgroup")
    except AccessError as error:
        pytest.skip(str(error))


@contextmanager
def launched() -> Iterator[tuple[MemoryGroup, Launcher]]:
    with make_group() as group, Launcher(group) as launcher:
        yield group, launcher


def middle(figures: list[int]) -> int:
    return sorted(figures)[len(figures) // 2]


def cost_of(pid: int) -> int:
    """Ask the audit what one more such process costs."""
    cost = footprint.audit(pid).totals.per_process.bytes
    assert cost is not None
    return cost


def kernel_cost_of(pid: int, constants: KernelConstants) -> int:
    """Price what the kernel holds for a process."""
    snapshot = read_process(pid)
    mappings = snapshot.memory.mappings
    costs = kernel_costs(snapshot.status, len(mappings), constants, mappings, read_own_open_files([pid])[pid])
    return sum(cost.size_bytes for cost in costs)


@pytest.fixture(autouse=True)
def built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the calibration of this host out of the figures."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("command", "count"),
    [
        pytest.param(["sleep", "600"], 100, id="sleep"),
        pytest.param([sys.executable, "-c", PYTHON], 40, id="python3"),
    ],
)
def test_a_started_copy_costs_what_we_say_within_2_percent(command: list[str], count: int) -> None:
    def attempt() -> tuple[float, float]:
        with launched() as (group, launcher):
            launcher.start(command, count // 2)
            before = group.settled(PATIENCE_SECONDS)
            pids = launcher.start(command, count // 2)
            after = group.settled(PATIENCE_SECONDS)
            return middle([cost_of(pid) for pid in pids[::4]]), (after.used_bytes - before.used_bytes) / len(pids)

    within(0.02, attempt)


def forked(group: MemoryGroup, parent: int, count: int) -> GroupUsage:
    """Make the parent fork, and wait until so many children are there and quiet."""
    os.kill(parent, signal.SIGUSR1)
    end = time.monotonic() + PATIENCE_SECONDS
    while len(group.pids()) < count + 2 and time.monotonic() < end:  # the parent, and the launcher
        time.sleep(0.05)
    return group.settled(PATIENCE_SECONDS)


@pytest.mark.parametrize("share", [pytest.param(0.0, id="idle"), pytest.param(0.1, id="10 % rewritten")])
def test_a_forked_child_costs_what_we_say_within_3_percent(share: float) -> None:
    def attempt() -> tuple[float, float]:
        with launched() as (group, launcher):
            parent, *_ = launcher.start([sys.executable, "-c", PARENT, str(share)])
            group.settled(PATIENCE_SECONDS, still_seconds=0.5)
            before = forked(group, parent, 25)
            older = set(group.pids())
            after = forked(group, parent, 50)
            children = sorted(set(group.pids()) - older)
            assert len(children) == 25
            costs = [cost_of(pid) for pid in children[::5]]
            return middle(costs), (after.used_bytes - before.used_bytes) / len(children)

    within(0.03, attempt)


def child(threads: int, mappings: int, *, is_written: bool, first: str = "") -> list[str]:
    """Return the command of a child such as calibrating starts, with figures that it never has there."""
    words = [str(number) for number in (threads, mappings, int(is_written), 0)]
    return [sys.executable, "-ISc", first + kernel_calibration._CHILD, *words]


def kernel_growth(command: list[str], constants: KernelConstants) -> tuple[float, float]:
    """Return our kernel cost of copies of a command, and what a group was charged for them."""
    with launched() as (group, launcher):
        launcher.start(command, 4)
        before = group.settled(PATIENCE_SECONDS)
        pids = launcher.start(command, 20)
        after = group.settled(PATIENCE_SECONDS)
        ours = statistics.fmean(kernel_cost_of(pid, constants) for pid in pids)
        return ours, (after.kernel_bytes - before.kernel_bytes) / len(pids)


def test_threads_and_mappings_are_priced_by_this_kernel_as_calibrating_found_it() -> None:
    constants = calibrate()
    assert constants == load_constants(os.uname().release, os.uname().machine)
    assert constants.evidence is Evidence.DERIVED
    within(0.02, lambda: kernel_growth(child(8, 200, is_written=True), constants))
    # Open files, too: all kinds of sockets, pipes with their content, and watches.
    assert {"TCP socket", "UNIX socket", "pipe", "epoll", "watch of epoll"} <= constants.open_file_bytes.keys()
    within(0.02, lambda: kernel_growth(child(1, 10, is_written=False, first=WATCHING), constants))


@pytest.mark.skipif(
    os.uname().machine != "x86_64" or not os.uname().release.startswith("6.18."),
    reason="the built-in constants are those of Linux 6.18 on x86-64",
)
def test_threads_mappings_and_descriptors_are_priced_by_the_built_in_constants_of_this_kernel() -> None:
    constants = load_constants(os.uname().release, os.uname().machine)
    assert constants.evidence is Evidence.ESTIMATED
    within(0.02, lambda: kernel_growth(child(20, 600, is_written=False, first=OPENED), constants))


def test_a_process_that_is_held_is_let_go_and_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    written = MemoryGroup._write

    def slowly(group: MemoryGroup, name: str, text: str) -> None:
        written(group, name, text)
        time.sleep(0.02)  # what the kernel may do between two writes, it does

    with make_group() as group:
        taker = "import sys; sys.stdin.read(1); taken = b'x' * (40 << 20)"
        with subprocess.Popen([sys.executable, "-c", taker], stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            group.enter(process.pid)
            group.hold_at(12 << 20)
            process.stdin.write(b"x")
            process.stdin.close()
            while not group.holds():
                assert process.poll() is None
                time.sleep(0.01)
            monkeypatch.setattr(MemoryGroup, "_write", slowly)
            group.hold_at(None)
        assert process.returncode == 0


def test_nothing_is_left_behind() -> None:
    with launched() as (group, launcher):
        pids = launcher.start(["sleep", "600"], 3)
        assert set(pids) < set(group.pids())
        with pytest.raises(AccessError, match="cannot be started"):
            launcher.start(["/nowhere/no-such-program"])
    assert not os.path.exists(group.path)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]  # zombies at most
