"""What the tests in the guest share: the installed command, control groups as oracles, settings of the kernel."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.prefix, "bin", "footprint")
IS_ROOT = os.geteuid() == 0
CGROUPS = Path("/sys/fs/cgroup")
PATIENCE_SECONDS = 300.0
# The kernel adds up memory.stat every two seconds.
STILL_SECONDS = 4.0
_SERIAL = count()

# The process that starts others must be in their group: the kernel charges a child's first pages to it.
_LAUNCHER = """
import json, os, sys
null = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
for line in sys.stdin:
    number, *command = json.loads(line)
    pids = [os.posix_spawnp(command[0], command, os.environ, file_actions=actions) for _ in range(number)]
    print(json.dumps(pids), flush=True)
"""


def wait_until(is_true: Callable[[], object], what: str) -> None:
    """Wait for an event, however slow the machine is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        if time.monotonic() > end:
            pytest.fail(f"it did not happen in {PATIENCE_SECONDS:g} s: {what}")
        time.sleep(0.1)


def footprint(*words: object, prefix: Sequence[str] = (), code: int | None = 0) -> str:
    """Run the installed command, and return what it prints."""
    command = [*prefix, str(COMMAND), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    print(done.stderr)  # noqa: T201 # shown with a test that fails
    assert code is None or done.returncode == code, f"{command} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def footprint_json(*words: object, prefix: Sequence[str] = (), code: int | None = 0) -> dict[str, Any]:
    """Run the installed command with --json, and return the object that it prints."""
    verb, *rest = words
    answer: dict[str, Any] = json.loads(footprint(verb, "--json", *rest, prefix=prefix, code=code))
    return answer


def per_process_bytes(pid: int) -> int:
    """Return what one more of a process costs by its audit."""
    size_bytes: int = footprint_json("audit", pid)["totals"]["per_process_bytes"]
    return size_bytes


def stat(group: Path) -> dict[str, int]:
    """Read memory.stat of a group."""
    return {
        name: int(size) for name, size in (line.split() for line in (group / "memory.stat").read_text().splitlines())
    }


def kernel_bytes(group: Path) -> int:
    """Return the kernel memory of a group; before Linux 5.18 its parts are added up."""
    parts = stat(group)
    kinds = ("kernel_stack", "pagetables", "percpu", "slab")
    return parts["kernel"] if "kernel" in parts else sum(parts.get(kind, 0) for kind in kinds)


def held_bytes(group: Path) -> int:
    """Return what processes of a group hold for themselves: no page cache, nothing charged in advance."""
    parts = stat(group)
    return parts["anon"] + parts["shmem"] + kernel_bytes(group) + swapped_bytes(group)


def swapped_bytes(group: Path) -> int:
    """Return the swap of a group."""
    file = group / "memory.swap.current"
    return int(file.read_text()) if file.exists() else 0


def settled_bytes(group: Path, size: Callable[[Path], int] = held_bytes) -> int:
    """Wait until nobody in a group runs and a figure of it stands still, and return it."""
    end = time.monotonic() + PATIENCE_SECONDS
    before, since = None, time.monotonic()
    while time.monotonic() - since < STILL_SECONDS:
        if time.monotonic() > end:
            pytest.fail("the group did not settle")
        time.sleep(0.2)
        now = size(group), (group / "cpu.stat").read_text().split()[1]
        if now != before:
            before, since = now, time.monotonic()
    return size(group)


class Group:
    """A control group of its own with a process in it that starts others there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._launcher = subprocess.Popen(
            [*SCOPE, sys.executable, "-ISc", _LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.start(1, "true")  # by now systemd has moved it
        (path / "cgroup.procs").write_text(str(self._launcher.pid))

    def start(self, number: int, *command: str) -> list[int]:
        """Start copies of a program."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        self._launcher.stdin.write(json.dumps([number, *command]) + "\n")
        self._launcher.stdin.flush()
        pids: list[int] = json.loads(self._launcher.stdout.readline())
        return pids

    def pids(self) -> list[int]:
        """Read the processes of the group, without the one that started them."""
        return [pid for pid in map(int, (self.path / "cgroup.procs").read_text().split()) if pid != self._launcher.pid]

    def swap_out(self, least_bytes: int) -> None:
        """Write memory of the group to swap until so much of it is there."""

        def swapped() -> bool:
            # A request ends early where the kernel meets pages that were just used: only the next one takes them.
            missing_bytes = least_bytes - swapped_bytes(self.path)
            if missing_bytes > 0:
                with suppress(OSError):
                    (self.path / "memory.reclaim").write_text(str(missing_bytes))
            return missing_bytes <= 0

        wait_until(swapped, "it is swapped out")

    def kill(self) -> None:
        """End all processes."""
        file = self.path / "cgroup.kill"
        if file.exists():
            file.write_text("1")
        else:
            for pid in [*self.pids(), self._launcher.pid]:
                os.kill(pid, signal.SIGKILL)
        self._launcher.communicate()
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), "the group becomes empty")

    def end(self) -> None:
        """End all processes, and remove the group."""
        self.kill()

        def remove() -> bool:
            # The kernel may still be ending processes that are no longer listed.
            with suppress(OSError):
                self.path.rmdir()
            return not self.path.exists()

        wait_until(remove, "the group can be removed")


SCOPE: tuple[str, ...] = () if IS_ROOT else ("systemd-run", "--user", "--scope", "--quiet")
PARENT = CGROUPS if IS_ROOT else CGROUPS / "user.slice/user-1000.slice/user@1000.service/app.slice"


@contextmanager
def new_group(**limits: str) -> Iterator[Group]:
    """Make a control group, with the limits that are named as memory_max="64M"."""
    path = PARENT / f"test-{os.getpid()}-{next(_SERIAL)}"
    path.mkdir()
    for name, limit in limits.items():
        (path / name.replace("_", ".")).write_text(limit)
    group = Group(path)
    try:
        yield group
    finally:
        group.end()


@contextmanager
def setting(path: str, value: str) -> Iterator[None]:
    """Change a setting of the kernel for some time."""
    text = Path(path).read_text()
    chosen = text[text.index("[") + 1 : text.index("]")] if "[" in text else text.strip()
    Path(path).write_text(value)
    try:
        yield
    finally:
        Path(path).write_text(chosen)


@contextmanager
def background(*command: str, output: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a program meanwhile, and end it."""
    process = subprocess.Popen(command, text=True, stdout=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def systemctl(*words: str) -> str:
    """Run systemctl for the manager of this user."""
    user = [] if IS_ROOT else ["--user"]
    return subprocess.run(["systemctl", *user, *words], capture_output=True, text=True, check=False).stdout.strip()


def has_file(name: str) -> bool:
    """Return whether groups have a file on this kernel."""
    return (CGROUPS / "system.slice" / name).exists()


only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may set this up")
