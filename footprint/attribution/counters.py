"""How much of a mapping only this process holds, from the kernel's counters of it.

Source: fs/proc/task_mmu.c (smaps_account, smaps_pte_entry) of Linux 6.18: `Anonymous` counts pages without a file,
`Private_*` pages that are mapped once, of both kinds.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from typing import NamedTuple

from footprint.model.evidence import Evidence, weakest
from footprint.process import Counters, Mapping, PageRange

__all__ = ("MappingCounts", "count_each", "count_mapping")


class MappingCounts(NamedTuple):
    """What the kernel counts in one mapping.

    Attributes:
        private_bytes: Resident or swapped anonymous bytes that only this process holds; None where unknown.
        shared_bytes: Resident pages of files and shared memory: paid once per machine; None where the text cannot tell.
        cow_shared_bytes: Anonymous bytes that other processes hold too (after fork, or merged by KSM).
        uncertain_bytes: How much of `private_bytes` may belong to `cow_shared_bytes` instead; page bits would tell.
        evidence: How `private_bytes` is known.
    """

    private_bytes: int | None
    shared_bytes: int | None
    cow_shared_bytes: int
    uncertain_bytes: int
    evidence: Evidence


_UNKNOWN = MappingCounts(None, None, 0, 0, Evidence.VIRTUAL)


def count_each(mappings: Iterable[Mapping], pages: Dict[int, Sequence[PageRange]] | None = None) -> list[MappingCounts]:
    """Read what each of many mappings holds. Those with the same counters are worked out once.

    Args:
        mappings: The mappings.
        pages: By the start of its mapping, its private pages; where a mapping is missing, its counters decide.
    """
    # The counters are kept with what they give: while they live, nothing else has their id.
    known: dict[tuple[int, str, str], tuple[Counters, MappingCounts]] = {}
    # What is the same is one object: of many mappings few differ.
    alike: dict[tuple[int, int, int], MappingCounts] = {}
    found = []
    for mapping in mappings:
        key = (id(mapping.counters), mapping.permissions[3], mapping.name[:1])
        if key not in known:
            known[key] = mapping.counters, count_mapping(mapping)
        held = known[key][1]
        ranges = pages.get(mapping.start_addr) if pages else None
        if ranges is not None:
            private_bytes = swapped_bytes = 0
            for start_addr, end_addr, is_swapped in ranges:
                private_bytes += end_addr - start_addr
                if is_swapped:
                    swapped_bytes += end_addr - start_addr
            same = (id(held), private_bytes, swapped_bytes)
            if same not in alike:
                alike[same] = _with_pages(held, mapping, private_bytes, private_bytes - swapped_bytes)
            held = alike[same]
        found.append(held)
    if any(held.uncertain_bytes for held in found):
        # Who shares anonymous memory at all, shares some that no file is mixed with: then the rest is in doubt.
        has_relatives = any(held.cow_shared_bytes for held in found)
        doubt = Evidence.ESTIMATED if has_relatives else Evidence.DERIVED
        found = [
            held._replace(evidence=weakest((held.evidence, doubt))) if held.uncertain_bytes else held for held in found
        ]
    return found


def _with_pages(held: MappingCounts, mapping: Mapping, private_bytes: int, resident_bytes: int) -> MappingCounts:
    """Let the page bits say what is private; the counters say what else is there."""
    cow_shared_bytes = max(0, (mapping.counters.get("Anonymous") or 0) - resident_bytes)
    return MappingCounts(private_bytes, held.shared_bytes, cow_shared_bytes, 0, Evidence.MEASURED)


def count_mapping(mapping: Mapping) -> MappingCounts:
    """Read what a mapping holds from whichever counters its text has.

    Where anonymous and file pages stand in one mapping and some of its pages are shared, smaps does not say which: they
    are taken for file pages as far as those go, which is exact unless the process shares memory with fork relatives.
    """
    counter = mapping.counters.get
    resident_bytes = counter("Rss")
    if resident_bytes is None:
        return _from_toybox(mapping) if counter("Private_Dirty") is not None else _UNKNOWN
    anonymous_bytes = counter("Anonymous")
    if anonymous_bytes is None:
        return _without_anonymous(mapping, resident_bytes)
    # A text may say anything: what is anonymous is part of what is resident.
    anonymous_bytes = min(anonymous_bytes, resident_bytes)
    swapped_bytes, is_swap_exact = _swapped(mapping)
    shared_dirty_bytes = counter("Shared_Dirty")
    evidence = Evidence.MEASURED if is_swap_exact else Evidence.ESTIMATED
    if shared_dirty_bytes is None:
        # pmap -X: nothing tells who else has the pages.
        evidence = Evidence.ESTIMATED if anonymous_bytes else evidence
        return MappingCounts(anonymous_bytes + swapped_bytes, resident_bytes - anonymous_bytes, 0, 0, evidence)
    many_times_bytes = shared_dirty_bytes + (counter("Shared_Clean") or 0)
    once_bytes = (counter("Private_Dirty") or 0) + (counter("Private_Clean") or 0)
    file_bytes = resident_bytes - anonymous_bytes
    private_bytes = min(anonymous_bytes, once_bytes)
    surely_bytes = max(0, anonymous_bytes - many_times_bytes)
    uncertain_bytes = max(0, private_bytes - surely_bytes) if file_bytes else 0
    return MappingCounts(
        private_bytes + swapped_bytes, file_bytes, anonymous_bytes - private_bytes, uncertain_bytes, evidence
    )


def _swapped(mapping: Mapping) -> tuple[int, bool]:
    """Give the swapped bytes that are this process's own, and whether that is exact."""
    if mapping.is_shared:
        # Swap of shared memory is the object's, whoever maps it.
        return 0, True
    swap_bytes = mapping.counters.get("Swap") or 0
    share_bytes = mapping.counters.get("SwapPss")
    if share_bytes is None or share_bytes == swap_bytes:
        return swap_bytes, share_bytes is not None or swap_bytes == 0
    return share_bytes, False


