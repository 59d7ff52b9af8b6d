"""How many fit into a control group, against the out-of-memory killer: copies are started until it kills one."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import footprint
from footprint.errors import AccessError
from footprint.process.cgroup import MemoryGroup, make_group

MIB = 1 << 20
PATIENCE_SECONDS = 30.0
# A shell is small, so the killer chooses a copy. What is forked in the group is charged to it from the beginning.
LAUNCHER = 'while read -r line; do "$@" & done'

PYTHON = "import time; kept = bytearray(b'x') * (1 << 20); print('ready', flush=True); time.sleep(600)"
HEAP = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    for (int block = 0; block < 30; block++) memset(malloc(100000), 1, 100000);
    puts("ready"); fflush(stdout);
    for (;;) pause();
}
"""
SHARED = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    memset(mmap(0, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 2 << 20);
    memset(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 20);
    puts("ready"); fflush(stdout);
    for (;;) pause();
}
"""


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    try:
        with make_group() as made:
            yield made
    except AccessError as error:
        pytest.skip(str(error))


def set_limit(group: MemoryGroup, limit_bytes: int) -> None:
    file = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    (Path(group.path) / file).write_text(str(limit_bytes), encoding="ascii")
    swap = Path(group.path) / "memory.swap.max"
    if swap.exists():
        swap.write_text("0", encoding="ascii")


def kill_count(group: MemoryGroup) -> int:
    """Read how many processes the kernel has killed because the group was full."""
    text = (Path(group.path) / ("memory.oom_control" if group.version == 1 else "memory.events")).read_text("ascii")
    return int(next(line for line in text.splitlines() if line.startswith("oom_kill ")).split()[1])


class Copies:
    """Starts copies of a program in a group, one after the other."""

    def __init__(self, group: MemoryGroup, command: list[str]) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", LAUNCHER, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        group.enter(self._shell.pid)

    def start_one(self) -> bool:
        """Start a copy, and return whether it became ready."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        try:
            self._shell.stdin.write(b"go\n")
            self._shell.stdin.flush()
        except BrokenPipeError:
            return False
        readable, _, _ = select.select([self._shell.stdout], [], [], PATIENCE_SECONDS)
        return bool(readable) and os.read(self._shell.stdout.fileno(), 6) == b"ready\n"

    def end(self) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()


def compiled(folder: Path, source: str) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    (folder / "program.c").write_text(source, encoding="ascii")
    subprocess.run([compiler, "-O1", "-w", "-o", folder / "program", folder / "program.c"], check=True)
    return str(folder / "program")


def assert_fits(group: MemoryGroup, command: list[str], limit_bytes: int) -> None:
    """Predict from the first copy how many fit into a limit, and start so many that the kernel kills one."""
    copies = Copies(group, command)
    try:
        reserve_bytes = group.settled(PATIENCE_SECONDS).used_bytes
        set_limit(group, limit_bytes)
        assert copies.start_one()
        first = max(group.pids())
        predicted = footprint.project(first, limit=group.path, reserve_bytes=reserve_bytes, model="exec").projection
        assert predicted.limits[0].most == limit_bytes
        fitted = 1
        while fitted <= 2 * predicted.count and copies.start_one() and kill_count(group) == 0:
            fitted += 1
    finally:
        copies.end()
    assert 0.96 * fitted <= predicted.count <= fitted, f"predicted {predicted.count}, fitted {fitted}"


def test_python_workers_fit_as_predicted(group: MemoryGroup) -> None:
    assert_fits(group, [os.path.realpath(sys.executable), "-ISc", PYTHON], 400 * MIB)


@pytest.mark.parametrize("source", [pytest.param(HEAP, id="heap"), pytest.param(SHARED, id="shared memory")])
def test_programs_in_c_fit_as_predicted(group: MemoryGroup, tmp_path: Path, source: str) -> None:
    assert_fits(group, [compiled(tmp_path, source)], 200 * MIB)
