"""The moment at which to read a program, and how to recognise it."""

import math
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from footprint.process.launch.memory import private_bytes
from footprint.process.launch.streams import Sink

__all__ = ("Calm", "Lines", "Moment", "When")

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
