"""`footprint diff`: of what kinds of targets, and what it says at N processes."""

import gzip
import json
from pathlib import Path

import pytest

from footprint.cli import main

ROOT = Path(__file__).resolve().parents[2]
SHADOW = ROOT / "sample_binaries" / "condor_shadow"
HEAP = ROOT / "tests" / "corpus" / "heap"
MASSIF = str(HEAP / "massif-3.19-default.out")
Captured = pytest.CaptureFixture[str]


def diff(capsys: Captured, *words: str) -> tuple[int, str, str]:
    code = main(["diff", *words])
    return code, *capsys.readouterr()


def test_allocator_profiles_are_compared_as_heap_does(capsys: Captured) -> None:
    other = str(HEAP / "massif-3.19-time-ms.out")
    code, out, _ = diff(capsys, MASSIF, other)
    assert main(["heap", MASSIF, other]) == code == 0
    assert out == capsys.readouterr().out
    code, out, _ = diff(capsys, MASSIF, other, "--json")
    assert [one["file"] for one in json.loads(out)["profiles"]] == [MASSIF, other]


def test_a_profile_is_compared_with_a_profile_and_nothing_else(capsys: Captured, tmp_path: Path) -> None:
    code, _, error = diff(capsys, str(SHADOW / "base"), MASSIF)
    assert (code, error.count("\n")) == (2, 1)
    assert f"{MASSIF} is an allocator profile, {SHADOW / 'base'} is none" in error
    assert diff(capsys, MASSIF, MASSIF, "-n", "10")[0] == 2
    assert "does not give speedscope" in diff(capsys, MASSIF, MASSIF, "--format", "speedscope")[2]
    # Its compressed text ends in the middle.
    damaged = tmp_path / "dhat.json.gz"
    damaged.write_bytes(gzip.compress((HEAP / "dhat-3.19-heap.json").read_bytes())[:-40])
    code, _, error = diff(capsys, MASSIF, str(damaged))
    assert (code, error.count("\n")) == (3, 1)
    assert str(damaged) in error
