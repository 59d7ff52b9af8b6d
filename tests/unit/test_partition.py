"""A span cut among claims: who wins, what is lost, and what is left to explain."""

import pytest

from footprint.ranges import Claim, Gap, Partition, Piece, Pieces, partition, partition_in_order

NOTHING = "[nothing]"
TOP = 1 << 64


def name_the_gap(gap: Gap[str]) -> list[Piece[str]]:
    return [Piece(gap.start, gap.end, NOTHING)]


def cut(start: int, end: int, *claims: Claim[str]) -> Partition[str]:
    return partition(start, end, claims, name_the_gap)


@pytest.mark.parametrize(
    ("claims", "pieces", "lost_bytes"),
    [
        pytest.param([], [(0, 10, NOTHING)], 0, id="without claims there is one gap"),
        pytest.param([Claim(0, 10, "a")], [(0, 10, "a")], 0, id="a claim on the whole span is its only piece"),
        pytest.param(
            [Claim(2, 4, "a"), Claim(6, 8, "b")],
            [(0, 2, NOTHING), (2, 4, "a"), (4, 6, NOTHING), (6, 8, "b"), (8, 10, NOTHING)],
            0,
            id="gaps are before, between and behind claims",
        ),
        pytest.param(
            [Claim(4, 10, "b"), Claim(0, 4, "a")], [(0, 4, "a"), (4, 10, "b")], 0, id="claims come in any order"
        ),
        pytest.param(
            [Claim(0, 4, "a"), Claim(4, 10, "a")],
            [(0, 4, "a"), (4, 10, "a")],
            0,
            id="two claims of one owner are two pieces",
        ),
        pytest.param(
            [Claim(3, 10, "late"), Claim(0, 6, "early")],
            [(0, 6, "early"), (6, 10, "late")],
            3,
            id="the earlier start wins",
        ),
        pytest.param(
            [Claim(0, 4, "short"), Claim(0, 10, "long")], [(0, 10, "long")], 4, id="of one start the longer wins"
        ),
        pytest.param(
            [Claim(0, 10, "first"), Claim(0, 10, "alias")], [(0, 10, "first")], 10, id="of one range the first wins"
        ),
        pytest.param(
            [Claim(0, 10, "outer"), Claim(4, 6, "inner")],
            [(0, 10, "outer")],
            2,
            id="inside another of its rank there is nothing left",
        ),
        pytest.param(
            [Claim(0, 8, "early", rank=1), Claim(5, 10, "strong", rank=0)],
            [(0, 5, "early"), (5, 10, "strong")],
            3,
            id="a lower rank wins against an earlier start",
        ),
        pytest.param(
            [Claim(0, 10, "section", rank=1), Claim(4, 6, "symbol")],
            [(0, 4, "section"), (4, 6, "symbol"), (6, 10, "section")],
            2,
            id="a weaker claim goes on behind a stronger one inside it",
        ),
        pytest.param(
            [Claim(0, 10, "a", rank=2), Claim(1, 8, "b", rank=1), Claim(3, 5, "c", rank=0)],
            [(0, 1, "a"), (1, 3, "b"), (3, 5, "c"), (5, 8, "b"), (8, 10, "a")],
            9,
            id="of claims three deep each comes back in turn",
        ),
        pytest.param(
            [Claim(0, 10, "whole"), Claim(3, 5, "inside"), Claim(9, 10, "end", rank=-1)],
            [(0, 9, "whole"), (9, 10, "end")],
            3,
            id="a claim is not torn where a loser starts",
        ),
    ],
)
def test_each_byte_has_the_claim_of_lowest_rank_earliest_start_and_greatest_length(
    claims: list[Claim[str]], pieces: list[tuple[int, int, str]], lost_bytes: int
) -> None:
    whole = cut(0, 10, *claims)
    assert list(whole.pieces) == pieces
    assert whole.lost_bytes == lost_bytes


def test_a_gap_tells_who_stands_on_both_sides_and_none_at_the_ends_of_the_span() -> None:
    gaps: list[Gap[str]] = []

    def explain(gap: Gap[str]) -> list[Piece[str]]:
        gaps.append(gap)
        return name_the_gap(gap)

    partition(0, 20, [Claim(2, 5, "a"), Claim(9, 12, "b")], explain)
    assert gaps == [Gap(0, 2, None, "a"), Gap(5, 9, "a", "b"), Gap(12, 20, "b", None)]


def test_a_gap_may_have_several_causes() -> None:
    def explain(gap: Gap[str]) -> list[Piece[str]]:
        return [Piece(gap.start, 6, "[padding]"), Piece(6, gap.end, "[no symbol]")]

    pieces = partition(0, 10, [Claim(0, 4, "a")], explain).pieces
    assert pieces == ((0, 4, "a"), (4, 6, "[padding]"), (6, 10, "[no symbol]"))


@pytest.mark.parametrize(
    "explanation",
    [
        pytest.param([], id="nothing"),
        pytest.param([Piece(4, 9, "x")], id="too short"),
        pytest.param([Piece(4, 11, "x")], id="too long"),
        pytest.param([Piece(5, 10, "x")], id="too late"),
        pytest.param([Piece(4, 7, "x"), Piece(6, 10, "y")], id="twice"),
        pytest.param([Piece(4, 10, "x"), Piece(6, 8, "y")], id="a piece more"),
    ],
)
def test_an_explanation_that_does_not_cover_its_gap_is_refused(explanation: list[Piece[str]]) -> None:
    with pytest.raises(ValueError, match="the piece"):
        partition(0, 20, [Claim(0, 4, "a"), Claim(10, 20, "b")], lambda _: explanation)


