"""Kinds of memory that differ by kernel and library: merged stacks, huge pages, swap, the heap of another glibc."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vm.guest import (
    Group,
    background,
    footprint,
    footprint_json,
    held_bytes,
    only_root,
    per_process_bytes,
    setting,
    settled_bytes,
    swapped_bytes,
    wait_until,
)

KIB, MIB = 1 << 10, 1 << 20
Figure = Callable[[str, float, float], float]
# Only who may debug a process reads its registers and its heap: with ptrace_scope 1, root.
may_read_others = only_root


def rollup(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)) * KIB


@may_read_others
def test_the_stack_of_a_thread_is_not_the_memory_that_the_kernel_merged_it_with(build: Callable[..., str]) -> None:
    # Linux before 6.7 merges them.
    with background(build("stacks")) as process:
        wait_until(lambda: rollup(process.pid, "Anonymous") > 60 * MIB, "it has touched its memory")
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 3, "its threads run")
        answer = footprint_json("audit", process.pid)
    owners: dict[str, int] = {}
    for row in answer["ledger"]:
        owners[row["owner"]] = owners.get(row["owner"], 0) + (row["bytes"] or 0)
    assert 0 < owners["[thread stacks]"] <= 256 * KIB
    assert owners["[anonymous]"] + owners.get("[mapped blocks]", 0) > 59 * MIB


def test_private_memory_is_what_smaps_rollup_says(build: Callable[..., str]) -> None:
    with background(build("worker")) as process:
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 3, "its threads run")
        size_bytes = footprint_json("audit", process.pid)["totals"]["private_bytes"]
        assert size_bytes == rollup(process.pid, "Anonymous") + rollup(process.pid, "Swap")


@may_read_others
def test_the_heap_is_what_mallinfo2_says(build: Callable[..., str]) -> None:
    with background(build("heap"), output=subprocess.PIPE) as process:
        assert process.stdout is not None
        used, free, size = map(int, process.stdout.readline().split())
        text = footprint("audit", "-v", process.pid)
        process.stdout.close()
    assert 2 * MIB < used + free == size
    heap = re.search(r"^  in use +([0-9.]+) MiB .*\n.*\n  free +([0-9.]+) (K|M)iB", text, re.MULTILINE)
    assert heap is not None, text
    # mallinfo2 counts the headers of blocks as used, and those that wait for the next request as used, too.
    assert float(heap[1]) * MIB == pytest.approx(used, rel=0.05)
    assert float(heap[2]) * (KIB if heap[3] == "K" else MIB) == pytest.approx(free, rel=0.05)


def test_the_libraries_are_those_of_the_loader() -> None:
    program = os.path.realpath(sys.executable)
    loader = next(Path("/").glob("lib*/ld-linux-*.so.*"))
    listed = subprocess.run([loader, "--list", program], capture_output=True, text=True, check=True).stdout
    expected = re.findall(r"=> (/\S+)", listed)
    objects = [one["path"] for one in footprint_json("libraries", program)["libraries"]]
    assert set(map(os.path.realpath, expected)) <= set(map(os.path.realpath, objects))


@only_root
@pytest.mark.parametrize("mode", ["always", "never"])
def test_a_copy_costs_the_same_with_and_without_huge_pages(
    group: Group, build: Callable[..., str], figure: Figure, mode: str
) -> None:
    with setting("/sys/kernel/mm/transparent_hugepage/enabled", mode):
        before_bytes = settled_bytes(group.path)
        pids = group.start(4, build("worker"))
        wait_until(lambda: {len(os.listdir(f"/proc/{pid}/task")) for pid in pids} == {3}, "its threads run")
        true_bytes = settled_bytes(group.path) - before_bytes
        size_bytes = sum(per_process_bytes(pid) for pid in pids)
    assert abs(figure(f"worker, huge pages {mode}", size_bytes, true_bytes)) < 0.02


@only_root
def test_memory_that_forks_share_is_counted_once_also_in_swap(
    group: Group, build: Callable[..., str], figure: Figure
) -> None:
    if not (group.path / "memory.reclaim").exists():
        pytest.skip("Linux before 5.19 has no memory.reclaim")
    subprocess.run(["swapon", "/swapfile"], check=True)
    try:
        before_bytes = settled_bytes(group.path)
        group.start(1, build("forks"))
        wait_until(lambda: len(group.pids()) == 4, "its children run")
        resident_bytes = settled_bytes(group.path) - before_bytes
        pids = group.pids()
        resident = footprint_json("audit", *pids)["group"]["per_group_bytes"]
        group.swap_out(5 * MIB)
        true_bytes = settled_bytes(group.path, held_bytes) - before_bytes
        swapped = footprint_json("audit", *pids)["group"]["per_group_bytes"]
        assert swapped_bytes(group.path) > 4 * MIB
    finally:
        group.kill()
        subprocess.run(["swapoff", "/swapfile"], check=True)
    assert abs(figure("parent and 3 forks, resident", resident, resident_bytes)) < 0.02
    assert abs(figure("parent and 3 forks, swapped out", swapped, true_bytes)) < 0.03


# A mapping that others could share, and memory of its own.
_SHARED = (
    "import mmap, time; a = mmap.mmap(-1, 32 << 20); a.write(b'x' * (32 << 20)); b = b'x' * (8 << 20); time.sleep(999)"
)


@only_root
def test_a_watch_tells_of_swapped_shared_memory_what_an_audit_tells(group: Group, figure: Figure) -> None:
    if not (group.path / "memory.reclaim").exists():
        pytest.skip("Linux before 5.19 has no memory.reclaim")
    subprocess.run(["swapon", "/swapfile"], check=True)
    try:
        (pid,) = group.start(1, sys.executable, "-ISc", _SHARED)
        wait_until(lambda: rollup(pid, "Rss") > 40 * MIB, "it has touched its memory")
        group.swap_out(32 * MIB)
        audited = per_process_bytes(pid)
        watched = footprint_json("watch", pid, "--for", "2s", "--accept", "too-short")["watch"]["cost_bytes"]
    finally:
        group.kill()
        subprocess.run(["swapoff", "/swapfile"], check=True)
    assert audited > 40 * MIB
    assert abs(figure("swapped shared memory, watched", watched, audited)) < 0.01
