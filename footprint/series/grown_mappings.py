"""Which mappings grew between two audits of a watch."""

import re
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import groupby
from typing import Final, NamedTuple

__all__ = ("MOST_MAPPINGS", "KeptMapping", "MappingGrowth", "grown_mappings", "kept_mapping", "largest_mappings")

MOST_MAPPINGS: Final = 1000
"""So many are kept of an audit: those with the most private memory."""

_KEY: Final = re.compile(r"([0-9]{1,10}) ([0-9a-f]{1,16})-([0-9a-f]{1,16}) (.{0,4096})", re.DOTALL)


class KeptMapping(NamedTuple):
    """A mapping of a process, as an audit of a watch keeps it.

    Attributes:
        pid: The process.
        start_addr: The first address.
        end_addr: The address behind it.
        name: Its name; empty where it has none.
    """

    pid: int
    start_addr: int
    end_addr: int
    name: str

    @property
    def key(self) -> str:
        """Return it as a key of JSON: `4711 7f0000000000-7f0000001000 [heap]`."""
        return f"{self.pid} {self.start_addr:x}-{self.end_addr:x} {self.name}"


class MappingGrowth(NamedTuple):
    """How the private memory of a mapping grew.

    Attributes:
        pid: The process.
        start_addr: The first address, at the later audit.
        end_addr: The address behind it.
        name: Its name; empty where it has none.
        before_bytes: What it held before, or the mappings that were in its place.
        now_bytes: What it holds.
        delta_bytes: By how much it grew.
    """

    pid: int
    start_addr: int
    end_addr: int
    name: str
    before_bytes: int
    now_bytes: int
    delta_bytes: int


def kept_mapping(key: str) -> KeptMapping | None:
    """Read a key of JSON; None where it is none."""
    found = _KEY.fullmatch(key)
    return None if found is None else KeptMapping(int(found[1]), int(found[2], 16), int(found[3], 16), found[4])


def largest_mappings(private_bytes: Iterable[tuple[KeptMapping, int]]) -> dict[str, int]:
    """Return those with the most private memory, by their keys."""
    held = ((one, size_bytes) for one, size_bytes in private_bytes if size_bytes)
    return {one.key: size_bytes for one, size_bytes in nlargest(MOST_MAPPINGS, held, key=lambda item: item[1])}


def grown_mappings(before: Mapping[str, int], now: Mapping[str, int]) -> list[MappingGrowth]:
    """Find the mappings that grew, those that grew most first.

    The kernel joins neighbours and moves their ends: what was in the place of a mapping is what it was before.
    """
    # A mapping that was too small to be kept held at most that.
    least_bytes = min(before.values()) if len(before) >= MOST_MAPPINGS else 0
    earlier = _by_pid(before)
    found = []
    for pid, later in _by_pid(now).items():
        waiting = list(reversed(earlier.get(pid, ())))
        for one, now_bytes in later:
            before_bytes, has_place = 0, False
            while waiting and waiting[-1][0].start_addr < one.end_addr:
                old, old_bytes = waiting.pop()
                if old.end_addr > one.start_addr:
                    before_bytes, has_place = before_bytes + old_bytes, True
            if not has_place:
                before_bytes = min(least_bytes, now_bytes)
            if now_bytes > before_bytes:
                found.append(MappingGrowth(*one, before_bytes, now_bytes, now_bytes - before_bytes))
    return sorted(found, key=lambda one: (-one.delta_bytes, one.pid, one.start_addr))


def _by_pid(mappings: Mapping[str, int]) -> dict[int, list[tuple[KeptMapping, int]]]:
    """Return the mappings of each process in the order of their addresses."""
    every = sorted((one, size_bytes) for key, size_bytes in mappings.items() if (one := kept_mapping(key)) is not None)
    return {pid: list(of) for pid, of in groupby(every, key=lambda item: item[0].pid)}