@pytest.mark.parametrize(
    ("span", "claims", "pieces"),
    [
        pytest.param(
            (10, 20),
            [Claim(5, 12, "a"), Claim(18, 25, "b")],
            (
                (10, 12, "a"),
                (12, 18, NOTHING),
                (18, 20, "b"),
            ),
            id="claims are clipped at both ends of the span",
        ),
        pytest.param(
            (0, 10),
            [Claim(0, 12, "short"), Claim(0, 15, "long")],
            ((0, 10, "long"),),
            id="a claim that ends behind the span is still the longer one",
        ),
        pytest.param(
            (TOP - 4096, TOP),
            [Claim(TOP - 8, TOP + 8, "a")],
            (
                (TOP - 4096, TOP - 8, NOTHING),
                (TOP - 8, TOP, "a"),
            ),
            id="addresses at the top of 64 bits are numbers like others",
        ),
    ],
)
def test_a_span_is_cut_among_its_claims(
    span: tuple[int, int], claims: list[Claim[str]], pieces: tuple[tuple[int, int, str], ...]
) -> None:
    assert cut(*span, *claims).pieces == pieces


def test_a_claim_around_the_span_gets_all_of_it_and_loses_nothing() -> None:
    whole = cut(10, 20, Claim(0, 100, "a"))
    assert whole.pieces == ((10, 20, "a"),)
    assert whole.lost_bytes == 0


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(Claim(0, 10, "x"), id="before the span"),
        pytest.param(Claim(20, 30, "x"), id="behind it"),
        pytest.param(Claim(15, 15, "x"), id="empty"),
        pytest.param(Claim(17, 13, "x"), id="reversed"),
    ],
)
def test_a_claim_without_a_byte_in_the_span_is_dropped(claim: Claim[str]) -> None:
    whole = cut(10, 20, claim)
    assert whole.pieces == ((10, 20, NOTHING),)
    assert whole.lost_bytes == 0


def test_a_claim_that_starts_before_the_span_keeps_its_precedence_inside_it() -> None:
    whole = cut(0, 20, Claim(0, 10, "early"), Claim(2, 20, "late"))
    assert whole.pieces == ((0, 10, "early"), (10, 20, "late"))
    behind_both_starts = cut(5, 20, Claim(0, 10, "early"), Claim(2, 20, "late"))
    assert behind_both_starts.pieces == ((5, 10, "early"), (10, 20, "late"))


def test_an_empty_span_has_no_pieces() -> None:
    assert cut(5, 5).pieces == ()


def test_an_empty_span_inside_a_claim_has_no_pieces() -> None:
    assert cut(5, 5, Claim(0, 10, "a")).pieces == ()


def test_what_claims_lose_is_counted_once_for_each_that_lost_it() -> None:
    # b asks for [3, 8) and gets [6, 8): 3 bytes lost. c asks for [4, 10) and gets [8, 10): 4 bytes lost.
    whole = cut(0, 10, Claim(0, 6, "a"), Claim(3, 8, "b"), Claim(4, 10, "c"))
    assert whole.pieces == ((0, 6, "a"), (6, 8, "b"), (8, 10, "c"))
    assert whole.lost_bytes == 7


def test_what_lies_beyond_the_span_is_not_lost_but_out_of_question() -> None:
    # Within [10, 20) the second asks for [12, 20) and gets [15, 20).
    whole = cut(10, 20, Claim(0, 15, "a"), Claim(12, 90, "b"))
    assert whole.lost_bytes == 3


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((), id="nothing at all"),
        pytest.param((Piece(0, 4, "a"), Piece(5, 10, "b")), id="a hole"),
        pytest.param((Piece(0, 5, "a"), Piece(4, 10, "b")), id="an overlap"),
        pytest.param((Piece(5, 10, "b"), Piece(0, 5, "a")), id="a wrong order"),
        pytest.param((Piece(0, 9, "a"),), id="an end too early"),
        pytest.param((Piece(0, 11, "a"),), id="an end too late"),
        pytest.param((Piece(1, 10, "a"),), id="a start too late"),
        pytest.param((Piece(-1, 10, "a"),), id="a start too early"),
        pytest.param((Piece(0, 0, "a"), Piece(0, 10, "b")), id="an empty piece"),
        pytest.param((Piece(0, 12, "a"), Piece(12, 10, "b")), id="a reversed piece"),
    ],
)
def test_a_partition_refuses_pieces_that_do_not_cover_its_span_exactly(pieces: tuple[Piece[str], ...]) -> None:
    with pytest.raises(ValueError, match="the piece"):
        Partition(0, 10, pieces)


def test_a_partition_takes_pieces_that_cover_its_span_exactly() -> None:
    pieces = (Piece(0, 4, "a"), Piece(4, 10, "b"))
    assert Partition(0, 10, pieces).pieces == pieces


def test_pieces_in_columns_are_a_sequence_of_pieces() -> None:
    pieces = Pieces([0, 4, 10, 12], ["a", "b", "c"])
    whole = (Piece(0, 4, "a"), Piece(4, 10, "b"), Piece(10, 12, "c"))
    assert tuple(pieces) == whole
    assert (pieces[1], pieces[-1], pieces[1:]) == (whole[1], whole[2], whole[1:])
    assert pieces == whole
    assert hash(pieces) == hash(whole)


@pytest.mark.parametrize("starts", [[0, 4, 8], [0, 3, 8], [2, 6, 9], [2, 1, 3], [0, 20, 1]])
def test_claims_in_columns_are_cut_as_claims_are(starts: list[int]) -> None:
    sizes, owners = [4, 4, 2], ["a", "b", "c"]
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]

    def nobody(gap: Gap[str]) -> list[Piece[str]]:
        return [Piece(gap.start, gap.end, "-")]

    assert partition_in_order(10, starts, sizes, owners, nobody) == partition(
        0, 10, map(Piece, starts, ends, owners), nobody
    )
