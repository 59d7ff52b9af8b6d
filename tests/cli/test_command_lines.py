"""Command lines in answers: who may read them, and how to leave them out."""

import json
import os
import stat
from pathlib import Path

import pytest

from footprint.cli import main

SMAPS = Path(__file__).resolve().parents[1] / "corpus" / "smaps-sleep.txt"
TEXT = f"""footprint-text-capture/1 token
kernel 6.1.0
machine x86_64

token 4711 status
Name:\tapp
State:\tS (sleeping)
VmSize:\t100 kB

token 4711 smaps
{SMAPS.read_text("utf-8").rstrip()}

token 4711 cmdline
/opt/app\0--token\0hunter2\0argument\0
token end
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of its own, with the capture of one process."""
    (tmp_path / "one.capture").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mode_of(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.md", "a.csv", "a.html"])
def test_a_new_file_with_command_lines_is_for_its_owner_only(name: str) -> None:
    assert main(["audit", "one.capture", "-o", name]) == 0
    assert mode_of(name) == 0o600


def test_a_file_that_exists_keeps_its_mode() -> None:
    Path("a.json").touch()
    Path("a.json").chmod(0o640)
    assert main(["audit", "one.capture", "-o", "a.json"]) == 0
    assert mode_of("a.json") == 0o640


@pytest.mark.parametrize("words", [["-o", "a.prom"], ["-o", "a.json", "--no-command"]])
def test_a_file_without_command_lines_is_for_everybody(words: list[str]) -> None:
    before = os.umask(0o022)
    try:
        assert main(["audit", "one.capture", *words]) == 0
    finally:
        os.umask(before)
    assert mode_of(words[1]) == 0o644


def test_without_command_lines_no_argument_is_in_the_answer() -> None:
    assert main(["audit", "one.capture", "-o", "with.json"]) == 0
    assert json.loads(Path("with.json").read_bytes())["target"]["command"] == "/opt/app --token *** argument"
    assert main(["audit", "one.capture", "-o", "without.json", "--no-command"]) == 0
    assert json.loads(Path("without.json").read_bytes())["target"]["command"] == "app"


def test_without_command_lines_a_saved_audit_loses_them() -> None:
    assert main(["audit", "one.capture", "-o", "with.json"]) == 0
    assert main(["audit", "with.json", "-o", "without.json", "--no-command"]) == 0
    assert json.loads(Path("without.json").read_bytes())["target"]["command"] == "/opt/app"


def test_without_command_lines_the_script_reads_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--script"]) == 0
    assert "cmdline" in capsys.readouterr().out
    assert main(["capture", "--script", "--no-command"]) == 0
    assert "cmdline" not in capsys.readouterr().out
