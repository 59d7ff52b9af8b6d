"""Starting a program, and holding it still where its own code is about to begin: it never runs a line of it.

Source: ptrace(2), getauxval(3), proc_pid_mem(5).
"""

import os
import signal
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from footprint.errors import AccessError
from footprint.process.ptrace import ptrace

__all__ = ("AT_BASE", "AT_ENTRY", "HeldProgram", "held_at_start")

AT_BASE: Final = 7
AT_ENTRY: Final = 9

_TRACEME: Final = 0
_CONT: Final = 7
_SETOPTIONS: Final = 0x4200
_EXITKILL: Final = 1 << 20
# On no machine are eight bytes of ones an instruction: a program that comes to them stops there by a signal.
_NO_INSTRUCTION: Final = b"\xff" * 8
_FAULTS: Final = frozenset({signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP})
_PATIENCE_SECONDS: Final = 10.0


class HeldProgram:
    """A program that stands still, and has run nothing of its own code yet."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid = pid
        self._name = name
        with open(f"/proc/{pid}/auxv", "rb") as file:
            words = array("L", file.read())
        self._auxiliary = dict(zip(words[::2], words[1::2], strict=True))

    def auxiliary(self, key: int) -> int:
        """Give what the kernel told it at its start, such as `AT_ENTRY`; 0 where that is nothing."""
        return self._auxiliary.get(key, 0)

    def run_to(self, addr: int) -> None:
        """Let it run until it comes to an address of its code, the page of which becomes private by this.

        Raises:
            AccessError: Where it ends before, or takes too long.
        """
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(addr)
            code = memory.read(len(_NO_INSTRUCTION))
            memory.seek(addr)
            memory.write(_NO_INSTRUCTION)
            ptrace(_CONT, self.pid)
            if _next_stop(self.pid, self._name) not in _FAULTS:
                raise AccessError(self._name, "a signal stopped it before it came to its own code")
            memory.seek(addr)
            memory.write(code)


@contextmanager
def held_at_start(program: str) -> Iterator[HeldProgram]:
    """Start a program without arguments, hold it before anything of it has run, and end it afterwards.

    Raises:
        AccessError: Where it cannot be started or traced.
    """
    pid = os.fork()
    if pid == 0:
        _become(program)
    try:
        try:
            if _next_stop(pid, program) != signal.SIGTRAP:
                raise AccessError(program, "it cannot be held at its start")
            ptrace(_SETOPTIONS, pid, _EXITKILL)
            held = HeldProgram(pid, program)
        except OSError as error:
            raise AccessError(program, f"it cannot be held at its start: {error.strerror}") from error
        yield held
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _become(program: str) -> NoReturn:
    """Turn the new process into the program, which is traced from then on and hears and says nothing."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        ptrace(_TRACEME, 0)
        os.execv(program, [program])  # noqa: S606 # this is what it is for
    finally:
        os._exit(127)


def _next_stop(pid: int, name: str) -> int:
    """Wait until it stops, and give the signal that stopped it."""
    patience_end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < patience_end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found and os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        if found:
            raise AccessError(name, "it ended before it came to its own code")
        time.sleep(0.0005)
    raise AccessError(name, f"it did not come to its own code within {_PATIENCE_SECONDS:g} seconds")
