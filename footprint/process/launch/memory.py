"""The memory of a running program, from cheap sources, because it is read often."""

import re
from contextlib import suppress

__all__ = ("counted_sizes", "peak_and_resident_bytes", "private_bytes")

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
