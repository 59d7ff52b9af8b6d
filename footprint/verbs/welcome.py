"""The first screen: what can be asked of this machine."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from shutil import which
from typing import Final, NamedTuple

from footprint.text.escape import printable

_MOST_PROCESSES: Final = 4000
# The place of the start among the fields of /proc/PID/stat behind the name (proc_pid_stat(5), field 22).
_START_TICKS: Final = 19
_WIDTH: Final = 80
_LASTING_SECONDS: Final = 60


class Running(NamedTuple):
    """A live process that may be read.

    Attributes:
        pid: Its number.
        name: The name that the kernel has for it.
        program: The path of its program; None where that is not known here.
        resident_pages: Its resident memory without shared pages.
        age_seconds: How long it runs.
    """

    pid: int
    name: str
    program: str | None
    resident_pages: int
    age_seconds: float = 0


def machine() -> str:
    """Return the first screen with a live process, a program and the memory of this machine."""
    running = proposed(_processes())
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return welcome(running or Running(os.getppid(), "this shell", None, 0), max(memory_bytes >> 30, 1))


def proposed(processes: Iterable[Running]) -> Running | None:
    """Return the largest process that has run for a minute, else the oldest: it is there when it is audited."""
    return max(processes, key=lambda live: (min(live.age_seconds, _LASTING_SECONDS), live.resident_pages), default=None)


def welcome(running: Running, memory_gib: int) -> str:
    """Return four examples for a process and a machine.

    Args:
        running: The process.
        memory_gib: The memory of the machine.
    """
    program = running.program or os.path.realpath(sys.executable)
    examples = (
        (f"footprint {running.pid}", f"where the memory of {running.name} is"),
        (f"footprint audit {running.pid} --memory {memory_gib}GiB", "how many of them fit into this machine"),
        (f"footprint {program}", "what a program costs before it runs, and what it does not need"),
        (f"footprint run -- {'ls -l' if which('ls') else f'{sys.executable} -V'}", "what a program holds when it ends"),
    )
    lines = [
        "Usage: footprint COMMAND [OPTIONS] [TARGET]...",
        "",
        "footprint shows where the memory of a Linux process goes, and what N of them",
        "cost. On this machine, for example:",
        "",
        *_lines((printable(command), printable(text)) for command, text in examples),
        "",
        "`footprint -h` lists all commands, `footprint COMMAND -h` their options;",
        "`footprint doctor` shows what this machine lets footprint read.",
    ]
    return "\n".join(lines) + "\n"


def _lines(examples: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Format commands with their texts in one column, or below them where the line would be too long."""
    those = tuple(examples)
    column = max(len(command) for command, _ in those) + 4
    if column + max(len(text) for _, text in those) <= _WIDTH:
        yield from (f"  {command:{column - 2}}{text}" for command, text in those)
        return
    for command, text in those:
        yield f"  {command}"
        yield f"      {text}"


def _processes() -> Iterator[Running]:
    """Find the processes of this user that may be read, but for this one."""
    user, ticks_per_second = os.geteuid(), os.sysconf("SC_CLK_TCK")
    for entry in [entry for entry in os.listdir("/proc") if entry.isdigit()][:_MOST_PROCESSES]:
        folder = f"/proc/{entry}"
        # Processes end, and some may not be read.
        with suppress(OSError, ValueError, IndexError):
            if int(entry) == os.getpid() or os.stat(folder).st_uid != user:
                continue
            with open(f"{folder}/statm", encoding="ascii") as statm:
                _, resident, shared, *_ = map(int, statm.read().split())
            with open(f"{folder}/stat", "rb") as stat:
                start_ticks = int(stat.read().rpartition(b")")[2].split()[_START_TICKS])
            with open(f"{folder}/comm", encoding="utf-8", errors="surrogateescape") as comm:
                name = comm.read().rstrip("\n")
            with open(f"{folder}/smaps", "rb") as smaps:
                if smaps.read(1):
                    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / ticks_per_second
                    yield Running(int(entry), name, _program(folder), resident - shared, age_seconds)


def _program(folder: str) -> str | None:
    path = os.readlink(f"{folder}/exe")
    with suppress(OSError):
        # A container has files of its own, and a program may have been replaced.
        if os.path.samestat(os.stat(path), os.stat(f"{folder}/exe")):
            return path
    return None
