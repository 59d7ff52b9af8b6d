"""`footprint.maps`: every mapping of a process with its owner."""

from dataclasses import dataclass

from footprint.attribution.counters import MappingCounts, count_each
from footprint.attribution.layout import lay_out
from footprint.attribution.owned_range import OwnedRange
from footprint.errors import Note
from footprint.files import StrPath
from footprint.process import MemoryMap
from footprint.sources.process_files import images_of
from footprint.sources.target import Named, check_options, resolve, snapshot_of

__all__ = ("OwnedMap", "maps")


@dataclass(frozen=True, slots=True)
class OwnedMap:
    """The mappings of a process with their owners.

    Attributes:
        target: What the user called it.
        memory: The mappings.
        held: What each of them holds, in their order.
        parts: Each with its owner; a mapping of several owners is several parts.
        pid: The process, where known.
        command: Its command line or name.
        host: Kernel and machine, where known.
        notes: What was odd.
    """

    target: str
    memory: MemoryMap
    held: tuple[MappingCounts, ...]
    parts: tuple[OwnedRange, ...]
    pid: int | None
    command: str
    host: dict[str, str]
    notes: tuple[Note, ...]


def maps(target: Named, *, pid: int | None = None, root: StrPath | None = None) -> OwnedMap:
    """Return the mappings of a process, each with its owner. The arguments and errors are those of `audit`."""
    found = resolve(target)
    given = {"--pid": pid is not None, "--root": root is not None}
    check_options(found, [option for option, is_given in given.items() if is_given])
    snapshot = snapshot_of(found, pid)
    images, notes = images_of(snapshot, None if root is None else str(root))
    parts = lay_out(snapshot.memory, images, snapshot.page_bytes, snapshot.thread_stack_addrs)
    return OwnedMap(
        target=found.name,
        memory=snapshot.memory,
        held=tuple(count_each(snapshot.memory.mappings, snapshot.pages)),
        parts=parts,
        pid=snapshot.process_id,
        command=snapshot.command,
        host=snapshot.host,
        notes=(*snapshot.notes, *notes),
    )
