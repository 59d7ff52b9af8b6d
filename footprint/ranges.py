"""Half-open ranges with one owner each: the structure that keeps every total conserved.

`partition` cuts one span among claims. Where claims overlap, one wins by a fixed precedence and the loss is counted;
where nothing claims, the caller names the remainder. The pieces of a `Partition` always add up to its span: the
constructor refuses anything else, so that no total downstream needs to be computed by subtraction.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ("Claim", "Gap", "Overlap", "Partition", "Piece", "partition")

T = TypeVar("T")


class Claim(NamedTuple, Generic[T]):
    """A wish to own `[start, end)`.

    The lower `rank` wins, then the earlier start, then the longer, then the one given first.
    """

    start: int
    end: int
    owner: T
    rank: int = 0


class Piece(NamedTuple, Generic[T]):
    """A range with its one owner. Each comes of one claim, so neighbours may have equal owners."""

    start: int
    end: int
    owner: T


class Gap(NamedTuple, Generic[T]):
    """A range that nothing claims, with the owners on both sides; None at the ends of the span."""

    start: int
    end: int
    before: T | None
    after: T | None


class Overlap(NamedTuple):
    """What claims lost to stronger ones.

    Attributes:
        count: Claims that got less than they asked for within the span.
        lost_bytes: What they lost in all; each byte counts once for every claim that lost it.
        example_at: Where the first claim that lost starts, or None where nothing overlaps.
    """

    count: int = 0  # type: ignore[assignment] # tuple.count is not missed
    lost_bytes: int = 0
    example_at: int | None = None


NO_OVERLAP: Final = Overlap()


@dataclass(frozen=True)
class Partition(Generic[T]):
    """A span cut into pieces that cover it exactly, in ascending order.

    Raises:
        ValueError: Where the pieces leave a hole, overlap, or reach beyond the span.
    """

    start: int
    end: int
    pieces: tuple[Piece[T], ...]
    overlap: Overlap = NO_OVERLAP

    def __post_init__(self) -> None:
        at = self.start
        for start, end, _ in self.pieces:
            if start != at or end <= at:
                raise ValueError(f"the piece [{start:#x}, {end:#x}) does not continue at {at:#x}")
            at = end
        if at != max(self.start, self.end):
            raise ValueError(f"the pieces end at {at:#x}, the span at {self.end:#x}")


def partition(
    start: int, end: int, claims: Iterable[Claim[T] | Piece[T]], explain: Callable[[Gap[T]], Sequence[Piece[T]]]
) -> Partition[T]:
    """Cut `[start, end)` among the claims; `explain` names each range that none of them covers.

    A piece claims its range with rank 0, and is taken as it is where nothing overlaps.
    Claims are clipped to the span; empty ones are dropped. `explain` returns pieces that cover its gap exactly: the
    remainder may have several causes. The cost is n log n in the number of claims.

    Raises:
        ValueError: Where `explain` does not cover its gap.
    """
    given = list(claims)
    owned = _disjoint(start, end, given)
    overlap = NO_OVERLAP
    if owned is None:
        ordered = sorted(
            _Wish(max(claim.start, start), claim.rank, claim.start, -claim.end, order, min(claim.end, end), claim.owner)
            for order, claim in enumerate(one if isinstance(one, Claim) else Claim(*one) for one in given)
            if claim.start < end and claim.end > start and claim.start < claim.end
        )
        owned, got_bytes = _sweep(ordered)
        overlap = _overlap(ordered, got_bytes)
    pieces: list[Piece[T]] = []
    at, before = start, None
    for piece in owned:
        begin, past, owner = piece
        if begin > at:
            pieces.extend(explain(Gap(at, begin, before, owner)))
        pieces.append(piece)
        at, before = past, owner
    if at < end:
        pieces.extend(explain(Gap(at, end, before, None)))
    return Partition(start, end, tuple(pieces), overlap)


def _disjoint(start: int, end: int, claims: list[Claim[T] | Piece[T]]) -> list[Piece[T]] | None:
    """Give the pieces of claims that come in order and share nothing, as nearly all do; else None."""
    at = start
    for claim in claims:
        begin, past = claim[:2]
        if begin < at or past > end or past <= begin:
            return None
        at = past
    return [one if isinstance(one, Piece) else Piece(one.start, one.end, one.owner) for one in claims]


class _Wish(NamedTuple, Generic[T]):
    """A claim clipped to the span. Sorted as it stands it comes by where it begins; the rest decides who wins."""

    begin: int
    rank: int
    start: int
    negative_end: int
    order: int
    end: int
    owner: T


def _sweep(wishes: list[_Wish[T]]) -> tuple[list[Piece[T]], dict[int, int]]:
    """Give the ranges that are owned, ascending, and how many bytes each claim got."""
    pieces: list[Piece[T]] = []
    got_bytes: dict[int, int] = {}
    # The strongest of the claims that cover the place comes first; `order` is unique, so owners are never compared.
    active: list[tuple[int, int, int, int, _Wish[T]]] = []
    at, index, last = 0, 0, -1
    while index < len(wishes) or active:
        if not active:
            at = wishes[index].begin
        while index < len(wishes) and wishes[index].begin <= at:
            wish = wishes[index]
            heappush(active, (wish.rank, wish.start, wish.negative_end, wish.order, wish))
            index += 1
        wish = active[0][4]
        if wish.end <= at:
            heappop(active)
            continue
        # Where a later claim begins, it may win: look again there.
        until = wish.end if index == len(wishes) else min(wish.end, wishes[index].begin)
        if wish.order == last and pieces[-1].end == at:
            pieces[-1] = Piece(pieces[-1].start, until, wish.owner)
        else:
            pieces.append(Piece(at, until, wish.owner))
        got_bytes[wish.order] = got_bytes.get(wish.order, 0) + until - at
        at, last = until, wish.order
    return pieces, got_bytes


def _overlap(wishes: list[_Wish[T]], got_bytes: dict[int, int]) -> Overlap:
    """Count what the claims asked for and did not get."""
    losses = [
        (wish.begin, lost_bytes)
        for wish in wishes
        if (lost_bytes := wish.end - wish.begin - got_bytes.get(wish.order, 0))
    ]
    return Overlap(len(losses), sum(lost for _, lost in losses), losses[0][0]) if losses else NO_OVERLAP
