"""Files that are truncated and processes that change while they are read: one error, no signal and no traceback."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
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


def stopped_where_it_maps(process: subprocess.Popen[str], path: Path) -> bool:
    """Stop the process as soon as it has the file mapped. Return False where it ended before that was seen."""
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            if str(path) in maps.read_text():
                process.send_signal(signal.SIGSTOP)
                return True
    return False


@pytest.mark.skipif(not LARGE.name, reason="needs a large program")
def test_a_program_that_is_truncated_while_it_is_read_is_one_error(tmp_path: Path) -> None:
    choice = random.Random(20)  # noqa: S311 # moments, not secrets
    path = tmp_path / "program"
    codes = []
    for turn in range(12):
        shutil.copyfile(LARGE, path)
        command = [sys.executable, "-m", "footprint", "symbols", "--no-debug-files", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert stopped_where_it_maps(process, path)
            if turn > 2:  # Later moments of the reading, too: behind the last one the answer is whole.
                process.send_signal(signal.SIGCONT)
                time.sleep(choice.uniform(0, 0.2))
                process.send_signal(signal.SIGSTOP)
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
