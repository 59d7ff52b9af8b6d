"""Interpreted recordings of heaptrack, formats 0 to 3.

Source: src/analyze/accumulatedtracedata.cpp and src/interpret/heaptrack_interpret.cpp of heaptrack 1.0 to 1.5.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from operator import mul
from typing import Final

from footprint.errors import InputError, Note, UnsupportedError
from footprint.heap.call_tree_builder import MOST_AMOUNT, CallTreeBuilder
from footprint.heap.heaptrack_events import Events
from footprint.heap.profile import CallTree, Counted, Frame, HeapSnapshot, Profile, Tally
from footprint.system.decompression import texts_of
from footprint.text.units import counted

_NEWEST_FORMAT: Final = 3
# heaptrack records 64 calls per stack, and inlined functions in addition.
_MOST_CALLS: Final = 256
# The stacks together are longer than the text, where they share calls: real recordings have one frame per five bytes.
_SPARE_FRAMES: Final = 1 << 18
_FRAMES_PER_BYTE: Final = 1
# The limit for all tables together, far beyond any known recording. Traces need little memory, long strings much.
_MOST_ENTRIES: Final = 1 << 22
_TRACES_PER_ENTRY: Final = 4
_TEXT_BYTES_PER_ENTRY: Final = 64
_TAIL_BYTES: Final = 1 << 12


def looks_like_heaptrack(start: bytes) -> bool:
    """Return whether the first bytes are those of a recording."""
    words = start.partition(b"\n")[0].split()
    are_hex = all(len(word) <= 8 and not word.strip(b"0123456789abcdef") for word in words[1:])
    return 2 <= len(words) <= 3 and words[0] == b"v" and are_hex


def read_heaptrack(pieces: Iterable[bytes], source: str) -> Profile:
    """Read a recording from the pieces of its text.

    Raises:
        InputError: Where no line is a record.
        UnsupportedError: Where it is a raw recording, or its format is newer.
    """
    reader = _Reader(source)
    for offset, text in texts_of(pieces, source):
        reader.read(text)
        if reader.entry_count > _MOST_ENTRIES:
            raise InputError(source, "its tables are longer than those of any recording", offset)
    return reader.finish()


class _Reader:
    """The tables of a recording, and its events."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._format = 0
        self._command: str | None = None
        self._is_attached = False
        self._last_record = b""
        self._text_bytes = self._string_bytes = 0
        self._frames_left = self._cut_count = 0
        self._skipped: tuple[int, bytes] = (0, b"")
        # The tables. Records refer to entries by index from 1; 0 is none.
        self._strings: list[str | None] = [None]
        self._frames = [Frame(label="heaptrack")]
        self._addrs = [range(0)]  # the frames of each address, the innermost first
        self._trace_addrs = array("q", [0])
        self._trace_callers = array("q", [0])
        # Allocations of equal size and trace are a class, counted from 0.
        self._class_traces = array("q")
        self._class_of: dict[tuple[int, int], int] = {}  # format 0 has block addresses instead of classes
        self._class_at: dict[int, int] = {}
        self._events = Events(self._read_other, self._skip)
        self._time = 0
        self._moments: list[tuple[int, int]] = []
        self._tables: dict[bytes, Callable[[bytes], None]] = {
            b"s": self._add_string,
            b"i": self._add_addr,
            b"t": self._add_trace,
            b"a": self._add_class,
        }

    @property
    def entry_count(self) -> int:
        """The entries of all tables together."""
        tables: tuple[Sized, ...] = (
            self._strings,
            self._frames,
            self._addrs,
            self._class_traces,
            self._class_at,
            self._moments,
        )
        traces, text = len(self._trace_addrs) // _TRACES_PER_ENTRY, self._string_bytes // _TEXT_BYTES_PER_ENTRY
        return sum(map(len, tables)) + traces + text

    def read(self, text: bytes) -> None:
        """Read lines of the recording."""
        is_start = not self._text_bytes
        self._last_record = _last_record(text) or self._last_record
        self._text_bytes += len(text) + 1
        if is_start:
            version, _, text = text.partition(b"\n")
            self._read_version(version)
        first, *later = (b"\n" + text).split(b"\nc ")
        self._read_events(first[1:])
        for part in later:
            stamp, _, events = part.partition(b"\n")
            self._read_moment(stamp)
            self._read_events(events)

    def _read_version(self, line: bytes) -> None:
        words = line.split()
        self._format = int(words[2], 16) if len(words) > 2 else 0
        if self._format > _NEWEST_FORMAT:
            cause = f"format {self._format} of heaptrack: only those up to {_NEWEST_FORMAT} are supported"
            raise UnsupportedError(self._source, cause, 0)

    def _read_moment(self, stamp: bytes) -> None:
        try:
            self._time = _checked(int(stamp, 16))
            self._moments.append((self._time, self._events.live_bytes))
        except ValueError:
            self._skip(b"c " + stamp)

    def _read_events(self, text: bytes) -> None:
        moment = (len(self._moments), self._time)
        self._events.read(text if self._format else self._with_classes(text), moment)

    def _with_classes(self, text: bytes) -> bytes:
        """Return the events of format 0, which have the addresses of blocks, as those of later formats."""
        events = []
        for line in text.split(b"\n"):
            kind, rest = line[:2], line[2:]
            try:
                if kind == b"+ ":
                    events.append(b"+ %x" % self._class_allocated(rest))
                elif kind == b"- ":
                    events.append(b"- %x" % self._class_at.pop(int(rest, 16)))
                else:
                    self._read_other(line)
            except (ValueError, LookupError, OverflowError):
                self._skip(line)
        return b"\n".join(events)

    def _class_allocated(self, rest: bytes) -> int:
        size_bytes, trace, addr = (_checked(int(word, 16), (1 << 64) - 1) for word in rest.split())
        place = self._class_of.setdefault((size_bytes, trace), len(self._class_traces))
        if place == len(self._class_traces):
            self._add_class(b"%x %x" % (size_bytes, trace))
        self._class_at[addr] = place
        return place

    def _read_other(self, line: bytes) -> None:
        kind, rest = line[:1], line[2:]
        add = self._tables.get(kind)
        if add:
            add(rest)
        elif kind == b"X":
            self._command = _text(rest)
        elif kind in {b"x", b"m"}:
            raise UnsupportedError(self._source, "a raw recording of heaptrack: interpret it first")
        elif kind == b"A":
            self._is_attached = True
        elif kind not in {b"", b"#", b"I", b"R", b"S"}:
            raise ValueError(line)

    def _skip(self, line: bytes) -> None:
        count, first = self._skipped
        self._skipped = (count + 1, first or line[:80])

    # --- tables: a damaged entry keeps its index, so that later indexes stay right ---

    def _add_string(self, rest: bytes) -> None:
        self._string_bytes += len(rest)
        self._strings.append(_text(rest.partition(b" ")[2] if self._format >= 3 else rest))

    def _add_addr(self, rest: bytes) -> None:
        start = len(self._frames)
        try:
            numbers = [int(word, 16) for word in rest.split()]
            addr, module = _checked(numbers[0], (1 << 64) - 1), self._strings[numbers[1]]
            calls = numbers[2:] or [0, 0, 0]
            for at in range(0, len(calls), 3):
                function, file, line = (*calls[at : at + 3], 0, 0)[:3]
                where = (self._strings[file], _checked(line) or None) if file else (None, None)
                self._frames.append(Frame(addr, self._strings[function], *where, module))
        finally:
            self._addrs.append(range(start, len(self._frames)))

    def _add_trace(self, rest: bytes) -> None:
        addr = caller = 0
        try:
            place, above = rest.split()
            addr, caller = int(place, 16), int(above, 16)
            # A caller precedes its callee: no trace is endless.
            if not (0 < addr < len(self._addrs) and 0 <= caller < len(self._trace_callers)):
                addr = caller = 0
                raise ValueError(rest)
        finally:
            self._trace_addrs.append(addr)
            self._trace_callers.append(caller)

    def _add_class(self, rest: bytes) -> None:
        size_bytes = trace = 0
        try:
            amount, place = rest.split()
            size_bytes, trace = _checked(int(amount, 16)), _checked(int(place, 16), len(self._trace_addrs) - 1)
        finally:
            self._class_traces.append(trace)
            self._events.add_class(size_bytes)

    # --- the end ---

    def finish(self) -> Profile:
        source = self._source
        if len(self._trace_addrs) == 1 and not self._class_traces and self._command is None:
            raise InputError(source, "an empty recording: it has no record of heaptrack", 0)
        frames = tuple(self._frames)
        self._frames_left = _SPARE_FRAMES + _FRAMES_PER_BYTE * self._text_bytes
        stacks, events = CallTreeBuilder(), self._events
        end_of = {trace: stacks.add(self._stack(trace)) for trace in dict.fromkeys(self._class_traces)}
        ends = [end_of[trace] for trace in self._class_traces]

        def tree(counts: Sequence[int]) -> CallTree:
            return stacks.tree(frames, ends, list(map(mul, events.sizes, counts)), counts, source)

        moments: list[tuple[int, int, CallTree | None]] = [(*moment, None) for moment in self._moments]
        (before, peak_time), peak_bytes, at_peak = events.peak()
        moments.insert(before, (peak_time, peak_bytes, tree(at_peak)))
        moments.append((self._time, events.live_bytes, tree(events.live())))
        return Profile(
            "heaptrack",
            Counted.HEAP,
            self._command,
            time_unit="ms",
            frames=frames,
            snapshots=tuple(
                HeapSnapshot(number, time, size_bytes, tree=tree, is_peak=number == before)
                for number, (time, size_bytes, tree) in enumerate(moments)
            ),
            peak_index=before,
            tallies=(Tally("allocated", tree(events.ever())), Tally("temporary", tree(events.temporary()))),
            notes=tuple(self._notes()),
            has_end=not self._is_cut,
        )

    @property
    def _is_cut(self) -> bool:
        """Whether the last stamp is missing: at an exit heaptrack writes the time and the resident memory."""
        return self._format > 0 and self._last_record.startswith((b"+ ", b"- "))

    def _notes(self) -> Iterator[Note]:
        source = self._source
        if self._is_cut:
            detail = (
                "it ends without the last stamp of heaptrack: the program was killed, called _exit, or went on as "
                "another program, and what it allocated and freed last is missing"
            )
            yield Note("heap-recording-cut", source, detail)
        if self._skipped[0]:
            count, first = self._skipped
            detail = f"{counted(count, 'line')} of unknown form, left out: {_text(first)!r}"
            yield Note("heap-lines-unread", source, detail)
        if self._cut_count:
            detail = f"{counted(self._cut_count, 'stack')} cut: they exceed the depth limit of heaptrack"
            yield Note("heap-stacks-cut", source, detail)
        if self._is_attached:
            detail = "heaptrack was attached to the running process: earlier allocations are missing"
            yield Note("heap-attached-late", source, detail)

    def _stack(self, trace: int) -> list[int]:
        """Return the frames of a trace, the innermost first; those beyond a limit are cut."""
        frames: list[int] = []
        left = self._frames_left
        # Count calls, not frames: a damaged address has no frames.
        for _ in range(_MOST_CALLS):
            if not trace or len(frames) > left:
                break
            # One more than the limit shows that it is cut; an address may have more frames than all stacks may.
            frames += self._addrs[self._trace_addrs[trace]][: left - len(frames) + 1]
            trace = self._trace_callers[trace]
        self._cut_count += bool(trace) or len(frames) > left
        self._frames_left = max(0, left - len(frames))
        return frames[:left]


def _last_record(text: bytes) -> bytes:
    """Return the last line that is not empty and no comment; empty where the end of a text has none."""
    lines = text[-_TAIL_BYTES:].split(b"\n")
    return next((line for line in reversed(lines) if line and not line.startswith(b"#")), b"")


def _checked(number: int, most: int = MOST_AMOUNT) -> int:
    if not 0 <= number <= most:
        raise ValueError(number)
    return number


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
