"""The history of programs: the figures of their releases, and how each went.

A recording is one audit under the name of a release; where recordings are kept is decided elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.model.audit import Audit, program_name
from footprint.model.figures import BUDGETED, FIGURES
from footprint.release.budget import figure_of, parts_of
from footprint.release.budget_file import nearest_of

__all__ = ("RECORDED", "History", "Recording", "Release", "Trend", "TrendStep", "history_of", "recording_of")

# How many of them are looked at is a question of the day: it can be multiplied later.
RECORDED: Final = tuple(name for name in BUDGETED if name != "total_at_count_bytes")
_LONGEST_NAME: Final = 200


class Release(NamedTuple):
    """What was audited, and when.

    Attributes:
        program: The program.
        version: The name of the release: a version, or a commit.
        is_commit: Whether it is a commit.
        time: When it was made or audited, in seconds since 1970 (UTC); releases are in this order.
        source: What was read: `prediction`, `smaps`, ...
        tool_version: The footprint that audited or recorded it.
    """

    program: str
    version: str
    is_commit: bool
    time: int
    source: str
    tool_version: str


class Recording(NamedTuple):
    """The figures of one release.

    Attributes:
        release: The release.
        figures: Those of `RECORDED` that the audit tells: bytes, or numbers of things.
        parts: By figure, what each owner adds to it; 0 where one is missing.
    """

    release: Release
    figures: Mapping[str, int]
    parts: Mapping[str, Mapping[str, int]]


class TrendStep(NamedTuple):
    """The largest change of a figure from one release to the next that tells it.

    Attributes:
        before: The version before.
        after: The version that changed it.
        delta: How much.
        owner: Which owner's part changed most in the same direction; None where owners do not make up the figure.
        owner_delta: How much of it is that owner's.
    """

    before: str
    after: str
    delta: int
    owner: str | None
    owner_delta: int


class Trend(NamedTuple):
    """How one figure of a program went.

    Attributes:
        program: The program.
        figure: Which of `RECORDED`.
        owner: Whose part of it, where one was asked for; else None.
        values: One for each release, in order; None where it is not told.
        largest_step: The largest step; None where nothing changed.
    """

    program: str
    figure: str
    owner: str | None
    values: tuple[int | None, ...]
    largest_step: TrendStep | None

    @property
    def is_count(self) -> bool:
        """Tell whether the values are numbers of things, not bytes."""
        return FIGURES[self.figure].is_count

    @property
    def first(self) -> int:
        """Give the first value that is told."""
        return next(value for value in self.values if value is not None)

    @property
    def last(self) -> int:
        """Give the last value that is told."""
        return next(value for value in reversed(self.values) if value is not None)

    @property
    def change(self) -> int:
        """Give how much more the last value is than the first."""
        return self.last - self.first


class History(NamedTuple):
    """The releases of some programs, and how their figures went.

    Attributes:
        file: Where they are recorded.
        releases: By program, in the order of time.
        trends: By program, in the order of `RECORDED`.
        notes: What the reader of the trends must know.
    """

    file: str
    releases: Mapping[str, tuple[Release, ...]]
    trends: tuple[Trend, ...]
    notes: tuple[Note, ...]


def recording_of(
    audit: Audit, version: str, *, is_commit: bool, time: int, tool_version: str, program: str | None = None
) -> Recording:
    """Give what is kept of an audit.

    Args:
        audit: The audit.
        version: The name of the release.
        is_commit: Whether that is a commit.
        time: When, in seconds since 1970.
        tool_version: The footprint that made it.
        program: What the program is called; else what the audit says.

    Raises:
        UsageError: Where the audit does not say what program it is about, or a name is none.
    """
    name = program_name(audit) if program is None else program
    if not name:
        raise UsageError(f"{audit.target} does not say what program it is about: name it with --program")
    figures = {one: amount for one in RECORDED if (amount := figure_of(one, audit)) is not None}
    return Recording(
        Release(_checked(name, "program"), _checked(version, "version"), is_commit, time, audit.source, tool_version),
        figures,
        {one: parts_of(one, audit) for one in figures},
    )


def _checked(name: str, what: str) -> str:
    if not name.strip() or len(name) > _LONGEST_NAME:
        raise UsageError(f"{name[:40]!r} is no name of a {what}: it has 1 to {_LONGEST_NAME} characters")
    return name


def history_of(
    recordings: Iterable[Recording],
    file: str,
    *,
    figures: Sequence[str] = (),
    owner: str | None = None,
    last: int | None = None,
) -> History:
    """Say how the figures of some programs went.

    Args:
        recordings: In the order in which those of one time were recorded.
        file: Where they are kept.
        figures: Which of `RECORDED`; all where none is named.
        owner: Whose part of them: an owner's file name, or a name in brackets; else the whole.
        last: How many releases of each program, the newest ones; all where it is None.

    Raises:
        UsageError: For a figure or owner that no recording has.
    """
    for figure in figures:
        if figure not in RECORDED:
            raise UsageError(f"{figure!r} is no figure that is recorded{nearest_of(figure, RECORDED)}")
    programs: dict[str, list[Recording]] = {}
    for one in sorted(recordings, key=lambda one: one.release.time):
        programs.setdefault(one.release.program, []).append(one)
    chosen = {name: of_one[-last:] if last else of_one for name, of_one in sorted(programs.items())}
    if owner is not None:
        known = {name for of_one in chosen.values() for one in of_one for parts in one.parts.values() for name in parts}
        if owner not in known:
            raise UsageError(f"{file} has no owner {owner!r}{nearest_of(owner, sorted(known))}")
    trends = tuple(
        trend
        for of_one in chosen.values()
        for figure in RECORDED
        if not figures or figure in figures
        for trend in _trends(of_one, figure, owner)
    )
    if figures and not trends:
        whose = "" if owner is None else f" of {owner}"
        raise UsageError(f"{file} has no {', '.join(figures)}{whose}: no recording tells it")
    releases = {name: tuple(one.release for one in of_one) for name, of_one in chosen.items()}
    return History(file, releases, trends, tuple(_notes(releases)))


def _trends(recordings: Sequence[Recording], figure: str, owner: str | None) -> Iterator[Trend]:
    """Give the trend of one figure, or nothing where no release tells it, or it is no part of an owner's."""
    told = [one for one in recordings if figure in one.figures]
    if not told or (owner is not None and not any(owner in one.parts.get(figure, {}) for one in told)):
        return

    def value(one: Recording) -> int | None:
        if figure not in one.figures:
            return None
        return one.figures[figure] if owner is None else one.parts.get(figure, {}).get(owner, 0)

    steps = [
        _step(before, after, figure, owner, (value(after) or 0) - (value(before) or 0))
        for before, after in pairwise(told)
    ]
    # Of equal ones the last: that is the one that can still be mended.
    largest = max(reversed(steps), key=lambda step: abs(step.delta), default=None)
    values = tuple(value(one) for one in recordings)
    program = recordings[0].release.program
    yield Trend(program, figure, owner, values, largest if largest and largest.delta else None)


def _step(before: Recording, after: Recording, figure: str, owner: str | None, delta: int) -> TrendStep:
    versions = (before.release.version, after.release.version)
    if owner is not None or not delta:
        return TrendStep(*versions, delta, owner, delta)
    old, new = before.parts.get(figure, {}), after.parts.get(figure, {})
    sign = 1 if delta > 0 else -1
    deltas = {name: new.get(name, 0) - old.get(name, 0) for name in sorted({*old, *new})}
    # Of equal ones a file: what has a name in brackets most often follows from one.
    most = max(deltas, key=lambda name: (sign * deltas[name], not name.startswith("[")), default=None)
    if most is None or deltas[most] * sign <= 0:
        return TrendStep(*versions, delta, None, 0)
    return TrendStep(*versions, delta, most, deltas[most])


def _notes(releases: Mapping[str, Sequence[Release]]) -> Iterator[Note]:
    for program, of_one in releases.items():
        sources = dict.fromkeys("prediction" if one.source == "prediction" else "measurement" for one in of_one)
        if len(sources) > 1:
            detail = "some releases are predicted from their files and some measured: a step between the two is none"
            yield Note("history-mixed", program, detail)