def _without_anonymous(mapping: Mapping, resident_bytes: int) -> MappingCounts:
    """Estimate for kernels before 2.6.37 and for pmap -x, which do not tell anonymous pages from those of files."""
    counter = mapping.counters.get
    if mapping.is_shared:
        return MappingCounts(0, resident_bytes, 0, 0, Evidence.ESTIMATED)
    has_file = bool(mapping.name) and not mapping.name.startswith("[")
    private_dirty_bytes = counter("Private_Dirty")
    dirty_bytes = counter("Dirty") if private_dirty_bytes is None else private_dirty_bytes
    if dirty_bytes is None:
        return MappingCounts(None, None, 0, 0, Evidence.VIRTUAL)
    if has_file:
        # A private page of a file is dirty because it was copied, or because the file itself was just written.
        private_bytes = min(dirty_bytes, resident_bytes)
    elif private_dirty_bytes is None:
        private_bytes = resident_bytes
    else:
        private_bytes = min(private_dirty_bytes + (counter("Private_Clean") or 0), resident_bytes)
    swapped_bytes, _ = _swapped(mapping)
    return MappingCounts(private_bytes + swapped_bytes, resident_bytes - private_bytes, 0, 0, Evidence.ESTIMATED)


def _from_toybox(mapping: Mapping) -> MappingCounts:
    """Estimate for the pmap of toybox and busybox: PSS, private dirty and swap, no resident size."""
    if mapping.is_shared:
        return MappingCounts(0, mapping.counters.get("Pss") or 0, 0, 0, Evidence.ESTIMATED)
    private_bytes = mapping.counters.get("Private_Dirty") or 0
    rest_bytes = max(0, (mapping.counters.get("Pss") or 0) - private_bytes)
    return MappingCounts(private_bytes + (mapping.counters.get("Swap") or 0), rest_bytes, 0, 0, Evidence.ESTIMATED)
