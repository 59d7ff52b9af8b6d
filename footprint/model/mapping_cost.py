"""What the mappings of a process cost, one by one."""

from typing import Annotated, NamedTuple

from footprint.members import Address, Pattern, Positive
from footprint.model.evidence import Evidence
from footprint.model.row import Attribution, MemoryKind

__all__ = ("MappingCost",)


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
