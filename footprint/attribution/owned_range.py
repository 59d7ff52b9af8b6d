"""A range of a process with its one owner: what stands between a mapping and the rows of the ledger.

`footprint.attribution.layout` finds the object that owns a range. `footprint.attribution.symbol_ranges` cuts the range
of an object among its sections and symbols.

How much of a mapping only this process holds is told by the kernel's counters of it.

Source: fs/proc/task_mmu.c (smaps_account, smaps_pte_entry) of Linux 6.18: `Anonymous` counts pages without a file,
`Private_*` pages that are mapped once, of both kinds.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Dict
from typing import Final

from footprint.elf.image import Image
from footprint.members import Address, NamedTuple, json_members
from footprint.model.row import Attribution, Evidence, MemoryKind, weakest
from footprint.process.mappings import Counters, FileKey, Mapping
from footprint.process.pages import PageRange
from footprint.ranges import Claim, Gap, Piece, partition


class MappingCounts(NamedTuple):
    """What the kernel counts in one mapping.

    Attributes:
        private_bytes: Resident or swapped anonymous bytes that only this process holds; None where unknown.
        shared_bytes: Resident bytes of files and shared memory, paid once per machine; None where unknown.
        cow_shared_bytes: Anonymous bytes that other processes hold too (after fork, or merged by KSM).
        uncertain_bytes: The part of `private_bytes` that may be COW-shared instead; only page bits would tell.
        swap_share_bytes: The part of `private_bytes` that is a share of swapped pages which others have, too: no page
            bits show it.
        evidence: How `private_bytes` is known.
    """

    private_bytes: int | None
    shared_bytes: int | None
    cow_shared_bytes: int
    uncertain_bytes: int
    evidence: Evidence
    swap_share_bytes: int = 0


_MOST_KINDS: Final = 4096
_UNKNOWN = MappingCounts(None, None, 0, 0, Evidence.VIRTUAL)


CountsByKind = dict[tuple[int, str, str, int | None, int], tuple[Counters, MappingCounts]]
"""The counts of mappings by all that they depend on: equal ones are one object, as few of many mappings differ.

