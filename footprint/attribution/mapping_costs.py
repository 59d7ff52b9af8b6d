"""The mappings of a process one by one: what each costs, whose it is, and what the kernel tells of it.

The ledger adds all of this up. Only a picture and JSON need single mappings, so an audit has them only on request.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from heapq import nlargest
from itertools import groupby
from typing import Final

from footprint.attribution.accounts import known_sum, least_sure
from footprint.attribution.counters import MappingCounts
from footprint.attribution.ledger import Owned, owned_parts
from footprint.attribution.owned_range import OwnedRange, by_mapping
from footprint.model.evidence import weakest
from footprint.model.mapping_cost import MappingCost
from footprint.model.row import MemoryKind
from footprint.process import Mapping, PageRange

__all__ = ("MOST_MAPPINGS", "mapping_costs")

MOST_MAPPINGS: Final = 1000
"""Of all rows of an audit with addresses: no picture shows as many."""
_MOST_GUARD_BYTES: Final = 1 << 20


def mapping_costs(
    parts: Sequence[OwnedRange], held: Sequence[MappingCounts], pages: Dict[int, Sequence[PageRange]] | None
) -> tuple[MappingCost, ...]:
    """Return the largest mappings with private bytes, and the sums of the others by owner and kind of memory.

    There is none where private bytes are not known. The parameters are those of
    `footprint.attribution.ledger.ledger_rows`.
    """
    if all(counts.private_bytes is None for counts in held):
        return ()
    guards = _guard_edges([one.mapping for one in parts])
    found = []
    for ranges, counts in by_mapping(parts, held):
        own: dict[tuple[str, MemoryKind], list[Owned]] = {}
        for one in owned_parts(ranges, counts, pages):
            own.setdefault((one.range.owner, one.range.kind), []).append(one)
        mapping = ranges[0].mapping
        swapped_bytes = _swapped_bytes(mapping, pages)
        has_guard = mapping.start_addr in guards or mapping.end_addr in guards
        for each in own.values():
            swap = swapped_bytes if len(own) == 1 or not swapped_bytes else _swapped_of(each, mapping, pages)
            found.append(_cost(mapping, each, swap, has_guard=has_guard and mapping.permissions[:3] != "---"))
    listed = nlargest(MOST_MAPPINGS, [one for one in found if one.bytes], key=lambda one: one.bytes or 0)
    numbers = set(map(id, listed))
    return (*listed, *_sums([one for one in found if id(one) not in numbers]))


def _cost(mapping: Mapping, own: Sequence[Owned], swapped_bytes: int | None, *, has_guard: bool) -> MappingCost:
    """Return what an owner has in a mapping."""
    first = own[0].range
    return MappingCost(
        owner=first.owner,
        kind=first.kind,
        start_addr=mapping.start_addr,
        end_addr=mapping.end_addr,
        permissions=mapping.permissions,
        name=mapping.name or None,
        mapping_count=1,
        bytes=known_sum([one.counts.private_bytes for one in own]),
        mapped_bytes=sum([one.range.size_bytes for one in own]),
        swapped_bytes=swapped_bytes,
        has_guard=has_guard,
        evidence=weakest({one.counts.evidence for one in own}),
        attribution=least_sure({one.range.attribution for one in own}),
    )


def _guard_edges(mappings: Iterable[Mapping]) -> set[int]:
    """Return the addresses at which a guard begins or ends."""
    return {
        addr
        for one in mappings
        if one.permissions[:3] == "---" and one.size_bytes <= _MOST_GUARD_BYTES
        for addr in (one.start_addr, one.end_addr)
    }


def _swapped_bytes(mapping: Mapping, pages: Dict[int, Sequence[PageRange]] | None) -> int | None:
    """Return how much of the private memory of a mapping is swapped out; None where unknown."""
    private = pages.get(mapping.start_addr) if pages else None
    if private is not None:
        return sum([end - start for start, end, is_swapped in private if is_swapped])
    if mapping.is_shared:
        return 0
    share_bytes = mapping.counters.get("SwapPss")
    return mapping.counters.get("Swap") if share_bytes is None else share_bytes


def _swapped_of(own: Sequence[Owned], mapping: Mapping, pages: Dict[int, Sequence[PageRange]] | None) -> int | None:
    """Return how much of the private memory of one of several owners is swapped out."""
    if not pages or mapping.start_addr not in pages:
        return None
    return sum([end - start for one in own for start, end, is_swapped in one.private or () if is_swapped])


def _sums(costs: Iterable[MappingCost]) -> Iterable[MappingCost]:
    """Add up the mappings of each owner and kind of memory."""
    ordered = sorted(costs, key=_account)
    for _, some in groupby(ordered, key=_account):
        own = list(some)
        yield own[0]._replace(
            start_addr=None,
            end_addr=None,
            permissions=None,
            name=None,
            mapping_count=len(own),
            bytes=known_sum([one.bytes for one in own]),
            mapped_bytes=sum([one.mapped_bytes for one in own]),
            swapped_bytes=known_sum([one.swapped_bytes for one in own]),
            has_guard=False,
            evidence=weakest({one.evidence for one in own}),
            attribution=least_sure({one.attribution for one in own}),
        )


def _account(one: MappingCost) -> tuple[str, MemoryKind, bool]:
    return one.owner, one.kind, one.bytes is None
