"""The moment at which to read a program, how to recognise it, and how the program came to it and ended."""

import math
import os
import re
import select
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from footprint.errors import Note

if TYPE_CHECKING:
    from footprint.model.over_time import Peak
    from footprint.process.start_counters import StartCounters

_SIZE = re.compile(rb"^(\w+):\s+([0-9]+) kB$", re.MULTILINE)


def private_bytes(task: int) -> int | None:
    """Read anonymous and swapped memory, from the cheapest exact source, else from the status text."""
    exact = counted_sizes(task, "smaps_rollup")
    if b"Anonymous" in exact:
        return exact[b"Anonymous"] + exact.get(b"Swap", 0)
    counted = counted_sizes(task, "status")
    return counted[b"RssAnon"] + counted.get(b"VmSwap", 0) if b"RssAnon" in counted else None


def peak_and_resident_bytes(task: int) -> tuple[int, int]:
    """Read the peak and the current resident memory; 0 where not readable."""
    status = counted_sizes(task, "status")
    return status.get(b"VmHWM", 0), counted_sizes(task, "smaps_rollup").get(b"Rss", status.get(b"VmRSS", 0))


def counted_sizes(task: int, name: str) -> dict[bytes, int]:
    """Read the sizes in a text of /proc, in bytes; empty where not readable."""
    with suppress(OSError), open(f"/proc/{task}/{name}", "rb") as file:
        return {key: int(number) * 1024 for key, number in _SIZE.findall(file.read())}
    return {}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program that was started ended, and what was seen of it until it was read.

    Attributes:
        exit_code: The exit code; None where a signal or footprint ended the program.
        signal: The name of the signal that ended it; None where it exited or footprint ended it.
        notes: Problems on the way; those with the figures are in the audit.
        peak: The peak of it and its descendants until the read; None where nobody asked for it.
        read_at_bytes: What they held when they were read, as the peak counts it.
        crashes: How descendants crashed until then, where they are read, too.
        out_of_memory: The limit at which the kernel killed one of them for want of memory, "" where no limit of a
            control group is known; None where it killed none. They were read before, if that was possible.
        spent: What it cost from its execve(2) to the moment of the read; None where its execve was not seen.
    """

    exit_code: int | None
    signal: str | None
    notes: tuple[Note, ...]
    peak: "Peak | None" = None
    read_at_bytes: int = 0
    crashes: tuple[str, ...] = ()
    out_of_memory: str | None = None
    spent: "StartCounters | None" = None


Sink = Callable[[bytes], object]


class Streams(NamedTuple):
    """The input file of a program, and the receivers of its output.

    Attributes:
        input_path: The file for its standard input, opened at its start.
        output: Called with each piece of its standard output.
        errors: Called with each piece of its standard error.
    """

    input_path: str
    output: Sink
    errors: Sink


def rereadable_input() -> str:
    """Return the path of our standard input, if it is a file: each start can read it anew; else /dev/null."""
    try:
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        is_file = False
    return "/proc/self/fd/0" if is_file else os.devnull


def pass_on(piece: bytes) -> None:
    """Write a piece of output to our standard error."""
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(2, rest) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(2, select.POLLOUT)
            poll.poll()
        except OSError:
            # Nobody reads it; the program keeps running.
            return


_QUIET_SECONDS: Final = 1.0  # how long private memory must not change to count as settled
_QUIET_SHARE: Final = 0.005  # the change that is allowed in that time
_LOOK_SECONDS: Final = 0.1  # the time between two measurements
_PROMPT_SECONDS: Final = 0.1  # after this time a line without an end counts as a prompt
_MOST_LINE_BYTES: Final = 1 << 16


class When(StrEnum):
    """The event at which a program is read."""

    EXIT = "exit"
    SETTLED = "settled"
    TIME = "time"
    OUTPUT = "output"
    PEAK = "peak"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to read a program.

    Attributes:
        when: The event.
        seconds: For `TIME` the time after its start; for all others but `EXIT` the time after which to read it anyway.
        pattern: For `OUTPUT` the pattern to find in a line of its output.
        peak_bytes: For `PEAK` the memory of all its processes at which to read it.
        is_held: For `PEAK` whether the kernel holds them there, where they are in a cgroup: they may see that limit.
        end_seconds: How long it may take to end after SIGTERM, before it gets SIGKILL; None for 3 seconds.
    """

    when: When
    seconds: float = 60.0
    pattern: re.Pattern[bytes] | None = None
    peak_bytes: int = 0
    is_held: bool = False
    end_seconds: float | None = None


class Calm:
    """Watches private memory until it stops changing."""

    def __init__(self) -> None:
        self._size_bytes = -1
        self._since = 0.0
        self._next_look = 0.0

    def is_calm(self, task: int) -> bool:
        """Measure a process, but not too often, and return whether its memory has settled."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        size_bytes = private_bytes(task)
        # The kernel walks all pages to count them: do not slow down a large process.
        self._next_look = now + max(_LOOK_SECONDS, 4 * (time.monotonic() - now))
        slack_bytes = max(os.sysconf("SC_PAGE_SIZE"), self._size_bytes * _QUIET_SHARE)
        if size_bytes is None or abs(size_bytes - self._size_bytes) > slack_bytes:
            self._size_bytes = -1 if size_bytes is None else size_bytes
            self._since = now
        return now - self._since >= _QUIET_SECONDS


class Lines:
    """Forwards the output of a program, and searches its lines."""

    def __init__(self, pattern: re.Pattern[bytes] | None) -> None:
        self._pattern = pattern
        self._rests: dict[int, bytes] = {}
        self._fed_at = math.inf
        self._is_found = False

    def feed(self, sink: Sink, descriptor: int) -> bool:
        """Read and forward a piece of output; return False at its end."""
        try:
            piece = os.read(descriptor, _MOST_LINE_BYTES)
        except BlockingIOError:
            return True
        sink(piece)
        self._fed_at = time.monotonic()
        if self._pattern is not None and not self._is_found:
            *lines, rest = (self._rests.get(descriptor, b"") + piece).split(b"\n")
            if len(rest) > _MOST_LINE_BYTES:
                lines.append(rest)
                rest = b""
            self._rests[descriptor] = rest
            self._look_at(lines)
        return bool(piece)

    def is_found(self) -> bool:
        """Return whether a line was found. A line without an end counts when nothing has followed it for some time."""
        if time.monotonic() - self._fed_at >= _PROMPT_SECONDS:
            self._look_at(rest for rest in self._rests.values() if rest)
            self._fed_at = math.inf
        return self._is_found

    def _look_at(self, lines: Iterable[bytes]) -> None:
        pattern = self._pattern
        if pattern is not None and any(pattern.search(line.removesuffix(b"\r")) for line in lines):
            self._is_found = True
            self._rests.clear()
