"""How a command ends: at once, with its whole answer, unless something waits for the end of the interpreter."""

import subprocess
import sys

import pytest

RUN = """
import os, sys
from footprint.__main__ import run_process
leave = os._exit
def left(code):
    os.write(1, b"left")
    leave(code)
os._exit = left
{before}
sys.argv = ["footprint", {argument!r}]
run_process()
"""


def run(before: str = "", argument: str = "--version") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", RUN.format(before=before, argument=argument)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_command_ends_without_freeing_its_objects() -> None:
    done = run()
    assert done.stdout.startswith("footprint ")
    assert done.stdout.endswith("\nleft")
    assert (done.returncode, done.stderr) == (0, "")
    assert run(argument="--no-such-option").returncode == 2


@pytest.mark.parametrize(
    "before",
    [
        "import atexit; atexit.register(print, 'called')",
        "import threading; threading.Timer(0.1, print, ['called']).start()",
        "import sys; sys.setprofile(lambda *_: None); print('called')",
    ],
    ids=["callback", "thread", "profiler"],
)
def test_what_waits_for_the_end_of_the_interpreter_is_not_cut_off(before: str) -> None:
    done = run(before)
    assert done.returncode == 0
    assert done.stdout.count("called") == 1
    assert "left" not in done.stdout


def test_an_answer_that_cannot_be_written_ends_the_command_with_an_error() -> None:
    script = RUN.format(before="", argument="--version")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
