"""Wait for live processes, read what the kernel tells of them, and end them at a bad moment."""

import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from traceback import walk_stack
from types import CodeType

import pytest

from footprint.errors import AccessError
from footprint.process.launch import launch
from footprint.process.launch.moment import Moment, When

__all__ = (
    "PATIENCE_SECONDS",
    "DyingOS",
    "is_ptrace_allowed",
    "private_bytes_between",
    "resting",
    "states",
    "status_of",
    "wait_until",
    "within",
)

PATIENCE_SECONDS = 120
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > end:
            pytest.fail(f"waited {PATIENCE_SECONDS} s for {what}")
        time.sleep(0.01)


def within(bound: float, attempt: Callable[[], tuple[float, float]]) -> None:
    """Compare our figure with the truth; up to three times, as a group may lose meanwhile what ended before."""
    seen = []
    for _ in range(3):
        ours, truth = attempt()
        seen.append(f"{ours:,.0f} for {truth:,.0f} bytes ({ours / truth - 1:+.2%})")
        if abs(ours / truth - 1) <= bound:
            return
    pytest.fail(f"not within {bound:.0%}: {'; '.join(seen)}")


def is_ptrace_allowed() -> bool:
    try:
        launch(["true"], Moment(When.EXIT), len)
    except AccessError as error:
        if "ptrace" not in str(error):
            raise
        return False
    return True


def status_of(task: int | str) -> dict[str, str]:
    """Return the fields of `/proc/TASK/status`, where a task is a process, or `PID/task/TID`."""
    with open(f"/proc/{task}/status", encoding="utf-8", errors="surrogateescape") as text:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in text)}


def states(pid: int) -> set[str]:
    """Return the state of each thread: S sleeps, R runs, T is stopped; X has just ended."""
    result = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            result.add(status_of(f"{pid}/task/{thread}")["State"][0])
        except (FileNotFoundError, ProcessLookupError):
            result.add("X")
    return result


def resting(pid: int) -> int:
    """Wait until a process sleeps, and its memory has come to rest."""

    def rests() -> bool:
        before = Path(f"/proc/{pid}/maps").read_bytes(), Path(f"/proc/{pid}/statm").read_bytes()
        time.sleep(0.1)
        return states(pid) == {"S"} and before == (
            Path(f"/proc/{pid}/maps").read_bytes(),
            Path(f"/proc/{pid}/statm").read_bytes(),
        )

    wait_until(rests, f"process {pid} to rest")
    return pid


def private_bytes_between(pid: int, start_addr: int, end_addr: int) -> int:
    """Count the pages that are present, of no file, and mapped by this process alone, by the bits of each; or in swap.

    Source: Documentation/admin-guide/mm/pagemap.rst: bit 63 present, 62 swapped, 61 file or shared, 56 exclusive.
    """
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        pagemap.seek(start_addr // PAGE_BYTES * 8)
        words = struct.iter_unpack("=Q", pagemap.read((end_addr - start_addr) // PAGE_BYTES * 8))
    are_private: list[bool] = [word >> 56 & 0b10100001 == 0b10000001 or bool(word >> 62 & 1) for (word,) in words]
    return PAGE_BYTES * sum(are_private)


class DyingOS:
    """The os module, but for what happens right before the n-th of some of its calls; `sites` are their callers."""

    def __init__(self, calls: int, names: frozenset[str], kill: Callable[[], None]) -> None:
        self.calls_left = calls
        self._names = names
        self._kill = kill
        self.sites: list[tuple[tuple[CodeType, int], ...]] = []

    def __getattr__(self, name: str) -> object:
        found = getattr(os, name)
        return self.before(found) if name in self._names else found

    def before(self, function: Callable[..., object]) -> Callable[..., object]:
        def call(*words: object, **options: object) -> object:
            if self.calls_left == 0:
                self._kill()
            self.calls_left -= 1
            self.sites.append(tuple((frame.f_code, line) for frame, line in walk_stack(sys._getframe(1))))
            return function(*words, **options)

        return call

    def first_and_last_calls(self) -> list[int]:
        """Number the first and the last call of each site: those between do the same with the next page or file."""
        first = {site: number for number, site in reversed(list(enumerate(self.sites)))}
        last = {site: number for number, site in enumerate(self.sites)}
        return sorted({*first.values(), *last.values()})
