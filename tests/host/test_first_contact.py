"""The commands of the first screen run on this machine, as they stand there."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "footprint"]


def test_each_command_of_the_first_screen_runs_on_this_machine() -> None:
    for _ in range(5):
        screen = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=False).stdout
        commands = [shlex.split(line) for line in screen.splitlines() if line.startswith("  footprint ")]
        assert len(commands) == 4
        done = [
            subprocess.run(
                [*COMMAND, *words[1:], "-q"] if words[1] != "run" else [*COMMAND, *words[1:]],
                cwd=ROOT,
                capture_output=True,
                check=False,
            )
            for words in commands
        ]
        # A process that ended meanwhile is no example; then the screen shows another one.
        if os.path.exists(f"/proc/{commands[0][1]}"):
            break
    assert [(one.returncode, one.stderr) for one in done[:3]] == [(0, b"")] * 3
    assert done[3].returncode == 0
    assert all(one.stdout for one in done)
