"""Inputs that depend on this machine: files of sysfs, and processes with many files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from footprint.system.files import map_descriptor, open_input

NOTES = Path("/sys/kernel/notes")


def test_the_answer_is_the_same_however_few_files_may_be_open() -> None:
    # A Python with these modules has some 20 files mapped.
    mapping = "import ctypes, decimal, json, sqlite3, ssl, time; print(flush=True); time.sleep(3600)"
    code = (
        "import json, resource, sys; import footprint; most = int(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, max(most, resource.getrlimit(resource.RLIMIT_NOFILE)[1])));"
        "found = footprint.audit(int(sys.argv[2]));"
        "print(json.dumps([found.notes, [row[:5] for row in found.ledger]]))"
    )
    with subprocess.Popen([sys.executable, "-c", mapping], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        answers = {
            subprocess.run(
                [sys.executable, "-c", code, str(most), str(child.pid)], capture_output=True, check=True
            ).stdout
            for most in (12, 1000)
        }
        child.kill()
    assert len(answers) == 1


@pytest.mark.skipif(not os.access(NOTES, os.R_OK), reason="no sysfs")
def test_a_file_of_sysfs_which_cannot_be_mapped_is_read() -> None:
    expected = NOTES.read_bytes()
    assert bytes(open_input(str(NOTES))) == expected
    descriptor = os.open(NOTES, os.O_RDONLY)
    try:
        assert bytes(map_descriptor(descriptor, str(NOTES))) == expected
    finally:
        os.close(descriptor)
