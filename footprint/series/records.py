"""The records of a series: what a watch saw, in the order of time. docs/watch.md describes their lines.

Times are milliseconds since the watch began, by a clock that never jumps.
"""

import binascii
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from footprint.command_line import shown_command
from footprint.digits import decimal
from footprint.errors import InputError, Note
from footprint.limits import unpacked
from footprint.model.process_counters import ProcessCounters
from footprint.series.grown_mappings import MOST_MAPPINGS, kept_mapping
from footprint.typed_json import Fields

__all__ = (
    "SERIES_NUMBER",
    "AuditKept",
    "Began",
    "Came",
    "Closed",
    "Ended",
    "GroupPeak",
    "Omitted",
    "OwnersSeen",
    "Record",
    "Sampled",
    "Sums",
    "Told",
    "line_of",
    "packed",
    "record_of",
)

SERIES_NUMBER: Final = 1
"""The number of the format; a change of meaning raises it."""

_MOST: Final = 1 << 62
_PIECE_BYTES: Final = 1 << 20


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
    """A process that is seen for the first time. Its number is used once: a later process can have the same PID."""

    ms: int
    number: int
    pid: int
    parent_pid: int | None
    command: str


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
    """

    ms: int
    number: int
    peak_resident_bytes: int | None
    source: str
    exit_code: int | None
    lived_ms: int | None = None


class GroupPeak(NamedTuple):
    """A new peak that a memory cgroup has counted."""

    ms: int
    peak_bytes: int
    source: str


class OwnersSeen(NamedTuple):
    """The private memory of each owner in an audit that is not kept."""

    ms: int
    owners: Mapping[str, int]


class AuditKept(NamedTuple):
    """A whole audit.

    Attributes:
        ms: When the processes were read.
        moment: Why: `start`, `peak`, `growth`, `end`, or `signal`.
        held_bytes: What it explains: private memory and kernel memory.
        packed: The audit, as `audit --json` writes it, compressed by zlib and in base 64: it is mostly names.
        mappings: The private memory of its largest mappings, by their keys.
    """

    ms: int
    moment: str
    held_bytes: int
    packed: str
    mappings: Mapping[str, int] = MappingProxyType({})

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


class Told(NamedTuple):
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


Record = Began | Came | Sampled | Ended | GroupPeak | OwnersSeen | AuditKept | Told | Omitted | Closed


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
            for number, one in record.figures.items():
                cost_bytes = one.private_bytes + one.page_table_bytes + self._stack_bytes * one.thread_count
                self.cost_bytes += cost_bytes - self.of.get(number, 0)
                self.of[number] = cost_bytes
        elif isinstance(record, Ended):
            self.cost_bytes -= self.of.pop(record.number, 0)


def line_of(record: Record) -> bytes:
    """Write a record as a line."""
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
        case Told(ms, note):
            return {"note": note.slug, "ms": ms, "subject": note.subject, "detail": note.detail}
        case _:
            return {_KINDS[type(record)]: True, **record._asdict()}


_KINDS: Final = {Came: "came", Ended: "ended", GroupPeak: "group_peak", Omitted: "omitted", Closed: "closed"}


def record_of(line: bytes, source: str, place: str) -> Record:
    """Read a line.

    Raises:
        InputError: Where it is damaged, or of a later format.
    """
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"{place} is not JSON: {error}") from error
    fields = Fields(value, source, f"{place}: ")
    known = set(value) if isinstance(value, dict) else set()
    for key, read in _READERS.items():
        if key in known:
            return read(fields)
    raise InputError(source, f"{place} is no record of a series")


def _began(fields: Fields) -> Began:
    number = fields.number("series", 1 << 31)
    if number != SERIES_NUMBER:
        raise fields.error("series", f"{SERIES_NUMBER}: another footprint wrote the file")
    host = fields.fields("host")
    return Began(
        fields.text("target"),
        fields.number("time", _MOST),
        fields.number("every_ms", _MOST),
        fields.number("stack_bytes", _MOST),
        {"kernel": host.text("kernel"), "machine": host.text("machine")},
        fields.text("tool_version"),
    )


def _sampled(fields: Fields) -> Sampled:
    found = {}
    for key, numbers in fields.lists_of_numbers("figures", _MOST).items():
        process = decimal(key)
        if process is None or len(numbers) != len(ProcessCounters._fields):
            raise fields.error("figures", f"six numbers for each process ({key[:20]})")
        found[process] = ProcessCounters(*numbers)
    return Sampled(fields.number("ms", _MOST), found, fields.number("own_cpu_ms", _MOST))


def _came(fields: Fields) -> Came:
    pids = fields.number("pid", _MOST), fields.optional_number("parent_pid", _MOST)
    return Came(
        fields.number("ms", _MOST), fields.number("number", _MOST), *pids, shown_command(fields.text("command"))
    )


def _ended(fields: Fields) -> Ended:
    return Ended(
        fields.number("ms", _MOST),
        fields.number("number", _MOST),
        fields.optional_number("peak_resident_bytes", _MOST),
        fields.text("source"),
        fields.optional_number("exit_code", _MOST),
        fields.optional_number("lived_ms", _MOST),
    )


def _taken(fields: Fields) -> AuditKept:
    held_bytes = fields.number("held_bytes", _MOST)
    mappings = fields.numbers_by_key("mappings", _MOST) if fields.has("mappings") else {}
    if len(mappings) > MOST_MAPPINGS or None in map(kept_mapping, mappings):
        raise fields.error("mappings", f"at most {MOST_MAPPINGS} mappings, each with its PID, range and name")
    return AuditKept(fields.number("ms", _MOST), fields.text("taken"), held_bytes, fields.text("audit"), mappings)


def _closed(fields: Fields) -> Closed:
    counts = fields.number("fork_count", _MOST), fields.number("seen_count", _MOST)
    return Closed(fields.number("ms", _MOST), *counts, fields.text("how"))


def _told(fields: Fields) -> Told:
    return Told(fields.number("ms", _MOST), Note(fields.text("note"), fields.text("subject"), fields.text("detail")))


_READERS: Final[dict[str, Callable[[Fields], Record]]] = {
    "figures": _sampled,
    "came": _came,
    "ended": _ended,
    "owners": lambda fields: OwnersSeen(fields.number("ms", _MOST), fields.numbers_by_key("owners", _MOST)),
    "taken": _taken,
    "group_peak": lambda fields: GroupPeak(
        fields.number("ms", _MOST), fields.number("peak_bytes", _MOST), fields.text("source")
    ),
    "omitted": lambda fields: Omitted(fields.number("ms", _MOST), fields.number("count", _MOST)),
    "note": _told,
    "closed": _closed,
    "series": _began,
}
