"""Laws of the partition, against an oracle that decides byte by byte."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from footprint.ranges import Claim, Gap, Partition, Piece, partition
from tests.examples import examples

NOBODY = -1
TOP = 24
PLACES = st.integers(0, TOP)
# The owner of a claim is its place in the list, so that every piece tells which claim it is of.
RANGES = st.lists(st.tuples(PLACES, PLACES, st.integers(0, 2)), max_size=8)
DIFFERENT_RANGES = st.lists(st.tuples(PLACES, PLACES, st.integers(0, 2)), max_size=8, unique=True)


def claims_of(ranges: list[tuple[int, int, int]]) -> list[Claim[int]]:
    return [Claim(start, end, place, rank) for place, (start, end, rank) in enumerate(ranges)]


def name_nobody(gap: Gap[int]) -> list[Piece[int]]:
    return [Piece(gap.start, gap.end, NOBODY)]


def cut(start: int, end: int, claims: list[Claim[int]]) -> Partition[int]:
    return partition(start, end, claims, name_nobody)


def owner_of_byte(at: int, claims: list[Claim[int]]) -> int:
    """Decide by the documented precedence: the lower rank, the earlier start, the longer, the earlier given."""
    there = [claim for claim in claims if claim.start <= at < claim.end]
    strongest = min(there, key=lambda claim: (claim.rank, claim.start, -claim.end, claim.owner), default=None)
    return NOBODY if strongest is None else strongest.owner


def owners(whole: Partition[int]) -> list[int]:
    return [piece.owner for piece in whole.pieces for _ in range(piece.start, piece.end)]


@given(RANGES)
def test_pieces_are_those_that_deciding_byte_by_byte_gives(ranges: list[tuple[int, int, int]]) -> None:
    claims = claims_of(ranges)
    runs = groupby(range(TOP), key=lambda at: owner_of_byte(at, claims))
    expected = [(owner, list(places)) for owner, places in runs]
    assert [(piece.owner, list(range(piece.start, piece.end))) for piece in cut(0, TOP, claims).pieces] == expected


@given(RANGES, PLACES, PLACES)
def test_pieces_cover_the_span_exactly(ranges: list[tuple[int, int, int]], first: int, other: int) -> None:
    start, end = min(first, other), max(first, other) + 1
    pieces = cut(start, end, claims_of(ranges)).pieces
    assert [at for piece in pieces for at in range(piece.start, piece.end)] == list(range(start, end))


@given(RANGES, PLACES, PLACES)
def test_every_piece_belongs_to_one_that_claimed_it_or_is_the_remainder(
    ranges: list[tuple[int, int, int]], first: int, other: int
) -> None:
    start, end = min(first, other), max(first, other) + 1
    claims = claims_of(ranges)
    for piece in cut(start, end, claims).pieces:
        if piece.owner == NOBODY:
            assert {owner_of_byte(at, claims) for at in range(piece.start, piece.end)} == {NOBODY}
        else:
            assert claims[piece.owner].start <= piece.start < piece.end <= claims[piece.owner].end


@given(RANGES)
def test_what_claims_lost_is_what_they_asked_for_less_what_they_got(ranges: list[tuple[int, int, int]]) -> None:
    claims = claims_of(ranges)
    whole = cut(0, TOP, claims)
    decided = [owner_of_byte(at, claims) for at in range(TOP)]
    lost = {claim.owner: max(0, claim.end - claim.start) - decided.count(claim.owner) for claim in claims}
    assert whole.lost_bytes == sum(lost.values())


@given(DIFFERENT_RANGES.map(claims_of).flatmap(lambda claims: st.tuples(st.just(claims), st.permutations(claims))))
def test_where_no_two_claims_tie_their_order_does_not_matter(orders: tuple[list[Claim[int]], list[Claim[int]]]) -> None:
    given_order, other_order = orders
    assert cut(0, TOP, other_order) == cut(0, TOP, given_order)


@given(st.lists(st.tuples(PLACES, PLACES), max_size=8), PLACES, PLACES)
def test_a_part_of_a_span_has_the_owners_that_the_whole_has_there_where_ranks_decide(
    ranges: list[tuple[int, int]], first: int, other: int
) -> None:
    start, end = min(first, other), max(first, other) + 1
    claims = [Claim(from_, to, place, rank=-place) for place, (from_, to) in enumerate(ranges)]
    assert owners(cut(start, end, claims)) == [owner_of_byte(at, claims) for at in range(start, end)]


@examples(500)
@given(RANGES, PLACES)
def test_cutting_a_span_in_two_gives_no_byte_to_another(ranges: list[tuple[int, int, int]], at: int) -> None:
    claims = claims_of(ranges)
    halves = owners(cut(0, at, claims)) + owners(cut(at, TOP, claims))
    assert halves == owners(cut(0, TOP, claims))


@given(RANGES)
def test_a_gap_names_the_owners_of_the_pieces_on_its_two_sides(ranges: list[tuple[int, int, int]]) -> None:
    gaps: list[Gap[int]] = []

    def explain(gap: Gap[int]) -> list[Piece[int]]:
        gaps.append(gap)
        return name_nobody(gap)

    pieces = partition(0, TOP, claims_of(ranges), explain).pieces
    ending = {piece.end: piece.owner for piece in pieces}
    beginning = {piece.start: piece.owner for piece in pieces}
    assert [(gap.start, gap.end) for gap in gaps] == [(p.start, p.end) for p in pieces if p.owner == NOBODY]
    assert [(gap.before, gap.after) for gap in gaps] == [
        (ending.get(gap.start), beginning.get(gap.end)) for gap in gaps
    ]
