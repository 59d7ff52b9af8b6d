"""`footprint duplicates` of live processes: which files are read, and how much of the copies is private."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from footprint.cli import main
from tests.jsonschemas import WRITTEN

ROOT = Path(__file__).resolve().parents[2]


CONDOR = "sample_binaries/condor_shadow"


Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def ask(captured: Captured, *words: str, code: int = 0) -> str:
    assert main(["duplicates", *words]) == code
    out, error = captured.readouterr()
    assert code or not error
    return out or error


def asked_of(captured: Captured, *words: str) -> str:
    assert main([*words, "--json"]) == 0
    return captured.readouterr().out


def ask_json(captured: Captured, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(captured, *words, "--json"))
    assert [error.message for error in WRITTEN.iter_errors(found)] == []
    return found


@contextmanager
def running() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, and wait until its libraries are loaded."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(b".")
            child.stdin.flush()
            child.stdout.read(1)
            yield child
        finally:
            child.kill()


def test_of_a_process_all_files_are_read_that_it_runs(capsys: Captured) -> None:
    with running() as child:
        found = ask_json(capsys, str(child.pid))
    assert found["target"]["pid"] == child.pid
    assert any("libc" in file["file"] for file in found["files"])
    # They are called as its mappings call them, and not as they are reached.
    assert "/proc/" not in json.dumps(found)


def test_of_a_process_it_is_told_how_much_is_private_now(capsys: Captured) -> None:
    with subprocess.Popen([f"{CONDOR}/base", "--wait"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert any(line == b"ready\n" for line in child.stdout)
            # Where libc's debug file is installed, libc has copies of its own.
            target = ("--no-debug-files", str(child.pid))
            result = ask_json(capsys, *target)
            text = ask(capsys, *target)
            ledger = json.loads(asked_of(capsys, "audit", *target))["ledger"]
            findings = json.loads(asked_of(capsys, "audit", "--findings", *target))["findings"]
        finally:
            child.kill()
    # As the ledger has it, which knows the symbols one by one.
    private_bytes = {row["symbol"]: row["bytes"] for row in ledger if row["symbol"]}
    (copies,) = result["duplicates"]
    assert copies["private_bytes"] == private_bytes["_ZN7classadL12NULL_XACTIONE"]
    large = {one["subject"]: one["private_bytes"] for one in result["findings"] if one["rule"] == "large-static"}
    assert {"answer.0", "answer.1", "unused_state"} <= large.keys()
    assert all(private_bytes.get(name, 0) == size for name, size in large.items())
    assert large["unused_state"] == 0
    assert "none of it is private now" in " ".join(text.split())
    assert ["waste", "copies", "size", "private", "cost", "confidence", "name"] in map(str.split, text.splitlines())
    told = {finding["subject"]: finding["private_bytes"] for finding in findings if finding["rule"] == "large-static"}
    assert told == large
    assert copies["private_bytes"] in [one["private_bytes"] for one in findings if one["rule"] == "duplicate-static"]
