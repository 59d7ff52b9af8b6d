"""Growth over time: a robust slope with its interval, told apart from a warm-up and from a saw-tooth.

Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968 (median of the slopes of all
pairs, interval by the ranks of these slopes).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import nlargest
from itertools import groupby
from statistics import median
from typing import Final, NamedTuple

MOST_MAPPINGS: Final = 1000
"""So many are kept of an audit: those with the most private memory."""

_KEY: Final = re.compile(r"([0-9]{1,10}) ([0-9a-f]{1,16})-([0-9a-f]{1,16}) (.{0,4096})", re.DOTALL)


class KeptMapping(NamedTuple):
    """A mapping of a process, as an audit of a watch keeps it.

    Attributes:
        pid: The process.
        start_addr: The first address.
        end_addr: The address behind it.
        name: Its name; empty where it has none.
    """

    pid: int
    start_addr: int
    end_addr: int
    name: str

    @property
    def key(self) -> str:
        """Return it as a key of JSON: `4711 7f0000000000-7f0000001000 [heap]`."""
        return f"{self.pid} {self.start_addr:x}-{self.end_addr:x} {self.name}"


class MappingGrowth(NamedTuple):
    """How the private memory of a mapping grew.

    Attributes:
        pid: The process.
        start_addr: The first address, at the later audit.
        end_addr: The address behind it.
        name: Its name; empty where it has none.
        before_bytes: What it held before, or the mappings that were in its place.
        now_bytes: What it holds.
        delta_bytes: By how much it grew.
    """

    pid: int
    start_addr: int
    end_addr: int
    name: str
    before_bytes: int
    now_bytes: int
    delta_bytes: int


def kept_mapping(key: str) -> KeptMapping | None:
    """Read a key of JSON; None where it is none."""
    match = _KEY.fullmatch(key)
    return None if match is None else KeptMapping(int(match[1]), int(match[2], 16), int(match[3], 16), match[4])


def largest_mappings(private_bytes: Iterable[tuple[KeptMapping, int]]) -> dict[str, int]:
    """Return those with the most private memory, by their keys."""
    present = ((mapping, size_bytes) for mapping, size_bytes in private_bytes if size_bytes)
    return {m.key: size_bytes for m, size_bytes in nlargest(MOST_MAPPINGS, present, key=lambda item: item[1])}


def grown_mappings(before: Mapping[str, int], now: Mapping[str, int]) -> list[MappingGrowth]:
    """Find the mappings that grew, those that grew most first.

    The kernel joins neighbours and moves their ends: what was in the place of a mapping is what it was before.
    """
    # A mapping that was too small to be kept held at most that.
    least_bytes = min(before.values()) if len(before) >= MOST_MAPPINGS else 0
    earlier = _by_pid(before)
    grown = []
    for pid, later in _by_pid(now).items():
        waiting = list(reversed(earlier.get(pid, ())))
        for mapping, now_bytes in later:
            before_bytes, has_place = 0, False
            while waiting and waiting[-1][0].start_addr < mapping.end_addr:
                old, old_bytes = waiting.pop()
                if old.end_addr > mapping.start_addr:
                    before_bytes, has_place = before_bytes + old_bytes, True
            if not has_place:
                before_bytes = min(least_bytes, now_bytes)
            if now_bytes > before_bytes:
                grown.append(MappingGrowth(*mapping, before_bytes, now_bytes, now_bytes - before_bytes))
    return sorted(grown, key=lambda growth: (-growth.delta_bytes, growth.pid, growth.start_addr))


def _by_pid(mappings: Mapping[str, int]) -> dict[int, list[tuple[KeptMapping, int]]]:
    """Return the mappings of each process in the order of their addresses."""
    every = sorted((m, size_bytes) for key, size_bytes in mappings.items() if (m := kept_mapping(key)) is not None)
    return {pid: list(of) for pid, of in groupby(every, key=lambda item: item[0].pid)}


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
# The slopes of the parts are scaled to that of the whole where both differ by at most this.
_MOST_SCALING: Final = 0.25
BETWEEN: Final = "[between the audits]"
"""The part of a trend that the values of the parts do not show."""


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


TRENDS: Final = frozenset({GrowthKind.GROWS, GrowthKind.SHRINKS})
"""The kinds that have a rate."""


class Slope(NamedTuple):
    """The rise in a second, and the interval that holds it with a confidence of 95 %."""

    per_second: float
    least: float
    most: float

    def scaled(self, factor: float) -> "Slope":
        """Return it multiplied by a positive factor."""
        return Slope(self.per_second * factor, self.least * factor, self.most * factor)


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


def trends_of_parts(
    whole: GrowthTrend, until_seconds: float, parts: Mapping[str, Sequence[Point]]
) -> dict[str, GrowthTrend]:
    """Divide the trend of a whole among its parts.

    Args:
        whole: The trend of the whole, which has a slope.
        until_seconds: The time until which it holds.
        parts: The values of the parts, which are fewer than those of the whole, from the time on at which it begins.
    """
    if whole.slope is None:
        raise ValueError("the whole has no slope")
    slopes = {name: theil_sen(condensed(points)) for name, points in parts.items() if len(points) > 1}
    if not slopes:
        return {}
    sum_per_second = sum(slope.per_second for slope in slopes.values())
    factor = whole.slope.per_second / sum_per_second if sum_per_second else 0.0
    if abs(factor - 1) <= _MOST_SCALING:
        slopes = {name: slope.scaled(factor) for name, slope in slopes.items()}
    else:
        rest = whole.slope.per_second - sum_per_second
        slopes[BETWEEN] = Slope(rest, rest, rest)
    seconds = until_seconds - whole.since_seconds
    return {
        name: GrowthTrend(_kind_of_part(slope, seconds), slope, whole.since_seconds) for name, slope in slopes.items()
    }


def _kind_of_part(slope: Slope, seconds: float) -> GrowthKind:
    if abs(slope.per_second) * seconds < _LEAST_GROWTH_BYTES:
        return GrowthKind.STEADY
    return GrowthKind.GROWS if slope.per_second > 0 else GrowthKind.SHRINKS


def growth_beside(whole: GrowthTrend, points: Sequence[Point], late: Sequence[Point]) -> GrowthTrend:
    """Compute how a part went of a whole that has no trend.

    Args:
        whole: The trend of the whole.
        points: The values of the part.
        late: Those from the time on at which the trend of the whole begins: what was before is a warm-up of the part,
            too.
    """
    unknown = GrowthTrend(GrowthKind.UNKNOWN, None, whole.since_seconds)
    if whole.kind is GrowthKind.UNKNOWN or not late:
        return unknown
    # Audits are many while something happens, and few else: each time counts as much as any other.
    trend = growth_of(late) if len(late) < _LEAST_POINTS else growth_of(_evenly(late))
    if trend.kind is GrowthKind.UNKNOWN:
        if abs(late[-1][1] - late[0][1]) >= _LEAST_GROWTH_BYTES:
            return unknown
        slope = theil_sen(late) if len(late) > 1 else Slope(0.0, 0.0, 0.0)
        trend = GrowthTrend(GrowthKind.STEADY, slope, late[0][0])
    has_grown = late[0][1] - points[0][1] >= _LEAST_GROWTH_BYTES
    return trend._replace(kind=GrowthKind.WARMED_UP) if trend.kind is GrowthKind.STEADY and has_grown else trend


def _evenly(points: Sequence[Point]) -> list[Point]:
    """Return values at times that are evenly spread, on the lines between the points."""
    start, end = points[0][0], points[-1][0]
    spread = []
    place = 0
    for step in range(_MOST_POINTS):
        at = start + (end - start) * step / (_MOST_POINTS - 1)
        while place < len(points) - 2 and points[place + 1][0] <= at:
            place += 1
        (before, low), (after, high) = points[place : place + 2]
        spread.append((at, high if after <= before else low + (high - low) * (at - before) / (after - before)))
    return spread


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
    troughs: list[Point] = []
    if tooth < _LEAST_GROWTH_BYTES:
        return troughs
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
            troughs.append(lowest)
            top, lowest = value, None
    return troughs if lowest is None else [*troughs, lowest]
