"""The cheap counters of a process that is read again and again: each costs a few microseconds.

`statm` and the size of `fd` say whether anything has changed, `status` has the figures. `smaps_rollup` divides what is
COW-shared, and has what the counters get late: each thread keeps up to 64 page faults for itself before Linux 6.2, each
processor some pages since. It walks all page tables, so it is read as seldom as its cost demands; between two reads
what others pay of it is taken to be the same. The lines of `maps` are counted where the address space has another size.
The open files belong to one process: they fail once it has ended, also where a later process has its PID.

Source: fs/proc/array.c and task_mmu.c of Linux 6.18.
"""

import errno
import os
import re
import resource
import time
from contextlib import suppress
from typing import Final

from footprint.model.over_time import ProcessCounters

_TEXT_BYTES: Final = 4096
_MOST_TEXT_BYTES: Final = 1 << 20
_LINE: Final = re.compile(rb"^(\w+):\s+([0-9]{1,15})(?: kB)?$", re.MULTILINE)
# Reading what is COW-shared, and the mappings, takes at most this part of the time each, for all processes together.
_SHARE_WORK: Final = 0.002
_KIB: Final = 1024
# An audit opens files, too.
_SPARE_DESCRIPTORS: Final = 100


def parse_counters(status: bytes) -> ProcessCounters | None:
    """Read the text of `status`; None for a zombie and a kernel thread, which have no memory."""
    amounts = {key: int(number) for key, number in _LINE.findall(status)}
    if b"VmRSS" not in amounts:
        return None
    resident = amounts[b"VmRSS"]
    return ProcessCounters(
        private_bytes=(amounts.get(b"RssAnon", resident) + amounts.get(b"VmSwap", 0)) * _KIB,
        page_table_bytes=(amounts.get(b"VmPTE", 0) + amounts.get(b"VmPMD", 0)) * _KIB,
        shared_bytes=amounts.get(b"RssShmem", 0) * _KIB,
        resident_bytes=resident * _KIB,
        peak_resident_bytes=max(resident, amounts.get(b"VmHWM", 0)) * _KIB,
        thread_count=amounts.get(b"Threads", 1),
        file_bytes=amounts.get(b"RssFile", 0) * _KIB,
    )


def parse_rollup(rollup: bytes, swapped_bytes: int) -> tuple[int, int] | None:
    """Read anonymous memory with what is swapped of it, and what others pay of both, in `smaps_rollup`.

    None before Linux 5.3. `swapped_bytes` is `VmSwap`: `Swap` has swapped pages of shared memory, too, `SwapPss` not.
    """
    amounts = {key: int(number) * _KIB for key, number in _LINE.findall(rollup)}
    if b"Pss_Anon" not in amounts:
        return None
    whole_bytes = amounts.get(b"Anonymous", 0) + swapped_bytes
    return whole_bytes, max(0, whole_bytes - amounts[b"Pss_Anon"] - amounts.get(b"SwapPss", 0))


