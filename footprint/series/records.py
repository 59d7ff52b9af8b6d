"""The records of a series: what a watch saw, in the order of time. docs/watch.md describes their lines.

Times are milliseconds since the watch began, by a clock that never jumps.
"""

import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from footprint.errors import InputError, Note
from footprint.json.codec import decode
from footprint.json.stream import parsed_object
from footprint.members import LATER, Later, json_members
from footprint.model.over_time import ProcessCounters
from footprint.series.growth import MOST_MAPPINGS, kept_mapping
from footprint.system.limits import unpacked
from footprint.text.command_line import shown_command
from footprint.text.units import decimal

SERIES_NUMBER: Final = 1
"""The number of the format; a change of meaning raises it."""

_PIECE_BYTES: Final = 1 << 20
_LEAST_FIGURES: Final = len(ProcessCounters._fields) - len(ProcessCounters._field_defaults)


class Began(NamedTuple):
    """The first record of a series.

    Attributes:
        target: What is watched, as the user named it.
        time: When it began, in seconds since 1970.
        every_ms: The time between two ticks.
        stack_bytes: The kernel stack of a thread.
        host: The `kernel` release and the `machine`.
        tool_version: The footprint that wrote it.
    """

    target: str
    time: int
    every_ms: int
    stack_bytes: int
    host: Mapping[str, str]
    tool_version: str


class Came(NamedTuple):
    """A process that is seen for the first time. Its number is used once: a later process can have the same PID.

    Attributes:
        ms: When it was seen.
        number: Its number in the series.
        pid: Its PID.
        parent_pid: The PID of its parent, where known.
        command: Its command line, or its name.
        is_older: Whether it ran before the watch began: what it held before is none of the peak.
    """

    ms: int
    number: int
    pid: int
    parent_pid: int | None
    command: str
    is_older: Annotated[bool, Later(default=False)] = False


class Sampled(NamedTuple):
    """A tick: the figures of the processes that have changed, by their numbers, and our own time since the start."""

    ms: int
    figures: Mapping[int, ProcessCounters]
    own_cpu_ms: int


class Ended(NamedTuple):
    """A process that has ended.

    Attributes:
        ms: When that was seen.
        number: The number of the process.
        peak_resident_bytes: The most resident memory that it had; None where nobody could tell.
        source: How the peak is known: `taskstats`, `exit stop`, or `status` for the last tick before its end.
        exit_code: The exit code; None where it is not known, or a signal ended it.
        lived_ms: How long it lived, by taskstats; None where only the times at which it was seen are known.
        file_bytes: The resident pages of files in it at its end; None where that is not known.
    """

    ms: int
    number: int
    peak_resident_bytes: int | None
    source: str
    exit_code: int | None
    lived_ms: Annotated[int | None, LATER] = None
    file_bytes: Annotated[int | None, LATER] = None


class GroupPeak(NamedTuple):
    """A new peak that a memory cgroup has counted."""

    ms: int
    peak_bytes: int
    source: str


class OwnersSeen(NamedTuple):
    """What each owner costs, by an audit: all together cost what the audit explains."""

    ms: int
    owners: Mapping[str, int]


@json_members("taken=moment ms held_bytes audit=packed mappings")
class AuditKept(NamedTuple):
    """A whole audit.

    Attributes:
        ms: When the processes were read.
        moment: Why: `start`, `peak`, `growth`, `last`, `end`, or `signal`.
        held_bytes: What it explains: the cost of all processes then.
        packed: The audit, as `audit --json` writes it, compressed by zlib and in base 64: it is mostly names.
        mappings: The private memory of its largest mappings, by their keys.
    """

    ms: int
    moment: str
    held_bytes: int
    packed: str
    mappings: Annotated[Mapping[str, int], LATER] = MappingProxyType({})

    def answer(self, source: str) -> bytes:
        """Return the JSON of the audit.

        Raises:
            InputError: If it is damaged.
            LimitError: If it is larger than the limits allow.
        """
        try:
            data = binascii.a2b_base64(self.packed, strict_mode=True)
            return b"".join(unpacked(_pieces(data), len(data), source))
        except (ValueError, EOFError, zlib.error) as error:
            raise InputError(source, f"the audit of the moment {self.moment!r} is damaged: {error}") from error


def _pieces(data: bytes) -> Iterator[bytes]:
    """Decompress data, piece by piece."""
    unpacking = zlib.decompressobj()
    while not unpacking.eof:
        piece = unpacking.decompress(data, _PIECE_BYTES)
        data = unpacking.unconsumed_tail
        if not piece and not data and not unpacking.eof:
            raise EOFError("it is cut")
        yield piece


def packed(answer: str) -> str:
    """Compress the JSON of an audit."""
    data = zlib.compress(answer.encode("utf-8", "backslashreplace"))
    return binascii.b2a_base64(data, newline=False).decode("ascii")


class NoteRecord(NamedTuple):
    """A note of the watch."""

    ms: int
    note: Note


class Closed(NamedTuple):
    """The last record: how many processes the kernel made meanwhile.

    Attributes:
        ms: When the watch ended.
        fork_count: How many processes and threads the whole machine started, by the counter of the kernel.
        seen_count: How many of them were seen to start, whether they belong to the target or not.
        how: How starts were seen: `events`, `ptrace` or `polling`; `named` where none can belong to the target.
    """

    ms: int
    fork_count: int
    seen_count: int
    how: str


