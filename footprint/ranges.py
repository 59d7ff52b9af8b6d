"""Half-open ranges with one owner each: the structure that conserves every total.

`partition` cuts one span among claims. Where claims overlap, one wins by a fixed precedence, and what the others lose
is counted. Where nothing claims, the caller names the remainder. The pieces of a `Partition` always add up to its span:
its constructor refuses anything else, so no total is ever computed by subtraction.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from operator import eq, itemgetter, le, lt
from typing import Generic, NamedTuple, TypeVar

__all__ = ("Claim", "Gap", "Partition", "Piece", "partition")

T = TypeVar("T")

_START, _END = itemgetter(0), itemgetter(1)


class Claim(NamedTuple, Generic[T]):
    """A claim to own `[start, end)`.

    The lower `rank` wins, then the earlier start, then the longer range, then the claim that was given first.
    """

    start: int
    end: int
    owner: T
    rank: int = 0


class Piece(NamedTuple, Generic[T]):
    """A range with its one owner. Each piece comes from one claim, so neighbours may have equal owners."""

    start: int
    end: int
    owner: T


class Gap(NamedTuple, Generic[T]):
    """A range that nothing claims, with the owners on both sides; None at the ends of the span."""

    start: int
    end: int
    before: T | None
    after: T | None


@dataclass(frozen=True)
class Partition(Generic[T]):
    """A span cut into pieces that cover it exactly, in ascending order.

    Attributes:
        start: The first address of the span.
        end: The address behind its last.
        pieces: The pieces.
        lost_bytes: What claims lost to stronger ones; a byte counts once for every claim that lost it.

    Raises:
        ValueError: Where the pieces leave a hole, overlap, or reach beyond the span.
    """

    start: int
    end: int
    pieces: tuple[Piece[T], ...]
    lost_bytes: int = 0

    def __post_init__(self) -> None:
        starts, ends = list(map(_START, self.pieces)), list(map(_END, self.pieces))
        if starts == [self.start, *ends[:-1]] and ends[-1] == self.end and all(map(lt, starts, ends)):
            return
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

    A `Piece` claims its range with rank 0. Claims are clipped to the span, and empty ones are dropped. `explain`
    returns pieces that cover its gap exactly: a remainder may have several causes. The cost is n log n in the number
    of claims.

    Raises:
        ValueError: Where `explain` does not cover its gap.
    """
    given = list(claims)
    owned = _disjoint(start, end, given)
    lost_bytes = 0
    if owned is None:
        ordered = sorted(
            _Wish(max(claim.start, start), claim.rank, claim.start, -claim.end, order, min(claim.end, end), claim.owner)
            for order, claim in enumerate(one if isinstance(one, Claim) else Claim(*one) for one in given)
            if claim.start < end and claim.end > start and claim.start < claim.end
        )
        owned = _sweep(ordered)
        wanted_bytes = sum([wish.end - wish.begin for wish in ordered])
        lost_bytes = wanted_bytes - sum([piece.end - piece.start for piece in owned])
    if owned and owned[0].start == start and owned[-1].end == end and _has_no_gaps(owned):
        return Partition(start, end, tuple(owned), lost_bytes)
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
    return Partition(start, end, tuple(pieces), lost_bytes)


def _has_no_gaps(pieces: list[Piece[T]]) -> bool:
    return all(map(eq, map(_END, pieces), islice(map(_START, pieces), 1, None)))


def _disjoint(start: int, end: int, claims: list[Claim[T] | Piece[T]]) -> list[Piece[T]] | None:
    """Return the pieces of claims that are in order and do not overlap, as nearly all are; else None."""
    starts, ends = list(map(_START, claims)), list(map(_END, claims))
    if claims and (starts[0] < start or ends[-1] > end):
        return None
    if not all(map(lt, starts, ends)) or not all(map(le, ends, islice(starts, 1, None))):
        return None
    if set(map(type, claims)) <= {Piece}:
        return claims  # type: ignore[return-value] # no claim is a Claim
    return [one if isinstance(one, Piece) else Piece(one.start, one.end, one.owner) for one in claims]


class _Wish(NamedTuple, Generic[T]):
    """A claim clipped to the span. Its first field sorts claims by where they begin, the others decide who wins."""

    begin: int
    rank: int
    start: int
    negative_end: int
    order: int
    end: int
    owner: T


def _sweep(wishes: list[_Wish[T]]) -> list[Piece[T]]:
    """Return the ranges that are owned, ascending."""
    pieces: list[Piece[T]] = []
    # The strongest claim at the current address comes first; `order` is unique, so owners are never compared.
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
        # A later claim may win from where it begins.
        until = wish.end if index == len(wishes) else min(wish.end, wishes[index].begin)
        if wish.order == last and pieces[-1].end == at:
            pieces[-1] = Piece(pieces[-1].start, until, wish.owner)
        else:
            pieces.append(Piece(at, until, wish.owner))
        at, last = until, wish.order
    return pieces
