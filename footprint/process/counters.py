"""The cheap counters of a process that is read again and again: each costs a few microseconds.

`statm` says whether anything has changed, `status` has the figures, and `smaps_rollup` divides what is COW-shared. It
walks all page tables, so it is read as seldom as its cost demands; between two reads what others pay of it is taken to
be the same. The open files belong to one process: they fail once it has ended, also where a later
process has its PID.

Source: fs/proc/array.c and task_mmu.c of Linux 6.18.
"""

import errno
import os
import re
import resource
import time
from typing import Final

from footprint.model.process_counters import ProcessCounters

__all__ = ("CounterReader", "parse_counters", "parse_shared_bytes")

_TEXT_BYTES: Final = 4096
_MOST_TEXT_BYTES: Final = 1 << 20
_LINE: Final = re.compile(rb"^(\w+):\s+([0-9]{1,15})(?: kB)?$", re.MULTILINE)
# Reading what is COW-shared takes at most this part of the time that passes, for all processes together.
_SHARE_WORK: Final = 0.002
_KIB: Final = 1024
# An audit opens files, too.
_SPARE_DESCRIPTORS: Final = 100


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


def _check_spare(descriptor: int) -> None:
    """Check that after a descriptor there are some for everything else.

    Raises:
        OSError: EMFILE if not.
    """
    if descriptor > resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_DESCRIPTORS:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class CounterReader:
    """Reads the counters of one process.

    `is_divided` is False where what is COW-shared cannot be read: then all of it counts as private.

    Args:
        pid: The process.

    Raises:
        OSError: If it has ended, or may not be seen; EMFILE where few descriptors are left for everything else.
    """

    def __init__(self, pid: int) -> None:
        self._folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._files: dict[str, int] = {}
        try:
            _check_spare(self._folder)
            for name in ("statm", "status"):
                self._files[name] = self._opened(name)
        except OSError:
            self.close()
            raise
        self._pages = b""
        self._last: ProcessCounters | None = None
        # What others pay of it.
        self._shared_bytes = 0
        self.is_divided = True
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
        # Seldom read: a thousand processes would hold a thousand descriptors.
        try:
            with open(self._opened("smaps_rollup"), "rb", buffering=0) as file:
                # From one text: the memory may change between two.
                shared_bytes = parse_shared_bytes(file.read(_TEXT_BYTES))
            self._shared_bytes, self.is_divided = shared_bytes or 0, shared_bytes is not None
        except (PermissionError, FileNotFoundError):
            self.is_divided = False
        except OSError:
            # It has ended.
            pass
        self._next_share = now + reader_count * (time.thread_time() - began) / _SHARE_WORK

    def _text(self, name: str) -> bytes:
        text = os.pread(self._files[name], _TEXT_BYTES, 0)
        # A user may be in thousands of groups, which are listed before the memory.
        return text if len(text) < _TEXT_BYTES else os.pread(self._files[name], _MOST_TEXT_BYTES, 0)

    def _opened(self, name: str) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)

    def close(self) -> None:
        """Close its files."""
        for descriptor in (self._folder, *self._files.values()):
            os.close(descriptor)
        self._files = {}
