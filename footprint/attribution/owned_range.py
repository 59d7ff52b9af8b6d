"""A range of a process with its one owner: what stands between a mapping and the rows of the ledger.

`footprint.attribution.layout` finds the object that owns a range. `footprint.attribution.symbol_ranges` cuts the range
of an object among its sections and symbols.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict

from footprint.attribution.counters import MappingCounts
from footprint.elf.image import Image
from footprint.members import Address, NamedTuple, json_members
from footprint.model.row import Attribution, MemoryKind
from footprint.process.mapped_files import FileKey
from footprint.process.mappings import Mapping
from footprint.process.pages import PageRange
from footprint.ranges import Claim, Gap, Piece, partition


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
        name: What to show in place of a symbol, where there is something to say.
    """

    mapping: Mapping
    start_addr: Address
    end_addr: Address
    owner: str
    kind: MemoryKind
    attribution: Attribution
    loaded: LoadedObject | None = None
    name: str | None = None

    @property
    def size_bytes(self) -> int:
        """The virtual size."""
        return self.end_addr - self.start_addr


class RangeOwner(NamedTuple):
    """Who owns a part of a range: the fields of `OwnedRange` that have these names."""

    owner: str
    kind: MemoryKind
    attribution: Attribution
    loaded: LoadedObject | None = None


def divide(part: OwnedRange, claims: Iterable[Claim[RangeOwner | None]]) -> Iterator[OwnedRange]:
    """Cut a range where others own parts of it; what nobody claims keeps its owner."""
    for start_addr, end_addr, owner in partition(part.start_addr, part.end_addr, claims, _unclaimed).pieces:
        if owner is None:
            yield part._replace(start_addr=start_addr, end_addr=end_addr)
        else:
            yield OwnedRange(part.mapping, start_addr, end_addr, *owner)


def _unclaimed(gap: Gap[RangeOwner | None]) -> list[Piece[RangeOwner | None]]:
    return [Piece(gap.start, gap.end, None)]


def by_mapping(
    ranges: Sequence[OwnedRange], counts: Sequence[MappingCounts]
) -> Iterator[tuple[Sequence[OwnedRange], MappingCounts]]:
    """Return the ranges of each mapping together with what the kernel counts in it; both come in ascending order."""
    index, total = 0, len(ranges)
    for counted in counts:
        mapping, past = ranges[index].mapping, index + 1
        while past < total and ranges[past].mapping is mapping:
            past += 1
        yield ranges[index:past], counted
        index = past


def private_pages(
    mapping: Mapping, counts: MappingCounts, pages: Dict[int, Sequence[PageRange]] | None
) -> Sequence[PageRange] | None:
    """Return the private pages of a mapping, ascending; None where nothing says which of its pages these are.

    `pages` has those of mappings by start address, where page bits were read. Without them, the counts tell where no
    page or every page is private.
    """
    bits = pages.get(mapping.start_addr) if pages else None
    if bits is not None:
        return bits
    if counts.private_bytes == 0:
        return ()
    if counts.private_bytes == mapping.size_bytes:
        return (PageRange(mapping.start_addr, mapping.end_addr),)
    return None


def clip(ranges: Sequence[PageRange], start_addr: int, end_addr: int) -> list[PageRange]:
    """Return the parts of some page ranges that lie between two addresses."""
    return [
        PageRange(max(span.start_addr, start_addr), min(span.end_addr, end_addr), span.is_swapped)
        for span in ranges
        if span.start_addr < end_addr and start_addr < span.end_addr
    ]
