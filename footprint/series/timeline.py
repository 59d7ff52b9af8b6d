"""What the records of a watch come to: the peak, the growth, and each process. It holds a bounded part of them."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple

from footprint.errors import InputError, Note
from footprint.model.over_time import ProcessCounters
from footprint.series.growth import TRENDS, GrowthTrend, Point, growth_beside, growth_of, trends_of_parts
from footprint.series.records import (
    AuditKept,
    Began,
    Came,
    Closed,
    Ended,
    GroupPeak,
    NoteRecord,
    Omitted,
    OwnersSeen,
    Record,
    Sampled,
    Sums,
)

_MOST_POINTS: Final = 4096
_MOST_POINTS_OF_ALL_MEMBERS: Final = 1 << 18
_LEAST_POINTS: Final = 64
_MOST_ENDED: Final = 2000
_KEPT_ENDED: Final = 1000
_PERCENTILE: Final = 0.95
_MOST_VALUE: Final = 1 << 62
# Mapped files may have new names all the time: what comes beyond so many owners is one.
_MOST_OWNERS: Final = 1000
_OTHER_OWNERS: Final = "[others]"


class Course:
    """Values over time. Where there are too many, every second one is left out.

    Args:
        most: How many are kept at most.
    """

    def __init__(self, most: int = _MOST_POINTS) -> None:
        self._most = most
        self._step = 1
        self._skipped = 0
        self._times = array("q")
        self._values = array("q")

    def add(self, ms: int, value: int) -> None:
        """Add a value."""
        self._skipped += 1
        if self._skipped < self._step:
            return
        self._skipped = 0
        # The times of a damaged series may go back.
        self._times.append(max(ms, self._times[-1] if self._times else 0))
        self._values.append(min(value, _MOST_VALUE))
        if len(self._times) > self._most:
            self._halve()

    def limit_to(self, most: int) -> None:
        """Keep fewer of them."""
        self._most = min(self._most, most)
        while len(self._times) > self._most:
            self._halve()

    def _halve(self) -> None:
        self._times, self._values = self._times[1::2], self._values[1::2]
        self._step *= 2

    @property
    def times(self) -> list[int]:
        """Return the times in milliseconds."""
        return list(self._times)

    def value_at(self, ms: int) -> int:
        """Return the last value until a time; 0 before the first one."""
        place = bisect_right(self._times, ms)
        return self._values[place - 1] if place else 0

    @property
    def points(self) -> list[Point]:
        """Return the times in seconds, and the values."""
        return [(ms / 1000, value) for ms, value in zip(self._times, self._values, strict=True)]

    @property
    def values(self) -> list[int]:
        """Return the values."""
        return list(self._values)


class WatchedProcess:
    """A process of the target.

    Args:
        came: Its record.
        most_points: How many of its values are kept.
    """

    def __init__(self, came: Came, most_points: int) -> None:
        self.came = came
        self.course = Course(most_points)
        self.figures: ProcessCounters | None = None
        self.first_peak_bytes: int | None = None
        self.most_resident_bytes = 0
        self.cost_bytes = 0
        self.peak_cost_bytes = 0
        self.ended: Ended | None = None

    @property
    def peak_resident_bytes(self) -> int | None:
        """Return the most resident memory that it had, as far as it is known."""
        if self.ended is not None and self.ended.peak_resident_bytes is not None:
            return self.ended.peak_resident_bytes
        return None if self.figures is None else self.figures.peak_resident_bytes

    def lived_ms(self, now_ms: int) -> int:
        """Return how long it has lived, as far as it was seen."""
        if self.ended is None:
            return now_ms - self.came.ms
        return self.ended.ms - self.came.ms if self.ended.lived_ms is None else self.ended.lived_ms


class OwnerGrowth(NamedTuple):
    """How the private memory of an owner went.

    Attributes:
        owner: The owner; "" for the cost of all processes.
        first_bytes: What it held in the first audit; of all processes, at the first tick.
        last_bytes: What it held in the last one.
        growth: Its trend.
    """

    owner: str
    first_bytes: int
    last_bytes: int
    growth: GrowthTrend

    def share_of(self, whole: GrowthTrend) -> float | None:
        """Return which part of the growth of the whole is its own; None where one of them has no slope."""
        if whole.slope is None or self.growth.slope is None or not whole.slope.per_second:
            return None
        return self.growth.slope.per_second / whole.slope.per_second


def growth_shares(growth: GrowthTrend, owners: Sequence[OwnerGrowth]) -> list[tuple[str, float]]:
    """Return which part of the growth is that of each owner: by the slopes, else by the first and last audit."""
    shares = [(owner.owner, share) for owner in owners if (share := owner.share_of(growth)) is not None]
    if shares:
        return shares
    whole = sum(owner.last_bytes - owner.first_bytes for owner in owners)
    is_alike = growth.slope is not None and whole * growth.slope.per_second > 0
    return [(owner.owner, (owner.last_bytes - owner.first_bytes) / whole) for owner in owners] if is_alike else []


class Timeline:
    """What is known after some records: `add` takes each in its order."""

    def __init__(self, began: Began) -> None:
        self.began = began
        self.ms = 0
        self.tick_count = 0
        self.own_cpu_ms = 0
        self.sums = Sums(began.stack_bytes)
        self.course = Course()
        self.last_cost_bytes = 0
        self.peak_ms = 0
        self.peak_bytes = 0
        self.peak_cost_of: dict[int, int] = {}
        self.group_peak: GroupPeak | None = None
        self.alive: dict[int, WatchedProcess] = {}
        self.ended: dict[int, WatchedProcess] = {}
        self.process_count = 0
        self.omitted_count = 0
        self.most_process_count = 0
        self.owners: dict[str, Course] = {}
        self.owners_ms: list[int] = []
        self.taken: list[AuditKept] = []
        self.notes: list[Note] = []
        self.closed: Closed | None = None

    @classmethod
    def of(cls, records: Iterable[Record], name: str) -> "Timeline":
        """Add up all records of a series.

        Raises:
            InputError: If they do not begin with one about the whole.
        """
        timeline: Timeline | None = None
        for record in records:
            if isinstance(record, Began):
                timeline = cls(record)
            elif timeline is not None:
                timeline.add(record)
        if timeline is None:
            raise InputError(name, "it is no series: its first record is missing")
        if timeline.closed is None:
            detail = f"it has no end: its watch was killed, or still goes on; it reaches to {timeline.ms / 1000:g} s"
            timeline.notes.append(Note("series-cut", name, detail))
        return timeline

    def add(self, record: Record) -> None:
        """Add a record."""
        if isinstance(record, Began):
            raise TypeError("a series begins once")
        self.ms = max(self.ms, record.ms)
        self.sums.add(record)
        match record:
            case Sampled():
                self._add_tick(record)
            case Came():
                self._add_member(record)
            case Ended():
                self._end(record)
            case OwnersSeen():
                self._add_owners(record)
            case AuditKept():
                self.taken.append(record)
            case _:
                self._add_other(record)

    def _add_other(self, record: Record) -> None:
        match record:
            case GroupPeak():
                self.group_peak = record
            case NoteRecord(_, note):
                self.notes.append(note)
            case Omitted():
                self.process_count += record.count
                self.omitted_count += record.count
            case Closed():
                self.closed = record

    def _add_member(self, came: Came) -> None:
        member = self.alive.get(came.number)
        if member is not None:
            # It has executed another program.
            member.came = came._replace(ms=member.came.ms, is_older=member.came.is_older)
            return
        self.process_count += 1
        most = max(_LEAST_POINTS, _MOST_POINTS_OF_ALL_MEMBERS // (len(self.alive) + 1))
        self.alive[came.number] = WatchedProcess(came, min(_MOST_POINTS, most))
        self.most_process_count = max(self.most_process_count, len(self.alive))

    def _add_tick(self, tick: Sampled) -> None:
        self.tick_count += 1
        self.own_cpu_ms = tick.own_cpu_ms
        for number, figure in tick.figures.items():
            member = self.alive.get(number)
            if member is None:
                continue
            if member.figures is None:
                member.first_peak_bytes = figure.peak_resident_bytes
            member.figures = figure
            member.most_resident_bytes = max(member.most_resident_bytes, figure.resident_bytes)
            member.cost_bytes = self.sums.of[number]
            member.peak_cost_bytes = max(member.peak_cost_bytes, member.cost_bytes)
        for member in self.alive.values():
            if member.figures is not None:
                member.course.add(tick.ms, member.cost_bytes)
        if not self.alive:
            # Nothing is left to look at, or nothing has come yet.
            return
        cost_bytes = self.last_cost_bytes = self.sums.cost_bytes
        self.course.add(tick.ms, cost_bytes)
        if cost_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_ms = cost_bytes, tick.ms
            self.peak_cost_of = dict(self.sums.of)

    def _end(self, ended: Ended) -> None:
        member = self.alive.pop(ended.number, None)
        if member is None:
            return
        member.ended = ended
        self.ended[ended.number] = member
        member.course.limit_to(_LEAST_POINTS)
        if len(self.ended) > _MOST_ENDED:
            kept = nlargest(_KEPT_ENDED, self.ended.values(), key=lambda process: process.peak_resident_bytes or 0)
            self.omitted_count += len(self.ended) - len(kept)
            self.ended = {process.came.number: process for process in kept}

    def _add_owners(self, seen: OwnersSeen) -> None:
        bytes_by_owner: Counter[str] = Counter()
        left = _MOST_OWNERS - len(self.owners)
        for owner, size_bytes in sorted(seen.owners.items(), key=lambda item: -item[1]):
            is_new = owner not in self.owners
            bytes_by_owner[owner if not is_new or left > 0 else _OTHER_OWNERS] += size_bytes
            left -= is_new
        for owner in self.owners.keys() - bytes_by_owner.keys():
            self.owners[owner].add(seen.ms, 0)
        for owner, size_bytes in bytes_by_owner.items():
            course = self.owners.get(owner)
            if course is None:
                course = self.owners[owner] = Course(512)
                for ms in self.owners_ms:
                    course.add(ms, 0)
            course.add(seen.ms, size_bytes)
        self.owners_ms = [*self.owners_ms[-511:], seen.ms]

    @property
    def usual_most_bytes(self) -> int:
        """Return the cost that was not exceeded in 95 % of the time."""
        points = self.course.points
        lasting = sorted((value, later[0] - at) for (at, value), later in pairwise(points))
        left = _PERCENTILE * sum(seconds for _, seconds in lasting)
        for value, seconds in lasting:
            left -= seconds
            if left <= 0:
                return round(value)
        return self.peak_bytes

    def growth(self) -> GrowthTrend:
        """Compute how the cost of all processes went."""
        return growth_of(self._before_exit(self.course))

    def _before_exit(self, course: Course) -> list[Point]:
        """Return the values of a course; where all have ended, without those of an exit: it may free everything."""
        points = course.points
        if self.closed is None or self.alive or not self.course.points:
            return points
        exit_seconds = self.course.points[-1][0]
        return [point for point in points if point[0] < exit_seconds]

    def owner_growth(self) -> list[OwnerGrowth]:
        """Compute how the cost of each owner went, those that grew most first.

        Where the whole has a trend, the slopes of all owners add up to it: the audits are few, the ticks many, so what
        the audits say is scaled to the ticks. Where both differ too much, a row of its own has the difference.
        """
        whole = self.growth()
        courses = {owner: course for owner, course in self.owners.items() if len(set(course.values)) > 1}
        points = {
            owner: [point for point in self._before_exit(course) if point[0] >= whole.since_seconds]
            for owner, course in courses.items()
        }
        if whole.slope is not None and whole.kind in TRENDS:
            trends = trends_of_parts(whole, self.ms / 1000, points)
        else:
            trends = {
                owner: growth_beside(whole, self._before_exit(courses[owner]), points[owner]) for owner in courses
            }
        growths = []
        for owner, trend in trends.items():
            values = courses[owner].values if owner in courses else [0]
            growths.append(OwnerGrowth(owner, values[0], values[-1], trend))
        if whole.kind in TRENDS:
            return sorted(growths, key=lambda g: (-(g.growth.slope.per_second if g.growth.slope else 0), g.owner))
        return sorted(growths, key=lambda g: (g.first_bytes - g.last_bytes, g.owner))
