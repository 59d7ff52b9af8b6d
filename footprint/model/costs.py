"""What objects, mappings and files in memory cost, as an audit keeps it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from footprint.errors import Note
from footprint.members import LATER, Address, NamedTuple, Pattern, Positive, json_members
from footprint.model.row import Attribution, Evidence, MemoryKind


@json_members(
    "owner size_bytes own_bytes shared_bytes mapped_bytes mapping_count descriptor_count keeper_pids evidence"
)
class MemoryFileCost(NamedTuple):
    """A file in memory: a memfd, shared anonymous memory, a SysV segment, a file of tmpfs, or a buffer of the kernel.

    Attributes:
        owner: What the ledger calls it.
        size_bytes: What it holds in all, swapped pages included, as far as that is known.
        own_bytes: What of it is part of the cost: all that it holds where only these processes keep it, 0 where others
            keep it, too. These add up to `own_shared_bytes`.
        shared_bytes: What of it is part of `shared_once_bytes`.
        mapped_bytes: The virtual size of its mappings.
        mapping_count: How many mappings it has.
        descriptor_count: How many descriptors hold it open.
        keeper_pids: Who else keeps it: the first of them.
        evidence: How `own_bytes` is known.
    """

    owner: str
    size_bytes: int
    own_bytes: int
    shared_bytes: int
    mapped_bytes: int
    mapping_count: int
    descriptor_count: int
    keeper_pids: tuple[int, ...]
    evidence: Evidence


class MappingCost(NamedTuple):
    """What one owner has in one mapping, or in all mappings of one kind that are not listed.

    A mapping of several owners has a row for each of them. When a mapping was made is not known: the kernel does not
    tell it.

    Attributes:
        owner: The owner, as the ledger has it.
        kind: What the memory is for.
        start_addr: The first address of the mapping; null in the row of the mappings that are not listed.
        end_addr: The first address behind it; null there, too.
        permissions: Four letters, as in `/proc/PID/maps`; null there, too.
        name: The name that the kernel gives: a file, `[heap]`, or `[anon:NAME]` as set by prctl(2); null where it has
            none.
        mapping_count: The number of mappings: 1, or of those that are not listed.
        bytes: Private bytes of the owner; null where only virtual sizes are known.
        mapped_bytes: Virtual size of what the owner has there.
        swapped_bytes: The part of `bytes` on a swap device; null where unknown.
        has_guard: Whether memory that nobody may access, of at most 1 MiB, is directly below or above the mapping, as
            below the stack of a thread.
        evidence: How `bytes` is known.
        attribution: How the owner is known.
    """

    owner: str
    kind: MemoryKind
    start_addr: Address | None
    end_addr: Address | None
    permissions: Annotated[str, Pattern("^[r-][w-][x-][ps]$")] | None
    name: str | None
    mapping_count: Positive
    bytes: int | None
    mapped_bytes: int
    swapped_bytes: int | None
    has_guard: bool
    evidence: Evidence
    attribution: Attribution


class Need(NamedTuple):
    """An object that another one brings in.

    Attributes:
        path: Its path.
        symbol_count: The number of its symbols that are used; None where it is a filtee of the other object, and where
            symbols were not read.
    """

    path: str
    symbol_count: int | None


class Spread(NamedTuple):
    """A figure over several starts.

    Attributes:
        min: The smallest value.
        median: The value in the middle; of two in the middle the lower.
        max: The largest value.
    """

    min: int
    median: int
    max: int

    @classmethod
    def of(cls, values: Iterable[int]) -> "Spread":
        """Return how far some values differ."""
        ordered = sorted(values)
        return cls(ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])


class StartStage(NamedTuple):
    """What a program costs from its execve(2) to a later point.

    Attributes:
        start_count: The number of starts.
        processor_us: The processor time of all its threads, in microseconds.
        minor_faults: The page faults that read nothing from a disk.
        major_faults: The page faults that did.
        instructions: The instructions that it ran itself, without those of the kernel; null where the kernel counts
            none.
    """

    start_count: int
    processor_us: Spread
    minor_faults: Spread
    major_faults: Spread
    instructions: Spread | None


class StartMeasurement(NamedTuple):
    """What a program costs from its execve(2) to its entry point: what the kernel and the loader do for it.

    Attributes:
        start_count: The number of starts.
        processor_us: The processor time, in microseconds.
        minor_faults: The page faults that read nothing from a disk.
        major_faults: The page faults that did.
        system_call_count: The system calls of the loader.
        instructions: The instructions of the loader, without those of the kernel; null where the kernel counts none.
        main: The same up to main, with constructors of the program; null where main is not known or not reached.
        moment: The same up to the moment at which the program was read, with its arguments; null where its first
            instruction was not seen.
    """

    start_count: int
    processor_us: Spread
    minor_faults: Spread
    major_faults: Spread
    system_call_count: int
    instructions: Annotated[Spread | None, LATER] = None
    main: Annotated[StartStage | None, LATER] = None
    moment: Annotated[StartStage | None, LATER] = None


class DailyStarts(NamedTuple):
    """What so many starts a day take of a processor each day.

    Attributes:
        start_count: The number of starts a day.
        entry_hours: The processor hours up to the entry point; null where they are not known: they are estimated for
            programs that the loader of glibc starts.
        main_hours: Those up to main; null where that is not known.
        moment_hours: Those up to the moment at which the program was read; null where that is not known.
        is_lower_bound: Whether libraries that are missing or cannot be read are not in them.
    """

    start_count: Positive
    entry_hours: float | None
    main_hours: float | None = None
    moment_hours: float | None = None
    is_lower_bound: Annotated[bool, LATER] = False


def daily_starts(start_count: int | None, measurement: StartMeasurement | None) -> DailyStarts | None:
    """Return what so many starts a day take, by the medians; None where nobody asked, or none was measured."""
    if start_count is None or measurement is None:
        return None
    stages = (measurement, measurement.main, measurement.moment)
    entry, main, moment = [stage and processor_hours(stage.processor_us.median, start_count) for stage in stages]
    return DailyStarts(start_count, entry, main, moment)


def processor_hours(start_us: int, start_count: int) -> float:
    """Return the hours that starts of so many microseconds take of a processor."""
    return start_us * start_count / 3.6e9


class StartCounts(NamedTuple):
    """What the loader does for one object at start.

    Attributes:
        relocation_count: The relocations that it applies.
        lookup_count: The symbols that it looks up; None where its rules are not known.
        failed_open_count: The files that it tries and that are not there; None where its rules are not known.
        page_faults: The page faults up to the entry point, estimated; None where that is not known.
    """

    relocation_count: int
    lookup_count: int | None
    failed_open_count: int | None
    page_faults: Annotated[int | None, LATER]


class ObjectCost(NamedTuple):
    """One object of a process, in load order.

    Attributes:
        path: Its path, which is the owner of its rows.
        name: Its soname, else its file name.
        own_bytes: Its private memory: measured, or the startup minimum where nothing was measured.
        retained_bytes: The private memory of all objects that leave with it, itself included.
        held_by: The path of the nearest object with which it would leave; None where there is none.
        tls_bytes: The bytes of its thread-local variables in each thread.
        needs: The objects that it brings in; None where these were not saved.
        build_id: The build-id of its file; None where it has none, or it was not saved.
        start: What the loader does for it; None where that was not counted.
    """

    path: str
    name: str
    own_bytes: int
    retained_bytes: int
    held_by: str | None
    tls_bytes: int
    needs: Annotated[tuple[Need, ...] | None, LATER] = None
    build_id: Annotated[str | None, LATER] = None
    start: Annotated[StartCounts | None, LATER] = None


def were_symbols_read(objects: Iterable[ObjectCost]) -> bool:
    """Return whether the symbols of objects were read, which only a search for findings does.

    Audits of earlier versions were saved with objects only where that was so.
    """
    return any(cost.needs is None or any(need.symbol_count is not None for need in cost.needs) for cost in objects)


def unread_paths(paths: Iterable[str], notes: Iterable[Note]) -> list[str]:
    """Return which objects cannot be read, of some by path: notes on a process name other files, too."""
    objects = set(paths)
    return [note.subject for note in notes if note.slug == "file-unreadable" and note.subject in objects]


def holders_of(path: str, held_by: Mapping[str, str | None]) -> Iterator[str]:
    """Return the objects with which one would leave, the nearest first.

    Args:
        path: The path of the object.
        held_by: `held_by` of each object, by path; in a damaged saved audit objects may hold each other.
    """
    seen = {path}
    holder = held_by.get(path)
    while holder is not None and holder not in seen:
        seen.add(holder)
        yield holder
        holder = held_by.get(holder)
