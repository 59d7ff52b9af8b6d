"""The cheap counters of a process that is read again and again: each costs a few microseconds.

`statm` says whether anything has changed, `status` has the figures, and `smaps_rollup` divides what is COW-shared. It
walks all page tables, so it is read as seldom as its cost demands; between two reads what others pay of it is taken to
be the same. The open files belong to one process: they fail once it has ended, also where a later
process has its PID.

Source: fs/proc/array.c and task_mmu.c of Linux 6.18.
"""

import os
import re
import time
from contextlib import suppress
from typing import Final

from footprint.model.process_counters import ProcessCounters

__all__ = ("CounterReader", "parse_counters", "parse_shared_bytes")

_TEXT_BYTES: Final = 4096
_LINE: Final = re.compile(rb"^(\w+):\s+([0-9]{1,15})(?: kB)?$", re.MULTILINE)
# Reading what is COW-shared takes at most this part of the time that passes, for all processes together.
_SHARE_WORK: Final = 0.002
_KIB: Final = 1024


def parse_counters(status: bytes) -> ProcessCounters | None:
    """Read the text of `status`; None for a zombie and a kernel thread, which have no memory."""
    found = {key: int(number) for key, number in _LINE.findall(status)}
    if b"VmRSS" not in found:
        return None
    resident = found[b"VmRSS"]
    return ProcessCounters(
        private_bytes=(found.get(b"RssAnon", resident) + found.get(b"VmSwap", 0)) * _KIB,
        page_table_bytes=(found.get(b"VmPTE", 0) + found.get(b"VmPMD", 0)) * _KIB,
        shared_bytes=found.get(b"RssShmem", 0) * _KIB,
        resident_bytes=resident * _KIB,
        peak_resident_bytes=max(resident, found.get(b"VmHWM", 0)) * _KIB,
        thread_count=found.get(b"Threads", 1),
    )


def parse_shared_bytes(rollup: bytes) -> int | None:
    """Read what others pay of anonymous and swapped memory, in `smaps_rollup`; None before Linux 5.3."""
    found = {key: int(number) for key, number in _LINE.findall(rollup)}
    if b"Pss_Anon" not in found:
        return None
    whole = found.get(b"Anonymous", 0) + found.get(b"Swap", 0)
    return max(0, whole - found[b"Pss_Anon"] - found.get(b"SwapPss", 0)) * _KIB


class CounterReader:
    """Reads the counters of one process.

    Args:
        pid: The process.

    Raises:
        OSError: If it has ended, or may not be seen.
    """

    def __init__(self, pid: int) -> None:
        self._folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._files: dict[str, int] = {}
        self._pages = b""
        self._last: ProcessCounters | None = None
        # What others pay of it.
        self._shared_bytes = 0
        self._next_share = 0.0

    def read(self, now: float, reader_count: int = 1) -> ProcessCounters | None:
        """Read the counters; None for a zombie.

        Args:
            now: The time in seconds, which decides whether what is COW-shared is read again.
            reader_count: How many processes are read: they divide the time for that.

        Raises:
            OSError: If it has ended.
        """
        pages = self._text("statm")
        is_due = now >= self._next_share
        if pages == self._pages and self._last is not None and not is_due:
            return self._last
        counters = parse_counters(self._text("status"))
        if counters is None:
            self._last = None
            return None
        if is_due:
            self._read_shared(now, reader_count)
        self._pages = pages
        private_bytes = max(0, counters.private_bytes - self._shared_bytes)
        self._last = counters._replace(private_bytes=private_bytes)
        return self._last

    def _read_shared(self, now: float, reader_count: int) -> None:
        """Read what is COW-shared, and decide when to do it again."""
        began = time.thread_time()
        with suppress(OSError):
            # From one text: the memory may change between two.
            self._shared_bytes = parse_shared_bytes(self._text("smaps_rollup")) or 0
        self._next_share = now + reader_count * (time.thread_time() - began) / _SHARE_WORK

    def _text(self, name: str) -> bytes:
        descriptor = self._files.get(name)
        if descriptor is None:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
            if name == "smaps_rollup":
                # Seldom read: a thousand processes would hold a thousand descriptors.
                try:
                    return os.read(descriptor, _TEXT_BYTES)
                finally:
                    os.close(descriptor)
            self._files[name] = descriptor
        return os.pread(descriptor, _TEXT_BYTES, 0)

    def close(self) -> None:
        """Close its files."""
        for descriptor in (self._folder, *self._files.values()):
            os.close(descriptor)
        self._files = {}
