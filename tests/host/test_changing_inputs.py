"""Files that are truncated and processes that change while they are read: one error, no signal and no traceback."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import churn

ERRORS = ("it was truncated while footprint read it", "beyond the end of the file", "the file is empty", "is damaged")
LARGE = max(
    (
        path
        for path in (*map(Path, ["/usr/bin/node", "/usr/bin/gdb"]), *Path("/usr/lib").glob("*/libLLVM*.so*"))
        if path.is_file()
    ),
    key=lambda path: path.stat().st_size,
    default=Path(),
)


# It stops at a call of a function in Python, counted from where it maps the file: a moment that no machine moves.
STOPPING = """
import os, signal, sys
from footprint.cli import main
path, stop_at = sys.argv[1], int(sys.argv[2])
calls = 0
def count(_frame, event, _argument):
    global calls
    calls += event == "call"
    if calls == stop_at and event == "call":
        os.kill(os.getpid(), signal.SIGSTOP)
def mapping(event, words):
    if event == "mmap.__new__" and words[0] >= 0 and os.path.samestat(os.fstat(words[0]), os.stat(path)):
        sys.setprofile(count)
sys.addaudithook(mapping)
sys.exit(main(["symbols", "--no-debug-files", path]))
"""


@pytest.mark.skipif(not LARGE.name, reason="needs a large program")
def test_a_program_that_is_truncated_while_it_is_read_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "program"
    codes = []
    # Behind the last call that reads, the answer is whole.
    for turn, stop_at in enumerate([1, 1, 1, *(1 << power for power in range(2, 15, 2))]):
        shutil.copyfile(LARGE, path)
        command = [sys.executable, "-c", STOPPING, str(path), str(stop_at)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert stopped is not None
            assert stopped.si_code == os.CLD_STOPPED
            os.truncate(path, (0, 5000, 1 << 20)[turn % 3])
            process.send_signal(signal.SIGCONT)
            _, error = process.communicate(timeout=60)
        codes.append(process.returncode)
        assert process.returncode in {0, 3}, error
        assert not error or (error.count("\n") == 1 and any(each in error for each in ERRORS)), error
    assert codes[:3] == [3, 3, 3]


def test_processes_that_change_all_the_time_are_audited_or_are_one_error() -> None:
    codes, defects = churn.runs(24)
    assert defects == []
    assert codes[0] > 0


def test_many_calls_keep_no_memory_and_no_descriptor() -> None:
    memory_bytes, descriptors = churn.soak(20)
    assert len(set(descriptors[1:])) == 1
    # The first calls import modules and fill caches.
    assert max(memory_bytes[5:]) - memory_bytes[4] < 4 << 20
