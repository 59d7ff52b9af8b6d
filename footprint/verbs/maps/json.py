"""The JSON of `maps`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.attribution.owned_range import OwnedRange, by_mapping
from footprint.errors import Note
from footprint.formats.codec import encode, rows_like
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import NOT_EMPTY, Address, Pattern
from footprint.model.evidence import Evidence
from footprint.verbs.maps.call import OwnedMap

__all__ = ("MapsJson", "maps_members")


class MapsTarget(NamedTuple):
    """The process whose mappings are listed.

    Attributes:
        name: The target, as the user named it.
        pid: The process; null where it is not known.
        command: The command line or the name of the process.
        source: What was read: `smaps`, `pmap -d`, ...
    """

    name: str
    pid: int | None
    command: str
    source: str


class MappingRow(NamedTuple):
    """One mapping, with all counters of the text in bytes.

    Attributes:
        start_addr: The first address.
        end_addr: The first address behind it.
        permissions: Four letters, as in `/proc/PID/maps`.
        offset: The place in the file; null where the text does not have it.
        device: The device, as the text prints it; null where the text does not have it.
        inode: The inode; 0 for anonymous memory, null where the text does not have it.
        name: The name column of the text.
        owners: The owners of its ranges, in ascending order.
        private_bytes: Resident or swapped anonymous bytes that only this process holds; null where that is not known.
        shared_bytes: Resident pages of files and shared memory; null where that is not known.
        evidence: How `private_bytes` is known.
        counters: The counters of the kernel, by the names that they have in the text.
        vm_flags: The two-letter codes of `VmFlags`; null where the text has none.
        unknown_lines: Lines that footprint does not know.
    """

    start_addr: Address
    end_addr: Address
    permissions: Annotated[str, Pattern("^[r-][w-][x-][ps]$")]
    offset: Address | None
    device: str | None
    inode: Address | None
    name: str
    owners: Annotated[tuple[OwnedRange, ...], NOT_EMPTY]
    private_bytes: int | None
    shared_bytes: int | None
    evidence: Evidence
    counters: Mapping[str, int]
    vm_flags: str | None
    unknown_lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MapsJson(Envelope):
    """The mappings of a process, with their owners.

    Attributes:
        target: The process.
        footer: The totals that the text prints itself, by their names there.
        mappings: The mappings, in ascending order.
        notes: What the reader of the figures must know.
    """

    verb: Literal["maps"] = "maps"
    target: MapsTarget
    footer: Mapping[str, int]
    mappings: tuple[MappingRow, ...]
    notes: tuple[Note, ...]


def maps_members(owned: OwnedMap, version: str) -> Json:
    """Return the members of the answer."""
    parts = [ranges for ranges, _ in by_mapping(owned.parts, owned.held)]
    mappings = owned.memory.mappings
    # Thousands of mappings have the same counters, which the memory map keeps once.
    different = {id(mapping.counters): mapping.counters for mapping in mappings}
    counters = {place: dict(zip(one.keys, one.values, strict=False)) for place, one in different.items()}
    return encode(
        MapsJson(
            tool=Tool("footprint", version),
            host=owned.host,
            target=MapsTarget(owned.target, owned.pid, owned.command, owned.memory.dialect),
            footer=dict(owned.memory.footer),
            mappings=tuple(
                rows_like(
                    MappingRow,
                    mappings,
                    owners=parts,
                    private_bytes=[held.private_bytes for held in owned.held],
                    shared_bytes=[held.shared_bytes for held in owned.held],
                    evidence=[held.evidence for held in owned.held],
                    counters=[counters[id(mapping.counters)] for mapping in mappings],
                )
            ),
            notes=owned.notes,
        )
    )
