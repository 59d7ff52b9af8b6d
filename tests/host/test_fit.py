"""How many fit into a control group, against the out-of-memory killer: copies are started until it kills one."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import footprint
from footprint.process.cgroup import MemoryGroup
from tests.liveprocesses import states

MIB = 1 << 20
PATIENCE_SECONDS = 60.0
# A shell is small, so the killer chooses a copy. What is forked in the group is charged to it from the beginning.
LAUNCHER = 'while read -r NUMBER; do export NUMBER; "$@" & done'

# No copy ends by itself, however slow the machine is.
PYTHON = "import time; kept = bytearray(b'x') * (1 << 20); print('ready', flush=True); time.sleep(1e6)"
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
    """Starts copies of a program in a group, one after the other: by a shell, or by a parent that forks them itself.

    A copy is ready when it says so, or where a folder is given, when its socket is in there, named by its number.
    """

    def __init__(self, group: MemoryGroup, command: list[str], *, folder: Path | None, is_parent: bool) -> None:
        self._group, self._folder, self._count = group, folder, 0
        self._earlier: set[int] = set()
        self._starter = subprocess.Popen(
            command if is_parent else ["/bin/sh", "-c", LAUNCHER, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: group.enter(os.getpid()),  # noqa: PLW1509 # one thread
        )
        assert not is_parent or self._is_told()

    @property
    def pids(self) -> set[int]:
        """Return the copies that are there."""
        return set(self._group.pids()) - {self._starter.pid}

    def start_one(self) -> bool:
        """Start a copy, and return whether it became ready."""
        assert self._starter.stdin is not None
        self._count += 1
        self._earlier = self.pids
        try:
            self._starter.stdin.write(b"%d\n" % self._count)
            self._starter.stdin.flush()
        except BrokenPipeError:
            return False
        return self._is_told() if self._folder is None else self._has_socket(self._folder / str(self._count))

    def _is_told(self) -> bool:
        assert self._starter.stdout is not None
        readable, _, _ = select.select([self._starter.stdout], [], [], PATIENCE_SECONDS)
        return bool(readable) and os.read(self._starter.stdout.fileno(), 6) == b"ready\n"

    def _has_socket(self, path: Path) -> bool:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and kill_count(self._group) == 0:
            if path.exists() and all(states(pid) == {"S"} for pid in self.pids - self._earlier):
                return True
            time.sleep(0.02)
        return False

    def end(self) -> None:
        os.killpg(self._starter.pid, signal.SIGKILL)
        self._starter.communicate()


def compiled(folder: Path, source: str) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    (folder / "program.c").write_text(source, encoding="ascii")
    subprocess.run([compiler, "-O1", "-w", "-o", folder / "program", folder / "program.c"], check=True)
    return str(folder / "program")


def assert_fits(
    group: MemoryGroup, command: list[str], limit_bytes: int, *, folder: Path | None = None, is_family: bool = False
) -> None:
    """Predict from the first copy how many fit into a limit, and start so many that the kernel kills one."""
    copies = Copies(group, command, folder=folder, is_parent=is_family)
    try:
        # What is there before, but that of which the projection has the cost itself: the parent of a family.
        used_bytes = group.settled(PATIENCE_SECONDS).used_bytes - group.read_peak().page_cache_bytes
        reserve_bytes = 0 if is_family else used_bytes
        set_limit(group, limit_bytes)
        assert copies.start_one()
        (first,) = copies.pids
        group.settled(PATIENCE_SECONDS)
        predicted = footprint.audit(
            first, limit=group.path, reserve_bytes=reserve_bytes, model=None if is_family else "exec"
        ).projection
        assert predicted.limits[0].most == limit_bytes
        fitted = started = 1
        while started <= 2 * predicted.count and copies.start_one() and kill_count(group) == 0:
            # One that somebody else has ended takes no room.
            started, fitted = started + 1, len(copies.pids)
    finally:
        copies.end()
    is_slow = kill_count(group) == 0
    least = predicted.limits[0].beside_cache_count if is_slow else predicted.count
    told = f"predicted {predicted.count}, {predicted.limits[0].beside_cache_count} beside page cache, fitted {fitted}"
    # Where the last one only became slow, so that nobody waited for its end, page cache was read again and again.
    assert least <= fitted, told
    assert 0.96 * fitted <= predicted.count, told


def test_python_workers_fit_as_predicted(group: MemoryGroup) -> None:
    assert_fits(group, [os.path.realpath(sys.executable), "-ISc", PYTHON], 400 * MIB)


@pytest.mark.parametrize("source", [pytest.param(HEAP, id="heap"), pytest.param(SHARED, id="shared memory")])
def test_programs_in_c_fit_as_predicted(group: MemoryGroup, tmp_path: Path, source: str) -> None:
    assert_fits(group, [compiled(tmp_path, source)], 200 * MIB)


# --- page cache -------------------------------------------------------------------------------------------------------

SERVERS = {
    "node": (["node", "-e", "console.log('ready'); setInterval(() => {}, 1e6)"], 450),
    "perl": (["perl", "-MPOSIX", "-e", "$| = 1; my $kept = 'x' x 1000000; print \"ready\\n\"; sleep"], 150),
    "memcached": (["memcached", "-u", "root", "-t", "2"], 120),
}


@pytest.mark.parametrize("is_cold", [False, True], ids=["files charged elsewhere", "files charged to the group"])
@pytest.mark.parametrize("server", SERVERS)
def test_servers_with_large_files_fit_as_predicted(
    group: MemoryGroup, tmp_path: Path, server: str, *, is_cold: bool
) -> None:
    """The kernel drops page cache before it kills, whoever is charged with it."""
    command, limit_mib = SERVERS[server]
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is missing")
    if is_cold:
        # Of a file of its own, whose pages nobody has in memory, the first copy is charged with what it reads.
        program = str(shutil.copy2(os.path.realpath(program), tmp_path / command[0]))
        with open(program, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    words = [program, *command[1:]]
    if server != "memcached":
        assert_fits(group, words, limit_mib * MIB)
        return
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket must be short
        words = ["/bin/sh", "-c", f'exec "$@" -s "{folder}/$NUMBER"', "sh", *words]
        assert_fits(group, words, limit_mib * MIB, folder=Path(folder))


FAMILY = """
import os, sys, time
kept = bytearray(b"x") * (40 << 20)
os.write(1, b"ready\\n")
for line in sys.stdin.buffer:
    if os.fork() == 0:
        for place in range(0, 3 << 20, 4096):
            kept[place] = 1
        os.write(1, b"ready\\n")
        time.sleep(1e6)
"""


def test_workers_of_a_parent_fit_as_predicted_beside_what_they_share(group: MemoryGroup) -> None:
    assert_fits(group, [os.path.realpath(sys.executable), "-ISc", FAMILY], 300 * MIB, is_family=True)
