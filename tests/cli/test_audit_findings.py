"""`footprint audit --findings` takes one live process, and refuses every other target."""

import pytest

from footprint.cli import main

Captured = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize("words", [("tests/corpus/smaps-sleep.txt",), ("--all", "."), ("1", "2")])
def test_only_one_live_process_is_asked_for_findings(capfdbinary: Captured, words: tuple[str, ...]) -> None:
    assert main(["audit", "--findings", *words]) == 2
    assert b"--findings goes with" in capfdbinary.readouterr().err
