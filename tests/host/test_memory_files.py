"""Memory belongs to a thing and counts once: what a memory cgroup is charged is what we say, whatever maps it."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import footprint
from footprint.errors import AccessError
from footprint.process.cgroup import Launcher, MemoryGroup, make_group
from footprint.process.status import descendants
from footprint.verbs.audit.call import audit_group
from footprint.verbs.capture.call import capture
from tests.liveprocesses import PATIENCE_SECONDS

SOURCE = Path(__file__).with_name("kinds_of_memory.c")
TRIES = 3
ONE_PROCESS = (
    "a memfd that is mapped twice",
    "a memfd of which half is unmapped",
    "a memfd that is mapped private and written",
    "a memfd that is filled, mapped by a page and closed",
    "a memfd that is read through a private mapping and closed",
    "a file of tmpfs that is deleted and open",
    "a segment of SysV that is attached twice",
    "shared memory that a child filled before it ended",
    "rings of io_uring",
    "an array of BPF that is mapped",
    "an array of BPF that is mapped and closed",
    "small memfds that are mapped and closed",
    "a ring of aio",
)
# No control group is charged for them.
UNCHARGED = {"a ring of packets of 8 MiB": 8 << 20, "a ring of perf of 257 pages": 257 << 12}
FAMILIES = (
    "two processes of one address space",
    "a child of vfork that waits",
    "a memfd that only a child maps",
    "a memfd that only siblings map",
)
ZGC = ("-XX:+UseZGC", "-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch")
IDLE = "public class Idle { public static void main(String[] words) throws Exception { Thread.sleep(3600000); } }"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    built = tmp_path_factory.mktemp("kinds") / "kinds_of_memory"
    subprocess.run([compiler, "-O1", "-w", "-o", str(built), str(SOURCE)], check=True)
    return str(built)


@contextmanager
def launched() -> Iterator[tuple[MemoryGroup, Launcher]]:
    try:
        with make_group() as group, Launcher(group) as launcher:
            yield group, launcher
    except AccessError as error:
        pytest.skip(f"no memory cgroup: {error}")


def grown(group: MemoryGroup, launcher: Launcher, command: Sequence[str]) -> tuple[int, int]:
    """Start a second copy of a program; return it, and what the group was charged for it: files were charged before."""
    launcher.start(command)
    before = settled(group)
    (pid,) = launcher.start(command)
    return pid, settled(group) - before


def settled(group: MemoryGroup) -> int:
    """Return what is charged once it no longer changes."""
    seen = [-1]
    end = time.monotonic() + PATIENCE_SECONDS
    while seen[-1] != (now := group.settled(PATIENCE_SECONDS, still_seconds=3).used_bytes) and time.monotonic() < end:
        seen.append(now)
    return now


def within_2_percent(command: Sequence[str], cost_of: Callable[[int], int | None]) -> None:
    seen = []
    for _ in range(TRIES):
        with launched() as (group, launcher):
            pid, truth_bytes = grown(group, launcher, command)
            cost_bytes = cost_of(pid) or 0
        seen.append(f"{cost_bytes:,} for {truth_bytes:,} bytes ({cost_bytes / truth_bytes - 1:+.2%})")
        if abs(cost_bytes / truth_bytes - 1) <= 0.02:
            return
    pytest.fail("; ".join(seen))


def cost_of_process(pid: int) -> int | None:
    return footprint.audit(pid).totals.per_process.bytes


def cost_of_tree(pid: int) -> int | None:
    return audit_group(tree=pid).totals.per_process.bytes


@pytest.mark.parametrize("kind", ONE_PROCESS)
def test_a_process_costs_each_file_in_memory_once(program: str, kind: str) -> None:
    within_2_percent([program, kind], cost_of_process)


@pytest.mark.parametrize(("kind", "size_bytes"), UNCHARGED.items())
def test_a_ring_of_the_kernel_that_no_group_is_charged_for_is_part_of_the_cost(
    program: str, kind: str, size_bytes: int
) -> None:
    with launched() as (group, launcher):
        (pid,) = launcher.start([program, kind])
        settled(group)
        totals = footprint.audit(pid).totals
        assert totals.of_which.own_shared_bytes == size_bytes
        assert (totals.shared_once.bytes or 0) - size_bytes < 2 << 20  # the pages of its C library


def test_a_ring_is_not_shared_by_all_processes_of_a_machine(program: str) -> None:
    with launched() as (group, launcher):
        (pid,) = launcher.start([program, "an array of BPF that is mapped"])
        settled(group)
        assert (footprint.audit(pid).totals.shared_once.bytes or 0) < 2 << 20


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_costs_each_thing_once(program: str, kind: str) -> None:
    within_2_percent([program, kind], cost_of_tree)


def test_a_jvm_that_maps_its_heap_three_times_costs_it_once(tmp_path: Path) -> None:
    java, compiler = shutil.which("java"), shutil.which("javac")
    if java is None or compiler is None:
        pytest.skip("java is not installed")
    (tmp_path / "Idle.java").write_text(IDLE)
    subprocess.run([compiler, "-d", str(tmp_path), str(tmp_path / "Idle.java")], check=True)
    within_2_percent([java, *ZGC, "-cp", str(tmp_path), "Idle"], cost_of_process)


def test_an_erlang_machine_that_maps_its_code_twice_costs_it_once() -> None:
    if shutil.which("erl") is None:
        pytest.skip("erl is not installed")
    within_2_percent(["erl", "-noshell"], cost_of_tree)


@pytest.mark.parametrize("kind", [*ONE_PROCESS, *FAMILIES, *UNCHARGED])
def test_a_capture_costs_what_the_live_processes_cost(program: str, kind: str, tmp_path: Path) -> None:
    with launched() as (group, launcher):
        (pid,) = launcher.start([program, kind])
        settled(group)
        pids = descendants(pid)
        file = tmp_path / "kinds.capture"
        capture(*pids, output=file)
        live, saved = audit_group(tree=pid), footprint.audit(file)
        cost = live.totals.per_process if len(pids) > 1 else footprint.audit(pid).totals.per_process
        assert saved.cost == cost
        assert [memory_file._replace(keeper_pids=()) for memory_file in saved.memory_files] == [
            memory_file._replace(keeper_pids=()) for memory_file in live.memory_files
        ]


def test_what_a_file_holds_that_somebody_else_keeps_too_is_paid_once(program: str) -> None:
    with launched() as (group, launcher):
        (pid,) = launcher.start([program, "a memfd that is mapped twice"])
        settled(group)
        alone = footprint.audit(pid).totals
        descriptor = next(
            name for name in os.listdir(f"/proc/{pid}/fd") if "memfd" in os.readlink(f"/proc/{pid}/fd/{name}")
        )
        with (
            open(f"/proc/{pid}/fd/{descriptor}", "rb") as held,
            subprocess.Popen(["sleep", "600"], stdin=held) as other,
        ):
            try:
                shared = footprint.audit(pid)
                assert alone.of_which.own_shared_bytes == 4 << 20
                assert shared.totals.of_which.own_shared_bytes == 0
                assert [memory_file.keeper_pids for memory_file in shared.memory_files] == [(other.pid,)]
            finally:
                other.kill()
