"""The file of a series: lines that are only ever added, so that what was written before a crash is read.

Where it grows beyond what it may take, it is written anew with half of the ticks, and replaced in one step.
"""

import fcntl
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from heapq import nlargest
from typing import Final, NamedTuple

from footprint.errors import AccessError, InputError, Note, cause_of
from footprint.model.over_time import ProcessCounters
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Ended,
    Omitted,
    OwnersSeen,
    Record,
    Sampled,
    Sums,
    line_of,
    record_of,
)
from footprint.system.whole_file import open_kept, whole_file

_MOST_LINE_BYTES: Final = 512 << 20
_MOST_ENDED: Final = 2000
_KEPT_ENDED: Final = 1000
# Thinning goes on until so much of the limit is free again.
_FREE_SHARE: Final = 0.25
_MOST_TURNS: Final = 8


def read_series(data: bytes | memoryview, name: str) -> Iterator[Record]:
    """Read the records of a series. A last line without its end, as a crash leaves it, is left out.

    Raises:
        InputError: Where it is no series, or damaged.
    """
    start, number = 0, 0
    size_bytes = len(data)
    while start < size_bytes:
        end = _line_end(data, start)
        if end is None:
            break
        if end - start > _MOST_LINE_BYTES:
            raise InputError(name, "a line of it is longer than any that footprint writes", start)
        number += 1
        record = record_of(bytes(data[start:end]), name, f"line {number}")
        if isinstance(record, Began) is not (number == 1):
            raise InputError(name, f"line {number}: a series begins with one record about the whole", start)
        yield record
        start = end + 1
    if number == 0:
        raise InputError(name, "it is no series: it has not one whole line")


def _line_end(data: bytes | memoryview, start: int) -> int | None:
    """Find the end of a line; a memoryview has no `find`."""
    step = 1 << 16
    for place in range(start, len(data), step):
        newline = bytes(data[place : place + step]).find(b"\n")
        if newline >= 0:
            return place + newline
    return None


class SeriesFile:
    """The file that a watch writes.

    Args:
        path: Where it is. An existing file is replaced, unless another watch writes it.
        most_bytes: What it may take at most.

    Raises:
        AccessError: If it cannot be made.
    """

    def __init__(self, path: str, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._size_bytes = 0
        self._limit_bytes = most_bytes
        self._has_failed = False
        self._missed: list[Record] = []
        self._figures: dict[int, ProcessCounters] = {}
        self.notes: list[Note] = []
        try:
            self._descriptor = open_kept(path)
            try:
                _lock(self._descriptor)
                os.ftruncate(self._descriptor, 0)
            except OSError:
                os.close(self._descriptor)
                raise
        except BlockingIOError as error:
            raise AccessError(path, "another watch writes it") from error
        except OSError as error:
            raise AccessError(path, cause_of(error)) from error

    def add(self, records: Iterable[Record]) -> None:
        """Add records: each as a whole, or not at all; a note says where the disk refuses one.

        What later records need is written once there is room: that the series began, that processes came and ended, and
        their last figures.
        """
        todo = [*self._missed, *records]
        self._missed = []
        for place, record in enumerate(todo):
            if isinstance(record, Sampled) and self._figures:
                todo[place] = record._replace(figures={**self._figures, **record.figures})
                self._figures = {}
        lines = [line_of(record) for record in todo]
        if not self._append(b"".join(lines)):
            # A small one may have room where an audit has none.
            for record, line in zip(todo, lines, strict=True):
                if self._missed or len(lines) == 1 or not self._append(line):
                    self._miss(record)
        if self._size_bytes > self._limit_bytes:
            self._thin()

    def _miss(self, record: Record) -> None:
        """Keep what later records need of a record that the disk refused."""
        match record:
            case Sampled(figures=figures):
                self._figures |= figures
            case Ended(number=number):
                self._figures.pop(number, None)
                others = [r for r in self._missed if not (isinstance(r, Came) and r.number == number)]
                # Of one that came and ended meanwhile nothing is in the file.
                self._missed = others if len(others) < len(self._missed) else [*others, record]
            case Began() | Came():
                self._missed.append(record)
            case _:
                pass

    def _append(self, data: bytes) -> bool:
        """Write to the end of the file, all or nothing; return whether the disk took it."""
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self._size_bytes + written)
        except OSError as error:
            # Half a line would make the next one unreadable.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)
            self._fail("cannot be written", error)
            return False
        self._size_bytes += len(data)
        return True

    def _fail(self, what: str, error: OSError | InputError) -> None:
        if not self._has_failed:
            self._has_failed = True
            cause = error.detail if isinstance(error, InputError) else error.strerror
            detail = f"it {what} ({cause}): what the watch saw meanwhile is not in it"
            self.notes.append(Note("series-incomplete", self._path, detail))

    def _thin(self) -> None:
        """Write the file anew, with fewer ticks."""
        size_bytes = self._size_bytes
        try:
            for _ in range(_MOST_TURNS):
                size_bytes = self._write_thinned()
                if size_bytes <= (1 - _FREE_SHARE) * self._most_bytes:
                    break
            descriptor = open_kept(self._path)
        except (OSError, InputError) as error:
            # Somebody may have changed or removed it.
            self._limit_bytes = 2 * self._size_bytes
            self._fail("could not be made smaller", error)
            return
        os.close(self._descriptor)
        self._descriptor, self._size_bytes = descriptor, size_bytes
        with suppress(BlockingIOError):
            _lock(descriptor)
        # What cannot be made smaller, as the audits in it, may take more.
        fits = size_bytes <= (1 - _FREE_SHARE) * self._most_bytes
        self._limit_bytes = self._most_bytes if fits else 2 * size_bytes

    def _write_thinned(self) -> int:
        """Replace the file by one with fewer ticks, and return its size; it is never in memory as a whole."""
        size_bytes = 0
        with (
            mmap.mmap(self._descriptor, 0, prot=mmap.PROT_READ) as mapped,
            memoryview(mapped) as data,
            whole_file(self._path) as new,
        ):
            for record in thinned(lambda: read_series(data, self._path)):
                size_bytes += new.write(line_of(record))
        return size_bytes

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file against other watches; not every file system has locks.

    Raises:
        BlockingIOError: If another one has locked it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass


