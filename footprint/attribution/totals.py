"""The figures of a whole process, each with how it is known."""

from collections.abc import Iterable, Sequence

from footprint.attribution.counters import MappingCounts
from footprint.attribution.kernel import KernelCost
from footprint.attribution.shared_memory import own_shared_bytes
from footprint.model.evidence import Evidence, weakest
from footprint.model.totals import OfWhich, Total, Totals
from footprint.process import Mapping, MemoryMap

__all__ = ("total_up",)


def total_up(memory: MemoryMap, held: Sequence[MappingCounts], kernel: Sequence[KernelCost]) -> Totals:
    """Add up what the mappings hold and what the kernel spends on the process."""
    private, special = _private(held), _of_which(memory)
    spent = Total(
        sum(cost.size_bytes for cost in kernel) if kernel else None, weakest(cost.evidence for cost in kernel)
    )
    unknown = Total(None, Evidence.PREDICTED)

    def mapped(mappings: Iterable[Mapping]) -> Total:
        return Total(sum(mapping.size_bytes for mapping in mappings) if is_told else None, Evidence.VIRTUAL)

    # smaps_rollup has no virtual sizes.
    is_told = memory.dialect != "smaps_rollup"
    cow_shared_bytes = sum(one.cow_shared_bytes for one in held) if private.bytes is not None else None
    return Totals(
        private=private,
        kernel=spent,
        per_process=_per_process(private, spent, special.own_shared_bytes),
        shared_once=_shared_once(held, private.evidence),
        cow_shared=Total(cow_shared_bytes, private.evidence),
        mapped_writable=mapped(m for m in memory.mappings if m.is_mapped_writable),
        mapped_shared=mapped(m for m in memory.mappings if m.is_shared),
        mapped=mapped(memory.mappings),
        startup_min=unknown,
        startup_max=unknown,
        of_which=special,
    )


def _private(held: Sequence[MappingCounts]) -> Total:
    known = [one for one in held if one.private_bytes is not None]
    if held and not known:
        return Total(None, Evidence.VIRTUAL)
    # In a truncated text a mapping may have no counters. A note says so, and the others are still known.
    return Total(sum(one.private_bytes or 0 for one in known), weakest(one.evidence for one in known))


def _shared_once(held: Sequence[MappingCounts], evidence: Evidence) -> Total:
    known = [one.shared_bytes for one in held if one.shared_bytes is not None]
    # A page that the process maps twice is counted twice.
    return Total(sum(known) if known or not held else None, weakest((evidence, Evidence.DERIVED)))


def _per_process(private: Total, kernel: Total, own_shared_bytes: int) -> Total:
    evidence = weakest((private.evidence, kernel.evidence))
    if private.bytes is None or kernel.bytes is None:
        return Total(None, evidence)
    return Total(private.bytes + kernel.bytes + own_shared_bytes, evidence)


def _of_which(memory: MemoryMap) -> OfWhich:
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
        own_shared_bytes=own_shared_bytes(memory.mappings),
    )
