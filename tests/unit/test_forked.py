"""A copy of a process tells all or nothing, keeps to its limits, and never outlives the process."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

# The copy is killed when all but the last byte of its answer is in the pipe.
_ANSWERS = """
import json, os, resource, signal, sys
from footprint.process import two_processors
resource.setrlimit(resource.RLIMIT_CPU, (50, resource.getrlimit(resource.RLIMIT_CPU)[1]))
class Cut:
    def __init__(self, descriptor, mode):
        self.descriptor = descriptor
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
    def write(self, told):
        os.write(self.descriptor, told if len(told) == 8 else told[:-1])
        if len(told) != 8:
            os.kill(os.getpid(), signal.SIGKILL)
def work():
    if sys.argv[1] == "fails":
        raise MemoryError
    if sys.argv[1] == "is killed":
        two_processors.open = Cut
    return json.dumps([resource.getrlimit(which)[0] for which in (resource.RLIMIT_CPU, resource.RLIMIT_CORE)]).encode()
with two_processors.forked(work, {resource.RLIMIT_CPU: 600}) as answer:
    told, number = answer()
print(json.dumps([told.decode(), number]))
"""
_ENDS = """
import os, signal, sys, time
from footprint.process import two_processors
def work():
    print(os.getpid(), flush=True)
    signal.pause()
def refuse(pid, number):
    raise PermissionError
with two_processors.forked(work, {}):
    if sys.argv[1] == "waits":
        signal.pause()
    if sys.argv[1] == "may not signal":
        os.kill = refuse
    sys.stdin.readline()
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("end", "expected"), [("works", ["[50, 0]", 0]), ("fails", ["", 0]), ("is killed", ["", int(signal.SIGKILL)])]
)
def test_a_copy_tells_all_or_nothing_and_raises_no_limit(end: str, expected: list[object]) -> None:
    done = subprocess.run([sys.executable, "-c", _ANSWERS, end], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("end", ["waits", "raises", "may not signal"])
def test_a_copy_ends_with_its_process(end: str) -> None:
    command = [sys.executable, "-c", _ENDS, end]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        copy = int(process.stdout.readline())
        if end == "waits":
            process.terminate()
        _, told = process.communicate("\n", timeout=60)
    assert process.returncode in {-signal.SIGTERM, -signal.SIGINT, 1}, told
    assert not runs_on(copy)


def runs_on(pid: int) -> bool:
    """Return whether a process is there a minute later; who has no parent that waits for it stays as a zombie."""
    until = time.monotonic() + 60
    with suppress(FileNotFoundError, ProcessLookupError):
        while time.monotonic() < until:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            time.sleep(0.01)
        return True
    return False
