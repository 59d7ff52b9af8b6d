"""The mappings of a process one by one: what each costs, whose it is, and what the kernel tells of it.

The ledger adds all of this up. Only a picture and JSON need single mappings, so an audit has them only on request.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Dict
from heapq import nlargest
from itertools import groupby
from typing import Final

from footprint.attribution.accounts import known_sum, least_sure
from footprint.attribution.ledger import OwnedPart, owned_parts
from footprint.attribution.owned_range import MappingCounts, OwnedRange, by_mapping
from footprint.model.costs import MappingCost
from footprint.model.row import MemoryKind, weakest
from footprint.process.mappings import Mapping
from footprint.process.pages import PageRange

MOST_MAPPINGS: Final = 1000
"""Of all rows of an audit with addresses: no picture shows as many."""
_MOST_GUARD_BYTES: Final = 1 << 20


def mapping_costs(
    parts: Sequence[OwnedRange], mapping_counts: Sequence[MappingCounts], pages: Dict[int, Sequence[PageRange]] | None
) -> tuple[MappingCost, ...]:
    """Return the largest mappings with private bytes, and the sums of the others by owner and kind of memory.

    There is none where private bytes are not known. The parameters are those of
    `footprint.attribution.ledger.ledger_rows`.
    """
    if all(counts.private_bytes is None for counts in mapping_counts):
        return ()
    guards = _guard_edges([part.mapping for part in parts])
    costs = []
    for ranges, counts in by_mapping(parts, mapping_counts):
        by_account: dict[tuple[str, MemoryKind], list[OwnedPart]] = {}
        for owned_part in owned_parts(ranges, counts, pages):
            by_account.setdefault((owned_part.range.owner, owned_part.range.kind), []).append(owned_part)
        mapping = ranges[0].mapping
        swapped_bytes = _swapped_bytes(mapping, pages)
        has_guard = mapping.start_addr in guards or mapping.end_addr in guards
        for account in by_account.values():
            swap = swapped_bytes if len(by_account) == 1 or not swapped_bytes else _swapped_of(account, mapping, pages)
            costs.append(_cost(mapping, account, swap, has_guard=has_guard and mapping.permissions[:3] != "---"))
    listed = nlargest(MOST_MAPPINGS, [cost for cost in costs if cost.bytes], key=lambda cost: cost.bytes or 0)
    numbers = set(map(id, listed))
    return (*listed, *_sums([cost for cost in costs if id(cost) not in numbers]))


def _cost(mapping: Mapping, parts: Sequence[OwnedPart], swapped_bytes: int | None, *, has_guard: bool) -> MappingCost:
    """Return what an owner has in a mapping."""
    first = parts[0].range
    return MappingCost(
        owner=first.owner,
        kind=first.kind,
        start_addr=mapping.start_addr,
        end_addr=mapping.end_addr,
        permissions=mapping.permissions,
        name=mapping.name or None,
        mapping_count=1,
        bytes=known_sum([part.counts.private_bytes for part in parts]),
        mapped_bytes=sum([part.range.size_bytes for part in parts]),
        swapped_bytes=swapped_bytes,
        has_guard=has_guard,
        evidence=weakest({part.counts.evidence for part in parts}),
        attribution=least_sure({part.range.attribution for part in parts}),
    )


def _guard_edges(mappings: Iterable[Mapping]) -> set[int]:
    """Return the addresses at which a guard begins or ends."""
    return {
        addr
        for mapping in mappings
        if mapping.permissions[:3] == "---" and mapping.size_bytes <= _MOST_GUARD_BYTES
        for addr in (mapping.start_addr, mapping.end_addr)
    }


def _swapped_bytes(mapping: Mapping, pages: Dict[int, Sequence[PageRange]] | None) -> int | None:
    """Return how much of the private memory of a mapping is swapped out; None where unknown."""
    private = pages.get(mapping.start_addr) if pages else None
    share_bytes = mapping.counters.swap_share_bytes()
    if private is not None and share_bytes is None:
        return sum([end - start for start, end, is_swapped in private if is_swapped])
    if mapping.is_shared:
        return 0
    share_bytes = mapping.counters.get("SwapPss")
    return mapping.counters.get("Swap") if share_bytes is None else share_bytes


def _swapped_of(
    parts: Sequence[OwnedPart], mapping: Mapping, pages: Dict[int, Sequence[PageRange]] | None
) -> int | None:
    """Return how much of the private memory of one of several owners is swapped out."""
    if not pages or mapping.start_addr not in pages:
        return None
    return sum([end - start for part in parts for start, end, is_swapped in part.private or () if is_swapped])


def _sums(costs: Iterable[MappingCost]) -> Iterable[MappingCost]:
    """Add up the mappings of each owner and kind of memory."""
    ordered = sorted(costs, key=_account)
    for _, some in groupby(ordered, key=_account):
        alike = list(some)
        yield alike[0]._replace(
            start_addr=None,
            end_addr=None,
            permissions=None,
            name=None,
            mapping_count=len(alike),
            bytes=known_sum([c.bytes for c in alike]),
            mapped_bytes=sum([c.mapped_bytes for c in alike]),
            swapped_bytes=known_sum([c.swapped_bytes for c in alike]),
            has_guard=False,
            evidence=weakest({c.evidence for c in alike}),
            attribution=least_sure({c.attribution for c in alike}),
        )


def _account(cost: MappingCost) -> tuple[str, MemoryKind, bool]:
    return cost.owner, cost.kind, cost.bytes is None
