"""The processes of a real control group, beside what the kernel charges to it; families in one, with limits."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.errors import AccessError
from footprint.process.cgroup import MemoryGroup
from footprint.process.control_groups import control_group_of, find_control_group, pids_of

KIB, MIB = 1 << 10, 1 << 20
PATIENCE_SECONDS = 60.0
# A master of 4 MiB with three forks, each of which rewrites 1 MiB.
FAMILY = """
import os, time
block = bytearray(b'x') * (4 << 20)
for number in range(3):
    if os.fork() == 0:
        block[:1 << 20] = b'y' * (1 << 20)
        time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def family(group: MemoryGroup) -> Iterator[int]:
    """Start a master and its workers in the group; return the PID of the master."""
    master = subprocess.Popen(
        [sys.executable, "-ISc", FAMILY],
        preexec_fn=lambda: group.enter(os.getpid()),  # noqa: PLW1509 # one thread
    )
    end = time.monotonic() + PATIENCE_SECONDS
    while len(group.pids()) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    group.settled(PATIENCE_SECONDS)
    yield master.pid
    group.remove()
    master.wait()


def test_a_control_group_is_found_by_its_directory_and_by_a_process_in_it(group: MemoryGroup, family: int) -> None:
    found = find_control_group(group.path)
    assert pids_of(found) == tuple(sorted(group.pids()))
    assert family in pids_of(found)
    assert control_group_of([family]).memory == found.memory


def test_what_its_processes_hold_is_what_is_charged(group: MemoryGroup, family: int) -> None:
    result = footprint.audit_group(cgroup=group.path)
    assert family in [audit.pid for audit in result.group.audits]
    assert result.group.cgroup is not None
    rows = {row.name: row for row in result.group.cgroup.rows}
    anonymous = rows["anonymous memory"]
    assert anonymous.audited_bytes is not None
    assert abs(anonymous.difference_bytes) <= 0.01 * anonymous.charged_bytes
    assert sum(row.charged_bytes for row in result.group.cgroup.rows) == result.group.cgroup.total_bytes


def test_the_workers_of_a_control_group_fit_by_its_limit(group: MemoryGroup, family: int) -> None:
    file = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    (Path(group.path) / file).write_text(str(64 * MIB), encoding="ascii")
    audit = footprint.audit_group(cgroup=group.path, limit="own")
    result, workers = audit.projection, audit.group.workers
    assert workers.count == 3
    assert result.shared_once_bytes is not None
    memory = next(limit for limit in result.limits if limit.name.startswith(file))
    # A 64th of the memory is left for what differs between copies; page cache takes nothing.
    kept_bytes = sum(term.size_bytes for term in result.terms if term.is_once and not term.is_page_cache)
    assert (memory.most, memory.taken) == (64 * MIB, MIB)
    assert memory.count == (63 * MIB - kept_bytes) // result.per_process_bytes
    assert memory.beside_cache_count == (63 * MIB - result.shared_once_bytes) // result.per_process_bytes
    assert family in group.pids()
    assert MIB < workers.each_bytes < 3 * MIB


def test_a_group_that_is_not_there_is_named() -> None:
    with pytest.raises(AccessError, match="there is no such control group"):
        footprint.audit_group(cgroup="/footprint/nowhere")