The counters are kept with their counts: as long as they exist, no other object has their id.
"""


def count_each(
    mappings: Iterable[Mapping],
    pages: Dict[int, Sequence[PageRange]] | None = None,
    kinds: CountsByKind | None = None,
) -> list[MappingCounts]:
    """Count what each mapping holds. Mappings with the same counters are computed once.

    Args:
        mappings: The mappings.
        pages: The private pages of each mapping, by its start address; counters decide for mappings without entry.
        kinds: The counts of mappings of other processes; those of this process are added.
    """
    kinds = {} if kinds is None else kinds
    if len(kinds) > _MOST_KINDS:
        kinds.clear()
    counts = []
    for mapping in mappings:
        start_addr, _, permissions, _, _, _, name, counters, *_ = mapping
        private_bytes, swapped_bytes = None, 0
        ranges = pages.get(start_addr) if pages else None
        if ranges is not None:
            private_bytes = 0
            for first_addr, past_addr, is_swapped in ranges:
                private_bytes += past_addr - first_addr
                if is_swapped:
                    swapped_bytes += past_addr - first_addr
        key = (id(counters), permissions[3], name[:1], private_bytes, swapped_bytes)
        if key not in kinds:
            mapping_counts = count_mapping(mapping)
            if private_bytes is not None:
                mapping_counts = _with_pages(mapping_counts, mapping, private_bytes, private_bytes - swapped_bytes)
            kinds[key] = counters, mapping_counts
        counts.append(kinds[key][1])
    if any(count.uncertain_bytes for count in counts):
        # A process that shares anonymous memory shares some in mappings without a file. Then the rest is in doubt.
        has_relatives = any(count.cow_shared_bytes for count in counts)
        doubt = Evidence.ESTIMATED if has_relatives else Evidence.DERIVED
        counts = [c._replace(evidence=weakest((c.evidence, doubt))) if c.uncertain_bytes else c for c in counts]
    return counts


def _with_pages(counted: MappingCounts, mapping: Mapping, private_bytes: int, resident_bytes: int) -> MappingCounts:
    """Return the counts of a mapping whose private pages are known; the counters say what else it holds."""
    cow_shared_bytes = max(0, (mapping.counters.get("Anonymous") or 0) - resident_bytes)
    share_bytes = None if mapping.is_shared else mapping.counters.swap_share_bytes()
    if share_bytes is None:
        return MappingCounts(private_bytes, counted.shared_bytes, cow_shared_bytes, 0, Evidence.MEASURED)
    # A capture of an earlier version lists all swapped pages as private.
    private_bytes = resident_bytes + share_bytes
    return MappingCounts(private_bytes, counted.shared_bytes, cow_shared_bytes, 0, Evidence.ESTIMATED, share_bytes)


def count_mapping(mapping: Mapping) -> MappingCounts:
    """Count what a mapping holds, from the counters that its text has.

    Where a mapping has anonymous pages and pages of a file, smaps does not say which of them are shared. They are taken
    for pages of the file as far as these go: exact, unless the process shares memory since a fork.
    """
    counter = mapping.counters.get
    resident_bytes = counter("Rss")
    if resident_bytes is None:
        return _from_toybox(mapping) if counter("Private_Dirty") is not None else _UNKNOWN
    anonymous_bytes = counter("Anonymous")
    if anonymous_bytes is None:
        return _without_anonymous(mapping, resident_bytes)
    # A text may contain any figures. Anonymous bytes are part of the resident bytes.
    anonymous_bytes = min(anonymous_bytes, resident_bytes)
    swapped_bytes, is_swap_exact = private_swap(mapping)
    evidence = Evidence.MEASURED if is_swap_exact else Evidence.ESTIMATED
    if counter("Shared_Dirty") is None:
        # pmap -X does not say which pages others have too.
        evidence = Evidence.ESTIMATED if anonymous_bytes else evidence
        return MappingCounts(anonymous_bytes + swapped_bytes, resident_bytes - anonymous_bytes, 0, 0, evidence)
    surely_bytes, private_bytes = mapping.counters.private_bounds()
    file_bytes = resident_bytes - anonymous_bytes
    uncertain_bytes = max(0, private_bytes - surely_bytes) if file_bytes else 0
    return MappingCounts(
        private_bytes + swapped_bytes, file_bytes, anonymous_bytes - private_bytes, uncertain_bytes, evidence
    )


def private_swap(mapping: Mapping) -> tuple[int, bool]:
    """Return the swapped bytes that belong to this process alone, and whether that is exact."""
    if mapping.is_shared:
        # Swapped shared memory belongs to the shared object, whoever maps it.
        return 0, True
    swap_bytes = mapping.counters.get("Swap") or 0
    share_bytes = mapping.counters.get("SwapPss")
    if share_bytes is None or share_bytes == swap_bytes:
        return swap_bytes, share_bytes is not None or swap_bytes == 0
    return share_bytes, False


def _without_anonymous(mapping: Mapping, resident_bytes: int) -> MappingCounts:
    """Estimate the counts for kernels before 2.6.37 and for pmap -x, which do not count anonymous pages."""
    counter = mapping.counters.get
    if mapping.is_shared:
        return MappingCounts(0, resident_bytes, 0, 0, Evidence.ESTIMATED)
    has_file = bool(mapping.name) and not mapping.name.startswith("[")
    private_dirty_bytes = counter("Private_Dirty")
    dirty_bytes = counter("Dirty") if private_dirty_bytes is None else private_dirty_bytes
    if dirty_bytes is None:
        return MappingCounts(None, None, 0, 0, Evidence.VIRTUAL)
    if has_file:
        # A private page of a file is dirty because it was copied, or because the file itself was written just now.
        private_bytes = min(dirty_bytes, resident_bytes)
    elif private_dirty_bytes is None:
        private_bytes = resident_bytes
    else:
        private_bytes = min(private_dirty_bytes + (counter("Private_Clean") or 0), resident_bytes)
    swapped_bytes, _ = private_swap(mapping)
    return MappingCounts(private_bytes + swapped_bytes, resident_bytes - private_bytes, 0, 0, Evidence.ESTIMATED)


def _from_toybox(mapping: Mapping) -> MappingCounts:
    """Estimate the counts for the pmap of toybox and busybox: PSS, private dirty and swap, but no resident size."""
    if mapping.is_shared:
        return MappingCounts(0, mapping.counters.get("Pss") or 0, 0, 0, Evidence.ESTIMATED)
    private_bytes = mapping.counters.get("Private_Dirty") or 0
    rest_bytes = max(0, (mapping.counters.get("Pss") or 0) - private_bytes)
    return MappingCounts(private_bytes + (mapping.counters.get("Swap") or 0), rest_bytes, 0, 0, Evidence.ESTIMATED)


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
