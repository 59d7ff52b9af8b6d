"""The JSON of `audit --by mapping`."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from footprint.attribution.owned_range import MappingCounts, OwnedRange, by_mapping
from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_of, rows_of
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import NOT_EMPTY, Address, Pattern, dataclass
from footprint.model.row import Evidence
from footprint.process.mappings import Mapping as MemoryMapping
from footprint.verbs.audit.mappings import OwnedMap


@answer_table
class MapsTarget:
    """The process whose mappings are listed."""

    name: str = column("The target, as the user named it.", "target")
    pid: int | None = column("The process; null where it is not known.")
    command: str = column("The command line or the name of the process.")
    source: str = column("What was read: `smaps`, `pmap -d`, ...", "memory.dialect")


class _CountedMapping(NamedTuple):
    mapping: MemoryMapping
    counts: MappingCounts
    owners: tuple[OwnedRange, ...]
    counters: dict[str, int]


@answer_table
class MappingRow:
    """One mapping, with all counters of the text in bytes."""

    start_addr: Address = column("The first address.", "mapping.start_addr")
    end_addr: Address = column("The first address behind it.", "mapping.end_addr")
    permissions: Annotated[str, Pattern("^[r-][w-][x-][ps]$")] = column(
        "Four letters, as in `/proc/PID/maps`.", "mapping.permissions"
    )
    offset: Address | None = column("The place in the file; null where the text does not have it.", "mapping.offset")
    device: str | None = column(
        "The device, as the text prints it; null where the text does not have it.", "mapping.device"
    )
    inode: Address | None = column(
        "The inode; 0 for anonymous memory, null where the text does not have it.", "mapping.inode"
    )
    name: str = column("The name column of the text.", "mapping.name")
    owners: Annotated[tuple[OwnedRange, ...], NOT_EMPTY] = column("The owners of its ranges, in ascending order.")
    private_bytes: int | None = column(
        "Resident or swapped anonymous bytes that only this process holds; null where that is not known.",
        "counts.private_bytes",
    )
    shared_bytes: int | None = column(
        "Resident pages of files and shared memory; null where that is not known.", "counts.shared_bytes"
    )
    evidence: Evidence = column("How `private_bytes` is known.", "counts.evidence")
    counters: Mapping[str, int] = column("The counters of the kernel, by the names that they have in the text.")
    vm_flags: str | None = column(
        "The two-letter codes of `VmFlags`; null where the text has none.", "mapping.vm_flags"
    )
    unknown_lines: tuple[str, ...] = column("Lines that footprint does not know.", "mapping.unknown_lines")


@dataclass(frozen=True, kw_only=True)
class MapsJson(Envelope):
    """The mappings of a process, with their owners.

    Attributes:
        target: The process.
        footer: The totals that the text prints itself, by their names there.
        mappings: The mappings, in ascending order.
        notes: What the reader of the figures must know.
    """

    verb: Literal["audit"] = "audit"
    target: MapsTarget
    footer: Mapping[str, int]
    mappings: tuple[MappingRow, ...]
    notes: tuple[Note, ...]


def maps_members(owned: OwnedMap, version: str) -> Json:
    """Return the members of the answer."""
    parts = [ranges for ranges, _ in by_mapping(owned.parts, owned.counts)]
    mappings = owned.memory.mappings
    # Thousands of mappings have the same counters, which the memory map keeps once.
    different = {id(mapping.counters): mapping.counters for mapping in mappings}
    counters = {place: dict(zip(c.keys, c.values, strict=False)) for place, c in different.items()}
    return encode(
        MapsJson(
            tool=Tool("footprint", version),
            host=owned.host,
            target=row_of(MapsTarget, owned),
            footer=dict(owned.memory.footer),
            mappings=rows_of(
                MappingRow,
                (
                    _CountedMapping(mapping, counts, tuple(ranges), counters[id(mapping.counters)])
                    for mapping, counts, ranges in zip(mappings, owned.counts, parts, strict=True)
                ),
            ),
            notes=owned.notes,
        )
    )
