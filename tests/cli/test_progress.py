"""The line that says how far `audit --all` is: on a terminal, and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import footprint

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "footprint", "audit", "--all", "sample_binaries"]


def on_terminal(*options: str, term: str = "xterm") -> tuple[bytes, bytes]:
    """Run the command with its errors on a terminal; return its report, and what the terminal got."""
    terminal, errors = os.openpty()
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env={**os.environ, "TERM": term}
    ) as child:
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
        assert child.wait() == 0
    return report, shown


def test_a_terminal_shows_how_many_files_are_done_and_the_line_is_erased() -> None:
    report, shown = on_terminal()
    assert b"audit --all: 0 of " in shown
    assert shown.endswith(b"\r\x1b[K")
    assert b"\x1b[K" not in report


def test_a_pipe_a_simple_terminal_and_quiet_get_no_line() -> None:
    done = subprocess.run(COMMAND, capture_output=True, cwd=ROOT, check=True)
    assert done.stderr == b""
    assert done.stdout == on_terminal()[0]
    assert on_terminal(term="dumb")[1] == b""
    assert on_terminal("--quiet")[1] == b""


def test_each_file_is_told_once_and_the_answer_does_not_depend_on_it() -> None:
    told: list[tuple[int, int]] = []
    found = footprint.survey(ROOT / "sample_binaries", on_progress=lambda done, count: told.append((done, count)))
    assert told == [(done, len(told)) for done in range(len(told))]
    assert len(told) >= len(found.programs) > 0
    assert found == footprint.survey(ROOT / "sample_binaries")