def _check_spare(descriptor: int) -> None:
    """Check that after a descriptor there are some for everything else.

    Raises:
        OSError: EMFILE if not.
    """
    if descriptor > resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_DESCRIPTORS:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _left_bytes(late_bytes: int, risen_bytes: int) -> int:
    """Return what is still late after the counter has risen or fallen: what comes late comes first."""
    if late_bytes > 0:
        return max(0, late_bytes - max(0, risen_bytes))
    return min(0, late_bytes - min(0, risen_bytes))


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
        # Where its main thread has ended (pthread_exit), the folder of another thread in its own one.
        self._thread = ""
        try:
            _check_spare(self._folder)
            self._open_files()
        except OSError:
            self.close()
            raise
        self._pages = b""
        # What the page tables have more than the counters, which get it with the next faults.
        self._late_bytes = self._counted_bytes = 0
        self._last: ProcessCounters | None = None
        # What others pay of it by proportional shares, and how much more they hold than these shares.
        self._divided_bytes = 0
        self._scale = 1.0
        self.is_divided = True
        self._next_share = 0.0
        self._size = b""
        self._has_count = False
        self._mapping_count = 0
        self._next_count = 0.0
        self._descriptor_count = 0

    def learn_private(self, private_bytes: int) -> None:
        """Take over what the page bits say is private of the process at the last look: then shares are scaled to that.

        A process that is watched without its relatives pays nothing of what it shares with them.
        """
        if self._last is not None and self._divided_bytes:
            whole_bytes = self._last.private_bytes + self._shared_bytes
            self._scale = max(1.0, (whole_bytes - private_bytes) / self._divided_bytes)
            self._last = self._last._replace(private_bytes=max(0, whole_bytes - self._shared_bytes))

    @property
    def _shared_bytes(self) -> int:
        return round(self._divided_bytes * self._scale)

    def renew(self) -> None:
        """Read again at the next look what is COW-shared: a relative has come or ended."""
        self._next_share = 0.0

    def read(self, now: float, reader_count: int = 1) -> ProcessCounters | None:
        """Read the counters; None for a zombie.

        Args:
            now: The time in seconds, which decides whether what is COW-shared is read again.
            reader_count: How many processes are read: they divide the time for that.

        Raises:
            OSError: If it has ended.
        """
        try:
            pages, descriptor_count = self._text("statm"), self._count_descriptors()
        except OSError:
            if not self._thread:
                raise
            # The thread that has shown them has ended, which another one may have outlived.
            self._follow_live_thread()
            pages, descriptor_count = self._text("statm"), self._count_descriptors()
        is_due = now >= self._next_share
        size = pages.partition(b" ")[0]
        is_count_due = size != self._size and now >= self._next_count
        is_same = pages == self._pages and descriptor_count == self._descriptor_count
        if is_same and self._last is not None and not is_due and not is_count_due:
            return self._last
        status = self._text("status")
        counters = parse_counters(status)
        if counters is None and self._follow_live_thread():
            pages, status = self._text("statm"), self._text("status")
            counters = parse_counters(status)
        if counters is None:
            self._last = None
            return None
        self._late_bytes = _left_bytes(self._late_bytes, counters.private_bytes - self._counted_bytes)
        self._counted_bytes = counters.private_bytes
        if is_due:
            self._read_rollup(status, now, reader_count)
        if is_count_due:
            self._size = size
            self._count_mappings(now, reader_count)
        self._pages, self._descriptor_count = pages, descriptor_count
        self._last = counters._replace(
            private_bytes=max(0, counters.private_bytes + self._late_bytes - self._shared_bytes),
            mapping_count=self._mapping_count,
            descriptor_count=descriptor_count,
        )
        return self._last

    def _open_files(self) -> None:
        for name in ("statm", "status"):
            descriptor = self._opened(name)
            if name in self._files:
                os.close(self._files[name])
            self._files[name] = descriptor

    def _follow_live_thread(self) -> bool:
        """Read on through another thread of the process that has its memory; return whether there is such a thread."""
        with suppress(OSError):
            folder = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                threads = sorted(os.listdir(folder), key=int)
            finally:
                os.close(folder)
            for thread in threads if len(threads) > 1 else ():
                self._thread = f"task/{thread}/"
                with suppress(OSError):
                    self._open_files()
                    if parse_counters(self._text("status")) is not None:
                        return True
        self._thread = ""
        with suppress(OSError):
            self._open_files()
        return False

    def _count_descriptors(self) -> int:
        """Count the open descriptors; where they may not be seen there are as many as before."""
        try:
            size = os.stat(f"{self._thread}fd", dir_fd=self._folder).st_size
            if size or self._has_count:
                self._has_count = True
                return size
            # Before Linux 6.2 the folder has no size.
            descriptor = os.open(f"{self._thread}fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
        except PermissionError:
            return self._descriptor_count
        try:
            return len(os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def _count_mappings(self, now: float, reader_count: int) -> None:
        """Count the mappings, and decide when to do it again."""
        began = time.thread_time()
        with suppress(OSError), open(self._opened("maps"), "rb", buffering=0) as file:
            self._mapping_count = sum(piece.count(b"\n") for piece in iter(lambda: file.read(_MOST_TEXT_BYTES), b""))
        self._next_count = now + reader_count * (time.thread_time() - began) / _SHARE_WORK

    def _read_rollup(self, status: bytes, now: float, reader_count: int) -> None:
        """Read what is COW-shared, and what the counters have late, and decide when to do it again."""
        swapped_bytes = _KIB * next((int(number) for key, number in _LINE.findall(status) if key == b"VmSwap"), 0)
        began = time.thread_time()
        # Seldom read: a thousand processes would hold a thousand descriptors.
        try:
            with open(self._opened("smaps_rollup"), "rb", buffering=0) as file:
                amounts = parse_rollup(file.read(_TEXT_BYTES), swapped_bytes)
            self.is_divided = amounts is not None
            whole_bytes, self._divided_bytes = amounts or (self._counted_bytes, 0)
            # Where the memory changed meanwhile, nobody knows what is late.
            later = parse_counters(self._text("status"))
            is_steady = later is not None and later.private_bytes == self._counted_bytes
            self._late_bytes = whole_bytes - self._counted_bytes if is_steady else 0
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
        return os.open(self._thread + name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)

    def close(self) -> None:
        """Close its files."""
        for descriptor in (self._folder, *self._files.values()):
            os.close(descriptor)
        self._files = {}
