"""Swapped pages that relatives have, too, count once, and the answers of all ways agree; swapon(2) needs root."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import footprint
from footprint.model.row import Totals
from footprint.process.status import descendants
from footprint.system.c_library import call
from footprint.verbs.audit.call import audit_group
from footprint.verbs.capture.call import capture
from tests.liveprocesses import wait_until

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
# 24 MiB that are written, swapped out (MADV_PAGEOUT), and then shared with three children.
FAMILY = """
import mmap, os, sys, time
block = mmap.mmap(-1, 24 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_NOHUGEPAGE)
block[:] = b'x' * len(block)
if sys.argv[1] == 'out':
    block.madvise(21)
for _ in range(3):
    if os.fork() == 0:
        time.sleep(3600)
print('ready', flush=True)
time.sleep(3600)
"""


@pytest.fixture(autouse=True)
def swap_space(tmp_path: Path) -> Iterator[None]:
    """Switch on 64 MiB of swap space in a file, and off again."""
    file = tmp_path / "swap"
    header = bytearray(PAGE)
    struct.pack_into("=III", header, 1024, 1, 64 * MIB // PAGE - 1, 0)
    header[-10:] = b"SWAPSPACE2"
    with file.open("wb") as written:
        written.write(header + bytes(64 * MIB - PAGE))
        os.fchmod(written.fileno(), 0o600)
        os.fsync(written.fileno())
    if call("swapon", os.fsencode(file) + b"\0", 0):
        pytest.skip("swapon takes root, and a file system and kernel with swap files")
    yield
    assert call("swapoff", os.fsencode(file) + b"\0") == 0


@pytest.fixture
def family(request: pytest.FixtureRequest) -> Iterator[tuple[int, ...]]:
    """Return a parent and its three children."""
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY, request.param], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"ready\n"
            wait_until(lambda: len(descendants(parent.pid)) == 4, "three children")
            yield descendants(parent.pid)
        finally:
            os.killpg(parent.pid, 9)


def swapped_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
    return next(int(line.split()[1]) for line in lines if line.startswith("Swap:"))


def beside_live(live: Callable[[], Totals], other: Callable[[], Totals]) -> tuple[Totals, Totals]:
    """Return the totals of another way, and those of the processes while their pages stay as they are.

    What reads their memory brings pages back from the swap space.
    """
    while True:
        before, totals = live(), other()
        if live() == before:
            return totals, before


@pytest.mark.parametrize("family", ["out"], indirect=True)
def test_pages_that_were_swapped_out_before_a_fork_count_once(family: tuple[int, ...], tmp_path: Path) -> None:
    if swapped_kib(family[1]) < 24 * 1024:
        pytest.skip("this kernel has no MADV_PAGEOUT")
    group = audit_group(tree=family[0])
    private, between = group.totals.private.bytes, group.totals.cow_shared.bytes
    assert private is not None
    assert between is not None
    # All that is Python's own is less than 6 MiB.
    assert 24 * MIB <= private + between <= 30 * MIB
    # One more child has no page of these 24 MiB for itself.
    workers = group.group.classes[0]
    assert len(workers.pids) == 3
    assert workers.each_bytes < MIB
    # Live, in a capture and in a text: to the page.
    file, text = tmp_path / "family.capture", tmp_path / "smaps"

    def in_capture() -> Totals:
        capture(*family, output=file)
        return footprint.audit(file).totals

    def in_text() -> Totals:
        text.write_bytes(Path(f"/proc/{family[1]}/smaps").read_bytes())
        return footprint.audit(text).totals

    captured, live = beside_live(lambda: audit_group(tree=family[0]).totals, in_capture)
    assert abs((captured.per_process.bytes or 0) - (live.per_process.bytes or 0)) <= PAGE
    of_text, live = beside_live(lambda: footprint.audit(family[1]).totals, in_text)
    assert abs((of_text.private.bytes or 0) - (live.private.bytes or 0)) <= PAGE
    assert of_text.of_which.swapped_bytes == live.of_which.swapped_bytes >= 6 * MIB


@pytest.mark.parametrize("family", ["out", "in"], indirect=True)
def test_a_family_costs_as_much_with_its_memory_swapped_out(family: tuple[int, ...]) -> None:
    group = audit_group(tree=family[0])
    assert 24 * MIB <= (group.totals.private.bytes or 0) + (group.totals.cow_shared.bytes or 0) <= 31 * MIB
