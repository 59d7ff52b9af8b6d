"""Files that are truncated and processes that change while they are read: one error, no signal and no traceback."""

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks import churn

NODE = shutil.which("node") or ""
ERRORS = ("it was truncated while footprint read it", "beyond the end of the file", "the file is empty", "is damaged")


@pytest.mark.skipif(not NODE, reason="needs a large program: node")
def test_a_program_that_is_truncated_while_it_is_read_is_one_error(tmp_path: Path) -> None:
    choice = random.Random(20)  # noqa: S311 # moments, not secrets
    path = tmp_path / "program"
    codes = set()
    for _ in range(12):
        shutil.copyfile(NODE, path)
        command = [sys.executable, "-m", "footprint", "symbols", "--no-debug-files", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

            def truncate() -> None:
                time.sleep(choice.uniform(0.05, 0.4))
                os.truncate(path, choice.choice([0, 5000, 1 << 20]))

            thread = threading.Thread(target=truncate)
            thread.start()
            _, error = process.communicate(timeout=60)
            thread.join()
        codes.add(process.returncode)
        assert process.returncode in {0, 3}, error
        assert not error or (error.count("\n") == 1 and any(each in error for each in ERRORS)), error
    assert 3 in codes


def test_processes_that_change_all_the_time_are_audited_or_are_one_error() -> None:
    codes, defects = churn.runs(24)
    assert defects == []
    assert codes[0] > 0


def test_many_calls_keep_no_memory_and_no_descriptor() -> None:
    memory_bytes, descriptors = churn.soak(20)
    assert len(set(descriptors[1:])) == 1
    # The first calls import modules and fill caches.
    assert max(memory_bytes[5:]) - memory_bytes[4] < 4 << 20