class _Kept(NamedTuple):
    """What thinning keeps.

    Attributes:
        ticks: The times of the ticks.
        numbers: The processes.
        taken: The times of the audits.
        owners: The times of the sums by owner.
        omitted_count: How many processes are left out, those of earlier times included.
    """

    ticks: set[int]
    numbers: set[int]
    taken: set[int]
    owners: set[int]
    omitted_count: int

    def has(self, record: Record) -> bool:
        """Return whether a record that is no tick is kept."""
        match record:
            case Came(number=number) | Ended(number=number):
                return number in self.numbers
            case AuditKept():
                return record.ms in self.taken
            case OwnersSeen():
                return record.ms in self.owners
            case _:
                return not isinstance(record, Omitted)


def thinned(read: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    """Leave out every second tick, but for the peak, the last ones before processes end, and the end.

    Of the audits, the first and last and the last peak stay, and those that a signal asked for; of many ended
    processes those that held most.

    Args:
        read: Reads the records from the first one on; it is called a few times, and none is held.
    """
    kept = _kept(read)
    waiting: dict[int, ProcessCounters] = {}
    for record in read():
        if isinstance(record, Sampled):
            # A tick has only what has changed: those that are left out go into the next one.
            waiting |= {number: figure for number, figure in record.figures.items() if number in kept.numbers}
            if record.ms in kept.ticks:
                yield record._replace(figures=waiting)
                waiting = {}
        elif kept.has(record):
            yield record
        if isinstance(record, Began) and kept.omitted_count:
            yield Omitted(0, kept.omitted_count)


def _kept(read: Callable[[], Iterable[Record]]) -> _Kept:
    """Find what thinning keeps."""
    omitted_count = 0
    numbers: set[int] = set()
    peaks: dict[int, int] = {}
    taken: list[tuple[int, str]] = []
    owners: list[int] = []
    for record in read():
        match record:
            case Omitted():
                omitted_count += record.count
            case Came():
                numbers.add(record.number)
            case Ended():
                peaks[record.number] = record.peak_resident_bytes or 0
            case AuditKept():
                taken.append((record.ms, record.moment))
            case OwnersSeen():
                owners.append(record.ms)
            case _:
                pass
    if len(peaks) > _MOST_ENDED:
        dropped = peaks.keys() - set(nlargest(_KEPT_ENDED, peaks, key=lambda number: (peaks[number], -number)))
        numbers -= dropped
        omitted_count += len(dropped)
    times = [ms for ms, _ in taken]
    last_peak = [ms for ms, moment in taken if moment == "peak"][-1:]
    signal_ms = [ms for ms, moment in taken if moment == "signal"]
    always = {*times[:1], *last_peak, *signal_ms, *times[-1:]}
    return _Kept(_kept_ticks(read(), numbers), numbers, always, set(owners[1::2]), omitted_count)


def _kept_ticks(records: Iterable[Record], numbers: Collection[int]) -> set[int]:
    """Return the times of every second tick, of the peak, of the last ones before processes end, and of the last."""
    sums = Sums(0)
    ticks: list[int] = []
    ends: set[int] = set()
    peak_bytes = -1
    peak: set[int] = set()
    for record in records:
        if isinstance(record, Began):
            sums = Sums(record.stack_bytes)
        sums.add(record)
        if isinstance(record, Sampled):
            ticks.append(record.ms)
            if sums.cost_bytes > peak_bytes:
                peak_bytes, peak = sums.cost_bytes, {record.ms}
        elif isinstance(record, Ended) and record.number in numbers:
            ends.update(ticks[-1:])
    return {*ticks[1::2], *ticks[-1:], *ends} | peak
