"""pprof itself reads the profiles that are written."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import footprint
from footprint.cli import main

ROOT = Path(__file__).resolve().parents[2]
HEAP = ROOT / "sample_binaries" / "heap_by_function"


def pprof_top(path: Path) -> str:
    """Return the table of `go tool pprof`, in bytes; Go builds it at its first run."""
    if shutil.which("go") is None:
        pytest.skip("go is missing")
    words = ["go", "tool", "pprof", "-top", "-unit=B", "-nodefraction=0", str(path)]
    environment = os.environ | {"PPROF_TMPDIR": str(path.parent)}
    return subprocess.run(words, env=environment, capture_output=True, check=True, text=True, timeout=300).stdout


def test_a_heap_has_the_functions_and_the_bytes_of_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "heap.pb.gz"
    assert (
        main(["heap", str(HEAP / "massif.out"), "--binary", str(HEAP / "heap"), "--format", "pprof", "-o", str(file)])
        == 0
    )
    # By hand in the README of the sample.
    top = pprof_top(file)
    assert re.search(r"^ *129200B .* filled$", top, re.MULTILINE), top
    assert re.search(r"^ *50000B .* xmalloc$", top, re.MULTILINE), top


def test_an_audit_adds_up_to_its_private_bytes(tmp_path: Path) -> None:
    smaps = ROOT / "tests" / "corpus" / "smaps-sleep.txt"
    file = tmp_path / "audit.pb.gz"
    assert main(["audit", str(smaps), "--format", "pprof", "-o", str(file)]) == 0
    private_bytes = footprint.audit(smaps).totals.private.bytes
    assert f"of {private_bytes}B total" in pprof_top(file)
