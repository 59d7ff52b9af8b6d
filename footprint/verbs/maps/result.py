"""The mappings of a process with their owners and what they hold: what `footprint maps` shows."""

from dataclasses import dataclass

from footprint.attribution.counters import MappingCounts
from footprint.attribution.owned_range import OwnedRange
from footprint.errors import Note
from footprint.process import MemoryMap

__all__ = ("OwnedMap",)


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
