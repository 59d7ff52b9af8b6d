"""The figures of a whole process, each with how it is known."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from footprint.audit.kernel import KernelCost
from footprint.audit.measured import Held
from footprint.evidence import Evidence, weakest
from footprint.process import Mapping, MemoryMap

__all__ = ("OfWhich", "Total", "Totals", "total_up")


class Total(NamedTuple):
    """A figure of the whole process with how it is known; `bytes` is None where the input cannot tell."""

    bytes: int | None
    evidence: Evidence


class OfWhich(NamedTuple):
    """What kinds of memory the figures contain that behave in their own way; 0 where there is none, or none is told.

    Attributes:
        swapped_bytes: Part of `private`: on a swap device, back in memory when touched.
        lazy_free_bytes: Part of `private`: given back with MADV_FREE, taken by the kernel when it needs it.
        locked_bytes: Never swapped (mlock); its share of pages that others map too.
        huge_page_bytes: Part of `private`, in transparent huge pages: a whole one is paid for each byte written.
        ksm_bytes: Merged with equal pages, of others or its own; no part of `private` where others map them.
        hugetlb_private_bytes: Huge pages of the reserved pool that it holds alone; in no total, as they were paid for
            when the pool was made.
        hugetlb_shared_bytes: The same, shared.
        own_shared_bytes: Part of `shared_once`: memory of its own that is mapped shared (memfd, shared anonymous), and
            which each started copy would make for itself.
    """

    swapped_bytes: int
    lazy_free_bytes: int
    locked_bytes: int
    huge_page_bytes: int
    ksm_bytes: int
    hugetlb_private_bytes: int
    hugetlb_shared_bytes: int
    own_shared_bytes: int


class Totals(NamedTuple):
    """The figures of a whole process.

    Attributes:
        private: Resident or swapped anonymous memory that only this process holds.
        kernel: Page tables, kernel stacks, kernel objects.
        per_process: Both: what one more process costs.
        shared_once: Resident pages of files and shared memory, paid once per machine.
        shared_with_relatives: Anonymous memory that fork relatives hold too, or that KSM merged.
        mapped_writable: Virtual size of the private writable mappings: pmap's `writeable/private`.
        mapped_shared: Virtual size of the shared mappings: pmap's `shared`.
        mapped: Virtual size of all mappings.
        floor: Pages surely written at start, predicted from the files.
        ceiling: All pages that can ever be written, predicted from the files.
        of_which: Kinds of memory in them that behave in their own way.
    """

    private: Total
    kernel: Total
    per_process: Total
    shared_once: Total
    shared_with_relatives: Total
    mapped_writable: Total
    mapped_shared: Total
    mapped: Total
    floor: Total
    ceiling: Total
    of_which: OfWhich


def total_up(memory: MemoryMap, held: Sequence[Held], kernel: Sequence[KernelCost]) -> Totals:
    """Add up what the mappings hold and what the kernel spends."""
    private = _private(held)
    spent = Total(
        sum(cost.size_bytes for cost in kernel) if kernel else None, weakest(cost.evidence for cost in kernel)
    )
    unknown = Total(None, Evidence.PREDICTED)

    def mapped(mappings: Iterable[Mapping]) -> Total:
        return Total(sum(mapping.size_bytes for mapping in mappings) if is_told else None, Evidence.VIRTUAL)

    # The sums of smaps_rollup say nothing of what is mapped.
    is_told = memory.dialect != "smaps_rollup"
    relatives_bytes = sum(one.relatives_bytes for one in held) if private.bytes is not None else None
    return Totals(
        private=private,
        kernel=spent,
        per_process=_both(private, spent),
        shared_once=_shared_once(held, private.evidence),
        shared_with_relatives=Total(relatives_bytes, private.evidence),
        mapped_writable=mapped(m for m in memory.mappings if m.is_mapped_writable),
        mapped_shared=mapped(m for m in memory.mappings if m.is_shared),
        mapped=mapped(memory.mappings),
        floor=unknown,
        ceiling=unknown,
        of_which=_of_which(memory),
    )


def _private(held: Sequence[Held]) -> Total:
    known = [one for one in held if one.private_bytes is not None]
    if held and not known:
        return Total(None, Evidence.VIRTUAL)
    # In a text that was cut a mapping may have lost its counters: what the others hold is still known, and it is noted.
    return Total(sum(one.private_bytes or 0 for one in known), weakest(one.evidence for one in known))


def _shared_once(held: Sequence[Held], evidence: Evidence) -> Total:
    known = [one.shared_bytes for one in held if one.shared_bytes is not None]
    # A page that the process maps twice is counted twice.
    return Total(sum(known) if known or not held else None, weakest((evidence, Evidence.DERIVED)))


def _both(private: Total, kernel: Total) -> Total:
    if private.bytes is None or kernel.bytes is None:
        return Total(None, weakest((private.evidence, kernel.evidence)))
    return Total(private.bytes + kernel.bytes, weakest((private.evidence, kernel.evidence)))


_OWN_SHARED = ("/memfd:", "/dev/zero", "[anon_shmem:")


def _of_which(memory: MemoryMap) -> OfWhich:
    own_shared = 0
    for mapping in memory.mappings:
        if mapping.is_shared and mapping.name.startswith(_OWN_SHARED):
            once = mapping.counters.get
            own_shared += (once("Private_Clean") or 0) + (once("Private_Dirty") or 0)
    private_swap = sum(m.counters.get("Swap") or 0 for m in memory.mappings if not m.is_shared)
    is_locked_told = not any(note.slug == "locked-unreliable" for note in memory.notes)
    return OfWhich(
        swapped_bytes=private_swap,
        lazy_free_bytes=memory.sum("LazyFree"),
        locked_bytes=memory.sum("Locked") if is_locked_told else 0,
        huge_page_bytes=memory.sum("AnonHugePages"),
        ksm_bytes=memory.sum("KSM"),
        hugetlb_private_bytes=memory.sum("Private_Hugetlb"),
        hugetlb_shared_bytes=memory.sum("Shared_Hugetlb"),
        own_shared_bytes=own_shared,
    )