class Omitted(NamedTuple):
    """How many processes were left out to keep the file small: ended ones that held little."""

    ms: int
    count: int  # type: ignore[assignment] # tuple.count is not missed


Record = Began | Came | Sampled | Ended | GroupPeak | OwnersSeen | AuditKept | NoteRecord | Omitted | Closed


class Sums:
    """What all processes cost together, as records are added in their order."""

    def __init__(self, stack_bytes: int) -> None:
        self._stack_bytes = stack_bytes
        self.cost_bytes = 0
        self.of: dict[int, int] = {}
        """The cost of each process that is alive, by its number."""

    def add(self, record: Record) -> None:
        """Add a record."""
        if isinstance(record, Sampled):
            for number, figure in record.figures.items():
                cost_bytes = figure.cost_bytes(self._stack_bytes)
                self.cost_bytes += cost_bytes - self.of.get(number, 0)
                self.of[number] = cost_bytes
        elif isinstance(record, Ended):
            self.cost_bytes -= self.of.pop(record.number, 0)


def line_of(record: Record) -> bytes:
    """Format a record as a line."""
    return (json.dumps(_members(record), separators=(",", ":")) + "\n").encode()


def _members(record: Record) -> dict[str, object]:
    match record:
        case Began():
            first = {"schema": "footprint/1", "verb": "watch", "series": SERIES_NUMBER}
            return {**first, **record._asdict(), "host": dict(record.host)}
        case Sampled():
            figures = {str(number): list(figures) for number, figures in record.figures.items()}
            return {"ms": record.ms, "own_cpu_ms": record.own_cpu_ms, "figures": figures}
        case OwnersSeen():
            return {"ms": record.ms, "owners": dict(record.owners)}
        case AuditKept():
            taken = {"taken": record.moment, "ms": record.ms, "held_bytes": record.held_bytes, "audit": record.packed}
            return {**taken, "mappings": dict(record.mappings)} if record.mappings else taken
        case NoteRecord(ms, note):
            return {"note": note.slug, "ms": ms, "subject": note.subject, "detail": note.detail}
        case _:
            return {_KINDS[type(record)]: True, **record._asdict()}


_KINDS: Final = {Came: "came", Ended: "ended", GroupPeak: "group_peak", Omitted: "omitted", Closed: "closed"}


def record_of(line: bytes, source: str, place: str) -> Record:
    """Read a line.

    Raises:
        InputError: Where it is damaged, or of a later format.
    """
    value = parsed_object(line, source, place)
    if value.get("series", SERIES_NUMBER) != SERIES_NUMBER:
        raise InputError(source, f"{place}: `series` is not {SERIES_NUMBER}: another footprint wrote the file")
    for key, cls in _LINES.items():
        if key in value:
            return _record(decode(cls, value, source, f"{place}: "), source, place)
    raise InputError(source, f"{place} is no record of a series")


class _Tick(NamedTuple):
    """The line of `Sampled`: the counters of a process are a list."""

    ms: int
    figures: Mapping[str, tuple[int, ...]]
    own_cpu_ms: int


class _NoteLine(NamedTuple):
    """The line of `NoteRecord`."""

    ms: int
    note: str
    subject: str
    detail: str


# A member that only lines of the type have.
_LINES: Final[dict[str, type[Record | _Tick | _NoteLine]]] = {
    "figures": _Tick,
    "came": Came,
    "ended": Ended,
    "owners": OwnersSeen,
    "taken": AuditKept,
    "group_peak": GroupPeak,
    "omitted": Omitted,
    "note": _NoteLine,
    "closed": Closed,
    "series": Began,
}


def _record(line: Record | _Tick | _NoteLine, source: str, place: str) -> Record:
    match line:
        case Began():
            if missing := {"kernel", "machine"} - line.host.keys():
                raise InputError(source, f"{place}: `host.{min(missing)}` is missing")
        case Came():
            return line._replace(command=shown_command(line.command))
        case _Tick(ms, figures, own_cpu_ms):
            return Sampled(ms, dict(_counters(*counts, source, place) for counts in figures.items()), own_cpu_ms)
        case AuditKept():
            mappings = line.mappings or {}
            if len(mappings) > MOST_MAPPINGS or None in map(kept_mapping, mappings):
                cause = f"not at most {MOST_MAPPINGS} mappings, each with its PID, range and name"
                raise InputError(source, f"{place}: `mappings` is {cause}")
            return line._replace(mappings=mappings)
        case _NoteLine(ms, slug, subject, detail):
            return NoteRecord(ms, Note(slug, subject, detail))
    return line


def _counters(key: str, numbers: tuple[int, ...], source: str, place: str) -> tuple[int, ProcessCounters]:
    process = decimal(key)
    # An earlier footprint kept fewer.
    if process is None or not _LEAST_FIGURES <= len(numbers) <= len(ProcessCounters._fields):
        cause = f"not six numbers for each process, or more ({key[:20]})"
        raise InputError(source, f"{place}: `figures` is {cause}")
    counters = ProcessCounters(*numbers)
    if len(numbers) == _LEAST_FIGURES:
        # It kept no pages of files: they are what is resident besides private and shared memory.
        kept_bytes = counters.private_bytes + counters.shared_bytes
        counters = counters._replace(file_bytes=max(0, counters.resident_bytes - kept_bytes))
    return process, counters
