"""A range of a process with its one owner: what stands between a mapping and the rows of the ledger.

`footprint.attribution.layout` finds the object that owns a range. `footprint.attribution.symbol_ranges` cuts the range
of an object among its sections and symbols.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from footprint.attribution.counters import MappingCounts
from footprint.elf import Image
from footprint.members import Address, json_members
from footprint.model.row import Attribution, MemoryKind
from footprint.process import Mapping
from footprint.process.mapped_files import FileKey

__all__ = ("LoadedObject", "OwnedRange", "by_mapping")


class LoadedObject(NamedTuple):
    """A file of the process at one place; a file that is loaded twice is two of these.

    Attributes:
        key: Which file.
        image: Its headers, where it could be read and is ELF.
        bias_addr: What to add to a vaddr to get an address; 0 without image, or where that has too many segments.
    """

    key: FileKey
    image: Image | None
    bias_addr: int


@json_members("owner kind start_addr end_addr attribution")
class OwnedRange(NamedTuple):
    """A range of a mapping that has one owner. Most mappings are one range.

    Attributes:
        mapping: The mapping that the range is part of.
        start_addr: The first address.
        end_addr: The first address behind it.
        owner: The object, or a name in brackets.
        kind: What the memory is for.
        attribution: How the owner is known; `shape` and `adjacency` are assumptions.
        loaded: The object, where a file owns the range.
        section: The section, where there is one; only ranges that were cut have this field and those that follow.
        symbol: The linker name of the variable, or None where no symbol owns the range.
        name: What to show for the symbol, or why there is none.
        private: The private addresses of the range, ascending and half-open.
        is_cut: Whether the variable continues in a neighbouring mapping.
    """

    mapping: Mapping
    start_addr: Address
    end_addr: Address
    owner: str
    kind: MemoryKind
    attribution: Attribution
    loaded: LoadedObject | None = None
    section: str | None = None
    symbol: str | None = None
    name: str | None = None
    private: Sequence[tuple[int, int]] = ()
    is_cut: bool = False

    @property
    def size_bytes(self) -> int:
        """The virtual size."""
        return self.end_addr - self.start_addr


def by_mapping(
    ranges: Sequence[OwnedRange], counts: Sequence[MappingCounts]
) -> Iterator[tuple[Sequence[OwnedRange], MappingCounts]]:
    """Return the ranges of each mapping together with what the kernel counts in it.

    Args:
        ranges: The ranges of all mappings, ascending.
        counts: What the kernel counts in each mapping, in the same order.
    """
    index, total = 0, len(ranges)
    for counted in counts:
        mapping, past = ranges[index].mapping, index + 1
        while past < total and ranges[past].mapping is mapping:
            past += 1
        yield ranges[index:past], counted
        index = past
