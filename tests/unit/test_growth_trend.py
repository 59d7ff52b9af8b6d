"""How memory went over time: slopes by hand, and what is a leak and what is none."""

import random
from collections.abc import Callable

import pytest

from footprint.series.growth import GrowthKind, Point, Slope, condensed, growth_of, theil_sen

KIB = 1024
MIB = 1 << 20
BASE = 10 * MIB


def series(value: Callable[[int], float], seconds: int = 120) -> list[Point]:
    return [(float(at), value(at)) for at in range(seconds)]


def test_the_slope_is_the_median_of_the_slopes_of_all_pairs() -> None:
    # 1, 1, 10/3, 1, 9/2 and 8: the median is that of 1 and 10/3. Of six slopes, 95 % take all.
    assert theil_sen([(0, 0), (1, 1), (2, 2), (3, 10)]) == Slope((1 + 10 / 3) / 2, 1, 8)


def test_the_interval_is_by_the_ranks_of_the_slopes() -> None:
    # n = 10: 45 slopes; 1.96 * sqrt(10 * 9 * 25 / 18) = 21.9; ranks (45 - 21.9) / 2 = 11 and (45 + 21.9) / 2 = 34.
    points = [(float(at), float(at * at)) for at in range(10)]
    slopes = sorted(later + earlier for earlier in range(10) for later in range(earlier + 1, 10))
    assert theil_sen(points) == Slope(slopes[22], slopes[11], slopes[34])


def test_points_at_one_time_have_no_slope_between_them() -> None:
    assert theil_sen([(0, 0), (0, 5), (1, 10)]).per_second == (10 + 5) / 2


def test_values_at_one_time_do_not_rise() -> None:
    assert theil_sen([(1, 5), (1, 9)]) == Slope(0, 0, 0)


def test_many_points_become_the_medians_of_neighbours() -> None:
    assert condensed([(0, 1), (1, 9), (2, 2), (3, 4), (4, 8), (5, 6)], 2) == [(1, 2), (4, 6)]
    assert condensed([(0, 1), (1, 2)], 2) == [(0, 1), (1, 2)]


def test_too_few_values_say_nothing() -> None:
    assert growth_of(series(lambda at: BASE + at * MIB, 7)).kind is GrowthKind.UNKNOWN
    assert growth_of([]).slope is None
    assert growth_of([(1.0, 5.0)] * 20).kind is GrowthKind.UNKNOWN


@pytest.mark.parametrize(
    ("rate", "leak"),
    [
        (64 * KIB, lambda at: BASE + 64 * KIB * at),
        # The heap grows by 132 KiB at a time.
        (MIB / 60, lambda at: BASE + (at * MIB / 60) // (132 * KIB) * 132 * KIB),
        # The libraries are loaded in the first ten seconds.
        (64 * KIB, lambda at: BASE + min(at, 10) * 5 * MIB + 64 * KIB * at),
    ],
)
def test_a_leak_grows_within_three_percent(rate: float, leak: Callable[[int], float]) -> None:
    found = growth_of(series(leak))
    assert found.kind is GrowthKind.GROWS
    assert found.slope is not None
    assert abs(found.slope.per_second / rate - 1) < 0.03
    assert found.slope.least <= found.slope.per_second <= found.slope.most


def test_a_leak_below_a_saw_tooth_is_that_of_its_lowest_points() -> None:
    found = growth_of(series(lambda at: BASE + (at % 12) * MIB + 64 * KIB * at))
    assert found.kind is GrowthKind.GROWS
    assert found.slope is not None
    assert abs(found.slope.per_second / (64 * KIB) - 1) < 0.03


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shape", ["plateau", "saturation", "saw-tooth", "noise", "step", "constant"])
def test_what_does_not_go_on_growing_is_no_leak(shape: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 # any numbers
    shapes: dict[str, Callable[[int], float]] = {
        "plateau": lambda at: BASE + min(at, 30) * MIB + chance.choice((0, 0, 4 * KIB)),
        "saturation": lambda at: BASE + 50 * MIB * (1 - 2.718 ** (-at / 8)),
        "saw-tooth": lambda at: BASE + (at + chance.randrange(3)) % 15 * MIB,
        "noise": lambda _: BASE + chance.randrange(MIB),
        "step": lambda at: BASE + (at > 50) * 5 * MIB,
        "constant": lambda _: BASE,
    }
    assert growth_of(series(shapes[shape])).kind not in {GrowthKind.GROWS, GrowthKind.UNKNOWN}


def test_the_kinds_have_their_names() -> None:
    assert growth_of(series(lambda at: BASE + min(at, 30) * MIB)).kind is GrowthKind.WARMED_UP
    assert growth_of(series(lambda at: BASE + at % 15 * MIB)).kind is GrowthKind.SAW_TOOTH
    assert growth_of(series(lambda _: BASE)).kind is GrowthKind.STEADY
    assert growth_of(series(lambda at: BASE - at * 64 * KIB)).kind is GrowthKind.SHRINKS


@pytest.mark.parametrize("count", range(18, 120, 3))
def test_the_first_teeth_of_a_saw_are_no_leak(count: int) -> None:
    points = series(lambda at: BASE + at % 15 * MIB)[:count]
    assert growth_of(points).kind is not GrowthKind.GROWS


def test_a_short_peak_does_not_hide_a_leak() -> None:
    leak = growth_of(series(lambda at: BASE + at * 64 * KIB + 40 * MIB * (at == 50)))
    assert leak.kind is GrowthKind.GROWS


def test_a_peak_that_is_gone_at_the_end_is_no_growth() -> None:
    assert growth_of(series(lambda at: BASE + at * MIB if at < 119 else BASE)).kind is GrowthKind.STEADY
