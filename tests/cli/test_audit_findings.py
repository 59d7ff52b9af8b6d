"""`footprint audit --findings` takes live processes, and refuses every other target."""

import pytest

from footprint.cli import main

Captured = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize("words", [("tests/corpus/smaps-sleep.txt",), ("--all", ".")])
def test_only_live_processes_are_asked_for_findings(capfdbinary: Captured, words: tuple[str, ...]) -> None:
    assert main(["audit", "--findings", *words]) == 2
    assert b"--findings goes with" in capfdbinary.readouterr().err
