"""Half-open ranges with one owner each: the structure that conserves every total.

`partition` cuts one span among claims. Where claims overlap, one wins by a fixed precedence, and what the others lose
is counted. Where nothing claims, the caller names the remainder. The pieces of a `Partition` always add up to its span:
its constructor refuses anything else, so no total is ever computed by subtraction.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, compress, islice
from operator import add, itemgetter, le, lt, ne
from typing import Generic, NamedTuple, TypeVar, overload

from footprint.records import each_record

__all__ = ("Claim", "Gap", "Partition", "Piece", "Pieces", "partition", "partition_in_order")

T = TypeVar("T")

_START, _END, _OWNER = itemgetter(0), itemgetter(1), itemgetter(2)


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


class Pieces(Sequence[Piece[T]]):
    """Pieces that follow each other, in columns: of a million, the objects would take more memory than their owners.

    Attributes:
        bounds: Where each piece begins, and where the last one ends.
        owners: The owner of each.
    """

    __slots__ = ("bounds", "owners")

    def __init__(self, bounds: Sequence[int], owners: Sequence[T]) -> None:
        """Take the columns: there is one bound more than there are owners."""
        self.bounds = bounds
        self.owners = owners

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.owners)

    def __iter__(self) -> Iterator[Piece[T]]:
        """Yield the pieces."""
        return each_record(Piece, zip(self.bounds, islice(self.bounds, 1, None), self.owners, strict=False))

    @overload
    def __getitem__(self, index: int) -> Piece[T]: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Piece[T], ...]: ...

    def __getitem__(self, index: int | slice) -> Piece[T] | tuple[Piece[T], ...]:
        """Return a piece, or some of them."""
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(len(self))[index]))
        at = range(len(self))[index]
        return Piece(self.bounds[at], self.bounds[at + 1], self.owners[at])

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same pieces, whatever holds them."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the pieces."""
        return hash(tuple(self))


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
    pieces: Sequence[Piece[T]]
    lost_bytes: int = 0

    def __post_init__(self) -> None:
        bounds = self.pieces.bounds if isinstance(self.pieces, Pieces) else ()
        if bounds and bounds[0] == self.start and bounds[-1] == self.end and _is_ascending(bounds):
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
    starts, ends, owners = _columns(given)
    if _is_disjoint(start, end, starts, ends):
        return _explained(start, end, starts, ends, owners, explain)
    ordered = sorted(
        _Wish(max(claim.start, start), claim.rank, claim.start, -claim.end, order, min(claim.end, end), claim.owner)
        for order, claim in enumerate(one if isinstance(one, Claim) else Claim(*one) for one in given)
        if claim.start < end and claim.end > start and claim.start < claim.end
    )
    owned = _sweep(ordered)
    wanted_bytes = sum([wish.end - wish.begin for wish in ordered])
    lost_bytes = wanted_bytes - sum([piece.end - piece.start for piece in owned])
    return _explained(start, end, *_columns(owned), explain, lost_bytes)


def partition_in_order(
    end: int,
    starts: list[int],
    sizes: Iterable[int],
    owners: Sequence[T],
    explain: Callable[[Gap[T]], Sequence[Piece[T]]],
) -> Partition[T]:
    """Cut `[0, end)` as `partition` does, among claims in columns: they become objects only where they overlap."""
    ends = list(map(add, starts, sizes))
    if _is_disjoint(0, end, starts, ends):
        return _explained(0, end, starts, ends, owners, explain)
    return partition(0, end, map(Piece, starts, ends, owners), explain)


def _columns(claims: Sequence[Claim[T] | Piece[T]]) -> tuple[list[int], list[int], list[T]]:
    return list(map(_START, claims)), list(map(_END, claims)), list(map(_OWNER, claims))


def _is_disjoint(start: int, end: int, starts: list[int], ends: list[int]) -> bool:
    """Return whether claims are in the span, in order, and do not overlap, as nearly all are."""
    if starts and (starts[0] < start or ends[-1] > end):
        return False
    return all(map(lt, starts, ends)) and all(map(le, ends, islice(starts, 1, None)))


def _is_ascending(bounds: Sequence[int]) -> bool:
    return all(map(lt, bounds, islice(bounds, 1, None)))


def _explained(
    start: int,
    end: int,
    starts: list[int],
    ends: list[int],
    owners: Sequence[T],
    explain: Callable[[Gap[T]], Sequence[Piece[T]]],
    lost_bytes: int = 0,
) -> Partition[T]:
    """Name what lies between ranges that are owned, and cut the span at all borders."""
    bounds: list[int] = []
    all_owners: list[T] = []
    at = 0
    # A gap lies before the range of its number; behind the last range there is one, too.
    for gap in [*compress(range(len(starts)), map(ne, starts, chain((start,), ends))), len(starts)]:
        bounds += starts[at:gap]
        all_owners += owners[at:gap]
        at = gap
        first, past = ends[gap - 1] if gap else start, starts[gap] if gap < len(starts) else end
        if first < past:
            before, after = owners[gap - 1] if gap else None, owners[gap] if gap < len(owners) else None
            named = Partition(first, past, tuple(explain(Gap(first, past, before, after)))).pieces
            bounds += map(_START, named)
            all_owners += map(_OWNER, named)
    return Partition(start, end, Pieces([*bounds, max(start, end)], all_owners), lost_bytes)


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
