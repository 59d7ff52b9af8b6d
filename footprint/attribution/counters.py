"""How much of a mapping only this process holds, from the kernel's counters of it.

Source: fs/proc/task_mmu.c (smaps_account, smaps_pte_entry) of Linux 6.18: `Anonymous` counts pages without a file,
`Private_*` pages that are mapped once, of both kinds.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict

from footprint.members import NamedTuple
from footprint.model.row import Evidence, weakest
from footprint.process.mappings import Counters, Mapping
from footprint.process.pages import PageRange


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


_UNKNOWN = MappingCounts(None, None, 0, 0, Evidence.VIRTUAL)


def count_each(mappings: Iterable[Mapping], pages: Dict[int, Sequence[PageRange]] | None = None) -> list[MappingCounts]:
    """Count what each mapping holds. Mappings with the same counters are computed once.

    Args:
        mappings: The mappings.
        pages: The private pages of each mapping, by its start address; counters decide for mappings without entry.
    """
    # The counters are kept with their result: as long as they exist, no other object has their id.
    counts_by_kind: dict[tuple[int, str, str], tuple[Counters, MappingCounts]] = {}
    # Equal counts are one object: few of many mappings differ.
    alike: dict[tuple[int, int, int], MappingCounts] = {}
    counts = []
    for mapping in mappings:
        key = (id(mapping.counters), mapping.permissions[3], mapping.name[:1])
        if key not in counts_by_kind:
            counts_by_kind[key] = mapping.counters, count_mapping(mapping)
        mapping_counts = counts_by_kind[key][1]
        ranges = pages.get(mapping.start_addr) if pages else None
        if ranges is not None:
            private_bytes = swapped_bytes = 0
            for start_addr, end_addr, is_swapped in ranges:
                private_bytes += end_addr - start_addr
                if is_swapped:
                    swapped_bytes += end_addr - start_addr
            same = (id(mapping_counts), private_bytes, swapped_bytes)
            if same not in alike:
                alike[same] = _with_pages(mapping_counts, mapping, private_bytes, private_bytes - swapped_bytes)
            mapping_counts = alike[same]
        counts.append(mapping_counts)
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
