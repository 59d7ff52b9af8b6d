"""Ctrl-C at any moment of a command: no traceback, and never an exit code that says something about the answer."""

import signal
import subprocess
import sys

import pytest

INTERRUPTED_AT_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["footprint", "audit", "tests/corpus/smaps-sleep.txt"]
from footprint.__main__ import command
sys.exit(command())
"""
INTERRUPTED_AT_EXIT = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["footprint", "--version"]
from footprint.__main__ import command
sys.exit(command())
"""


def run(script: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("footprint.cli", -signal.SIGINT),
        ("footprint.errors", -signal.SIGINT),
        ("footprint.verbs.commands", 130),
        ("footprint.verbs.audit.command", 130),
        ("footprint.formats.text", 130),
    ],
)
def test_an_interrupt_while_modules_are_imported_leaves_no_traceback(module: str, code: int) -> None:
    assert run(INTERRUPTED_AT_IMPORT.format(module=module)) == (code, "")


def test_an_interrupt_while_the_interpreter_ends_leaves_no_traceback() -> None:
    assert run(INTERRUPTED_AT_EXIT) == (-signal.SIGINT, "")


def test_a_command_that_a_shell_started_in_the_background_keeps_ignoring_interrupts() -> None:
    script = 'trap "" INT; exec "$0" -c "$1"'
    background = "import signal; from footprint.__main__ import command; print(signal.getsignal(signal.SIGINT).name)"
    done = subprocess.run(["sh", "-c", script, sys.executable, background], capture_output=True, text=True, check=True)
    assert done.stdout == "SIG_IGN\n"


INTERRUPTED_IN_A_CLASS = """
import functools, os, signal, sys

class Property(functools.cached_property):
    def __set_name__(self, owner, name):
        super().__set_name__(owner, name)
        os.kill(os.getpid(), signal.SIGINT)

from footprint.__main__ import command
functools.cached_property = Property
sys.argv = ["footprint", "audit", "tests/corpus/smaps-sleep.txt"]
sys.exit(command())
"""


def test_an_interrupt_that_an_import_replaces_by_another_error_ends_the_command_too() -> None:
    # Python 3.11 makes a RuntimeError of what is raised while a class is made, and the exit code would be 1.
    assert run(INTERRUPTED_IN_A_CLASS) == (130, "")


INTERRUPTED_IN_A_CALLBACK = """
import os, signal, sys, weakref

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "footprint.formats.text":
            kept = Interrupt()
            reference = weakref.ref(kept, lambda _: interrupt())
            del kept

def interrupt():
    raise KeyboardInterrupt

from footprint.__main__ import command
sys.meta_path.insert(0, Interrupt())
sys.argv = ["footprint", "audit", "tests/corpus/smaps-sleep.txt"]
sys.exit(command())
"""


def test_an_interrupt_that_python_drops_in_a_callback_ends_the_command_too() -> None:
    assert run(INTERRUPTED_IN_A_CALLBACK) == (130, "")
