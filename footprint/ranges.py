"""Half-open ranges with one owner each: the structure that conserves every total.

`partition` cuts one span among claims. Where claims overlap, one wins by a fixed precedence, and what the others lose
is counted. Where nothing claims, the caller names the remainder. The pieces of a `Partition` always add up to its span:
its constructor refuses anything else, so no total is ever computed by subtraction.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, compress, islice
from operator import add, itemgetter, le, lt, ne
from typing import Generic, TypeVar, overload

from footprint.members import NamedTuple, each_record

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
            starts = map(self.bounds.__getitem__, range(len(self))[index])
            ends = map(self.bounds.__getitem__, range(1, len(self) + 1)[index])
            return tuple(each_record(Piece, zip(starts, ends, self.owners[index], strict=True)))
        at = range(len(self))[index]
        return Piece(self.bounds[at], self.bounds[at + 1], self.owners[at])

    def between(self, start: int, end: int) -> "Pieces[T]":
        """Return the pieces that reach into `[start, end)`."""
        first, past = max(bisect_right(self.bounds, start) - 1, 0), bisect_left(self.bounds, end)
        return Pieces(self.bounds[first : past + 1], self.owners[first:past])

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same pieces, whatever holds them."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the pieces."""
        return hash(tuple(self))


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

    __slots__ = ("end", "lost_bytes", "pieces", "start")

    def __init__(self, start: int, end: int, pieces: Sequence[Piece[T]], lost_bytes: int = 0) -> None:
        """Take the pieces of a span."""
        if not isinstance(pieces, Pieces):
            starts, _, owners = _columns(pieces)
            _check(start, end, pieces)
            pieces = Pieces([*starts, max(start, end)], owners)
        elif not (pieces.bounds[0] == start and pieces.bounds[-1] == end and _is_ascending(pieces.bounds)):
            _check(start, end, pieces)
        self.start = start
        self.end = end
        self.pieces = pieces
        self.lost_bytes = lost_bytes

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same pieces and lost the same bytes."""
        return isinstance(other, Partition) and (self.pieces, self.lost_bytes) == (other.pieces, other.lost_bytes)

    def __hash__(self) -> int:
        """Return the hash of the pieces."""
        return hash(self.pieces)


def _check(start: int, end: int, pieces: Iterable[Piece[T]]) -> None:
    """Refuse pieces that do not cover a span exactly."""
    at = start
    for first, past, _ in pieces:
        if first != at or past <= at:
            raise ValueError(f"the piece [{first:#x}, {past:#x}) does not continue at {at:#x}")
        at = past
    if at != max(start, end):
        raise ValueError(f"the pieces end at {at:#x}, the span at {end:#x}")


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
        _Clipped(max(claim.start, start), claim.rank, claim.start, -claim.end, order, min(claim.end, end), claim.owner)
        for order, claim in enumerate(item if isinstance(item, Claim) else Claim(*item) for item in given)
        if claim.start < end and claim.end > start and claim.start < claim.end
    )
    owned = _sweep(ordered)
    wanted_bytes = sum([claim.end - claim.begin for claim in ordered])
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
            named = explain(Gap(first, past, before, after))
            at_piece = first
            for begin, until, owner in named:
                if not at_piece == begin < until:
                    at_piece = -1  # also behind a piece that ends where the gap does
                    break
                bounds.append(begin)
                all_owners.append(owner)
                at_piece = until
            if at_piece != past:
                _check(first, past, named)
    return Partition(start, end, Pieces([*bounds, max(start, end)], all_owners), lost_bytes)


class _Clipped(NamedTuple, Generic[T]):
    """A claim clipped to the span. Its first field sorts claims by where they begin, the others decide who wins."""

    begin: int
    rank: int
    start: int
    negative_end: int
    order: int
    end: int
    owner: T


def _sweep(clipped: list[_Clipped[T]]) -> list[Piece[T]]:
    """Return the ranges that are owned, ascending."""
    pieces: list[Piece[T]] = []
    # The strongest claim at the current address comes first; `order` is unique, so owners are never compared.
    active: list[tuple[int, int, int, int, _Clipped[T]]] = []
    at, index, last = 0, 0, -1
    while index < len(clipped) or active:
        if not active:
            at = clipped[index].begin
        while index < len(clipped) and clipped[index].begin <= at:
            claim = clipped[index]
            heappush(active, (claim.rank, claim.start, claim.negative_end, claim.order, claim))
            index += 1
        claim = active[0][4]
        if claim.end <= at:
            heappop(active)
            continue
        # A later claim may win from where it begins.
        until = claim.end if index == len(clipped) else min(claim.end, clipped[index].begin)
        if claim.order == last and pieces[-1].end == at:
            pieces[-1] = Piece(pieces[-1].start, until, claim.owner)
        else:
            pieces.append(Piece(at, until, claim.owner))
        at, last = until, claim.order
    return pieces
