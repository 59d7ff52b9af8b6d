"""Growth over time: a robust slope with its interval, told apart from a warm-up and from a saw-tooth.

Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968 (median of the slopes of all
pairs, interval by the ranks of these slopes).
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

__all__ = ("GrowthKind", "GrowthTrend", "Point", "Slope", "condensed", "growth_of", "theil_sen")

Point = tuple[float, float]
"""A time in seconds, and the bytes then."""

_SIGMAS: Final = 1.96  # an interval of 95 %
# As many as this keep the work small, and make the values of neighbours more independent.
_MOST_POINTS: Final = 64
_LEAST_POINTS: Final = 8
_LEAST_TROUGHS: Final = 4
# A fall by this part of the range between the lowest and the highest value is a tooth of a saw.
_TOOTH: Final = 0.25
# Growth is taken for real from this size on, and from this multiple of the usual distance of the values from the trend.
_LEAST_GROWTH_BYTES: Final = 32 << 10
_OVER_SCATTER: Final = 3.0
# So much of it must still be there at the end.
_KEPT_SHARE: Final = 0.5


class GrowthKind(StrEnum):
    """How memory went over time."""

    GROWS = "grows"
    """It grows to the end."""
    STEADY = "steady"
    WARMED_UP = "warmed-up"
    """It grew at first, and no longer: a plateau."""
    SAW_TOOTH = "saw-tooth"
    """It rises and falls, and what is left after each fall does not grow, as with a garbage collector."""
    SHRINKS = "shrinks"
    UNKNOWN = "unknown"
    """There are too few values, or too few teeth of what may be a saw."""


class Slope(NamedTuple):
    """The rise in a second, and the interval that holds it with a confidence of 95 %."""

    per_second: float
    least: float
    most: float


class GrowthTrend(NamedTuple):
    """How memory went.

    Attributes:
        kind: The kind.
        slope: Its trend, in bytes a second; None where there are too few values.
        since_seconds: The time from which on the trend holds: what was before is its warm-up.
    """

    kind: GrowthKind
    slope: Slope | None
    since_seconds: float


def theil_sen(points: Sequence[Point]) -> Slope:
    """Compute the median of the slopes between all pairs of points, with its interval.

    Args:
        points: At least two points in the order of time; where all have one time, nothing rises. The work is quadratic
            in their number: `condensed` makes few.
    """
    slopes = sorted(
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for place, earlier in enumerate(points)
        for later in points[place + 1 :]
        if later[0] > earlier[0]
    ) or [0.0]
    count = len(points)
    spread = _SIGMAS * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    least = max(0, math.floor((len(slopes) - spread) / 2))
    most = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    return Slope(median(slopes), slopes[least], slopes[most])


def condensed(points: Sequence[Point], count: int = _MOST_POINTS) -> list[Point]:
    """Return at most `count` points: the medians of neighbours, by their number."""
    if len(points) <= count:
        return list(points)
    edges = [place * len(points) // count for place in range(count + 1)]
    groups = [points[edges[place] : edges[place + 1]] for place in range(count)]
    return [(median(at for at, _ in group), median(value for _, value in group)) for group in groups]


def growth_of(points: Sequence[Point]) -> GrowthTrend:
    """Compute how memory went over time.

    Args:
        points: Values in the order of time.
    """
    if len(points) < _LEAST_POINTS or points[-1][0] <= points[0][0]:
        return GrowthTrend(GrowthKind.UNKNOWN, None, points[0][0] if points else 0.0)
    troughs = _troughs(points)
    if len(troughs) >= _LEAST_TROUGHS:
        slope = theil_sen(condensed(troughs))
        kind = _kind(troughs, slope)
        return GrowthTrend(GrowthKind.SAW_TOOTH if kind is GrowthKind.STEADY else kind, slope, troughs[0][0])
    tail = _after_warm_up(points)
    slope = theil_sen(condensed(tail))
    kind = _kind(condensed(tail), slope)
    if kind is GrowthKind.STEADY and _has_grown(points, tail):
        kind = GrowthKind.WARMED_UP
    if kind is GrowthKind.GROWS and _falls_back(tail[0], slope, troughs):
        return GrowthTrend(GrowthKind.UNKNOWN, None, tail[0][0])
    return GrowthTrend(kind, slope, tail[0][0])


def _after_warm_up(points: Sequence[Point]) -> Sequence[Point]:
    """Leave out the first half as long as it rises clearly faster than the second."""
    tail = points
    while len(tail) >= 2 * _LEAST_POINTS:
        half = len(tail) // 2
        first, second = theil_sen(condensed(tail[:half])), theil_sen(condensed(tail[half:]))
        if first.least <= second.most or first.per_second <= 2 * max(0.0, second.per_second):
            break
        tail = tail[half:]
    return tail


def _falls_back(first: Point, slope: Slope, troughs: Sequence[Point]) -> bool:
    """Return whether the last fall took back most of the growth before it: the teeth of a saw may be too few to see."""
    at, value = troughs[-1] if troughs else first
    return value - first[1] < _KEPT_SHARE * slope.per_second * (at - first[0])


def _has_grown(points: Sequence[Point], tail: Sequence[Point]) -> bool:
    return len(tail) < len(points) and tail[0][1] - points[0][1] >= _LEAST_GROWTH_BYTES


def _kind(points: Sequence[Point], slope: Slope) -> GrowthKind:
    """Return whether a trend is more than chance and scatter."""
    if slope.least <= 0 <= slope.most:
        return GrowthKind.STEADY
    grown = abs(slope.per_second) * (points[-1][0] - points[0][0])
    bases = [value - slope.per_second * at for at, value in points]
    middle = median(bases)
    scatter = median(abs(base - middle) for base in bases)
    kept = abs(points[-1][1] - points[0][1])
    if grown < max(_LEAST_GROWTH_BYTES, _OVER_SCATTER * scatter) or kept < _KEPT_SHARE * grown:
        return GrowthKind.STEADY
    return GrowthKind.GROWS if slope.per_second > 0 else GrowthKind.SHRINKS


def _troughs(points: Sequence[Point]) -> list[Point]:
    """Find the lowest point after each fall by a tooth: what is left each time."""
    values = [value for _, value in points]
    tooth = _TOOTH * (max(values) - min(values))
    found: list[Point] = []
    if tooth < _LEAST_GROWTH_BYTES:
        return found
    top, lowest = values[0], None
    for point in points:
        value = point[1]
        if lowest is None:
            top = max(top, value)
            if top - value >= tooth:
                lowest = point
        elif value <= lowest[1]:
            lowest = point
        elif value - lowest[1] >= tooth:
            found.append(lowest)
            top, lowest = value, None
    return found if lowest is None else [*found, lowest]
