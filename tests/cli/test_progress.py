"""The line that says how far `audit --all` is, or what a long wait is for: on a terminal, and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import footprint

ROOT = Path(__file__).resolve().parents[2]
FOOTPRINT = [sys.executable, "-m", "footprint"]
COMMAND = [*FOOTPRINT, "audit", "--all", "sample_binaries"]


def on_terminal(*command: str, term: str = "xterm", code: int = 0) -> tuple[bytes, bytes]:
    """Run a command with its errors on a terminal; return its report, and what the terminal got."""
    terminal, errors = os.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=environment) as child:
        os.close(errors)
        assert child.stdout is not None
        report, shown = child.stdout.read(), b""
        try:
            while block := os.read(terminal, 1 << 16):
                shown += block
        except OSError:
            # The terminal has no other side any more.
            pass
        os.close(terminal)
        assert child.wait() == code
    return report, shown


def test_a_terminal_shows_how_many_files_are_done_and_the_line_is_erased() -> None:
    report, shown = on_terminal(*COMMAND)
    assert b"audit --all: 0 of " in shown
    assert shown.endswith(b"\r\x1b[K")
    assert b"\x1b[K" not in report


def test_a_pipe_a_simple_terminal_and_quiet_get_no_line() -> None:
    wide = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(COMMAND, capture_output=True, cwd=ROOT, check=True, env=wide)
    assert done.stderr == b""
    assert done.stdout == on_terminal(*COMMAND)[0]
    assert on_terminal(*COMMAND, term="dumb")[1] == b""
    assert on_terminal(*COMMAND, "--quiet")[1] == b""


def test_a_long_wait_says_on_a_terminal_what_it_is_for(tmp_path: Path) -> None:
    # A named pipe is given two seconds to get a writer.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    _, shown = on_terminal(*FOOTPRINT, str(pipe), code=3)
    line, error = shown.split(b"\r\x1b[K")[1], shown.split(b"\r\x1b[K")[-1]
    assert line == f"footprint reads {pipe}  1 s".encode()
    assert error.startswith(f"footprint: {pipe}: ".encode())


def test_each_file_is_told_once_and_the_answer_does_not_depend_on_it() -> None:
    told: list[tuple[int, int]] = []
    found = footprint.survey(ROOT / "sample_binaries", on_progress=lambda done, count: told.append((done, count)))
    assert told == [(done, len(told)) for done in range(len(told))]
    assert len(told) >= len(found.programs) > 0
    assert found == footprint.survey(ROOT / "sample_binaries")


def test_no_color_leaves_no_escape_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    _, shown = on_terminal(*COMMAND)
    assert b"audit --all: 0 of " in shown
    assert b"\x1b" not in shown
    assert shown.rpartition(b"files")[2].strip() == b""
