"""The history of programs: the figures of their releases, and their trends.

A recording is one audit under the name of a release. `history_file` stores recordings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from footprint.errors import Note, UsageError
from footprint.members import NOT_EMPTY, Pattern, Signed, json_members
from footprint.model.audit import program_name
from footprint.model.figures import BUDGETED, FIGURES, FigureUnit
from footprint.release.budget import figure_of, parts_of
from footprint.release.budget_file import nearest_of

if TYPE_CHECKING:
    from footprint.model.audit import Audit


# The cost of N processes can be computed later, for any N.
RECORDED: Final = tuple(name for name in BUDGETED if name != "total_at_count_bytes")
_LONGEST_NAME: Final = 200
_TimeText = Annotated[str, Pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


@json_members("program version is_commit time=time_text source tool_version")
class Release(NamedTuple):
    """One release that was recorded.

    Attributes:
        program: The program.
        version: The name of the release: a version, or a commit.
        is_commit: Whether it is a commit.
        time: The time when it was made or audited, in seconds since 1970 (UTC); releases are in this order.
        source: What was read: `prediction`, `smaps`, ...
        tool_version: The version of footprint that audited or recorded it.
    """

    program: Annotated[str, NOT_EMPTY]
    version: Annotated[str, NOT_EMPTY]
    is_commit: bool
    time: int
    source: str
    tool_version: str

    @property
    def time_text(self) -> _TimeText:
        """Return the time when it was made or audited (UTC); releases are in this order."""
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Recording(NamedTuple):
    """The figures of one release.

    Attributes:
        release: The release.
        figures: The figures of `RECORDED` that the audit knows, in bytes or numbers of things.
        parts: The part of each owner in a figure, by figure; 0 for a missing owner.
    """

    release: Release
    figures: Mapping[str, int]
    parts: Mapping[str, Mapping[str, int]]


class TrendStep(NamedTuple):
    """The largest change of a figure between two releases that both know it.

    Attributes:
        before: The version before.
        after: The version with the change.
        delta: The change.
        owner: The owner whose part changed most in the same direction; None if owners do not make up the figure.
        owner_delta: The change of that owner's part.
    """

    before: str
    after: str
    delta: Signed
    owner: str | None
    owner_delta: Signed


@json_members("program figure owner unit values first last change largest_step")
class Trend(NamedTuple):
    """The values of one figure of a program.

    Attributes:
        program: The program.
        figure: The figure.
        owner: The owner that was asked for; None for the whole.
        values: One value for each release of the program, in the order of `releases`; None where it is not known.
        largest_step: The largest change from one release to the next; None where nothing changed.
    """

    program: Annotated[str, NOT_EMPTY]
    figure: Annotated[str, Pattern("^[a-z_]+_(bytes|count)$")]
    owner: str | None
    values: Annotated[tuple[int | None, ...], NOT_EMPTY]
    largest_step: TrendStep | None

    @property
    def unit(self) -> FigureUnit:
        """Return what the values count."""
        return FIGURES[self.figure].unit

    @property
    def first(self) -> int:
        """Return the first value that is known."""
        return next(value for value in self.values if value is not None)

    @property
    def last(self) -> int:
        """Return the last value that is known."""
        return next(value for value in reversed(self.values) if value is not None)

    @property
    def change(self) -> Signed:
        """Return the last value less the first."""
        return self.last - self.first


class History(NamedTuple):
    """The releases of some programs, and the trends of their figures.

    Attributes:
        file: The path of the history.
        releases: The releases of each program, by time.
        trends: The trends, by program and in the order of `RECORDED`.
        notes: Notes for the reader of the trends.
    """

    file: str
    releases: Mapping[str, tuple[Release, ...]]
    trends: tuple[Trend, ...]
    notes: tuple[Note, ...]


def recording_of(
    audit: "Audit", version: str, *, is_commit: bool, time: int, tool_version: str, program: str | None = None
) -> Recording:
    """Make the recording of an audit; without a `program`, under the name of the program in the audit.

    Raises:
        UsageError: If the audit names no program, or a name is too long or empty.
    """
    name = program_name(audit) if program is None else program
    if not name:
        raise UsageError(f"{audit.target} does not say what program it is about: name it with --program")
    figures = {figure: amount for figure in RECORDED if (amount := figure_of(figure, audit)) is not None}
    return Recording(
        Release(_checked(name, "program"), _checked(version, "version"), is_commit, time, audit.source, tool_version),
        figures,
        {figure: parts_of(figure, audit) for figure in figures},
    )


def _checked(name: str, what: str) -> str:
    if not name.strip() or len(name) > _LONGEST_NAME:
        raise UsageError(f"{name[:40]!r} is not a name of a {what}: it has 1 to {_LONGEST_NAME} characters")
    return name


def history_of(
    recordings: Iterable[Recording],
    file: str,
    *,
    figures: Sequence[str] = (),
    owner: str | None = None,
    last: int | None = None,
) -> History:
    """Compute the trends of some programs.

    Args:
        recordings: The recordings; those of one time in the order in which they were made.
        file: The path of the history.
        figures: Names of `RECORDED`; empty for all.
        owner: The file name of an owner, or its name in brackets, for its part of the figures; None for the whole.
        last: The number of newest releases of each program; None for all.

    Raises:
        UsageError: For a figure or an owner that no recording has.
    """
    for figure in figures:
        if figure not in RECORDED:
            raise UsageError(f"{figure!r} is not a recorded figure{nearest_of(figure, RECORDED)}")
    programs: dict[str, list[Recording]] = {}
    for recording in sorted(recordings, key=lambda recording: recording.release.time):
        programs.setdefault(recording.release.program, []).append(recording)
    chosen = {name: of_one[-last:] if last else of_one for name, of_one in sorted(programs.items())}
    if owner is not None:
        owners = {name for of_one in chosen.values() for r in of_one for parts in r.parts.values() for name in parts}
        if owner not in owners:
            raise UsageError(f"{file} has no owner {owner!r}{nearest_of(owner, sorted(owners))}")
    trends = tuple(
        trend
        for of_one in chosen.values()
        for figure in RECORDED
        if not figures or figure in figures
        for trend in _trends(of_one, figure, owner)
    )
    if figures and not trends:
        whose = "" if owner is None else f" of {owner}"
        raise UsageError(f"{file} has no {', '.join(figures)}{whose}: no release has it")
    releases = {name: tuple(recording.release for recording in of_one) for name, of_one in chosen.items()}
    return History(file, releases, trends, tuple(_notes(releases)))


def _trends(recordings: Sequence[Recording], figure: str, owner: str | None) -> Iterator[Trend]:
    """Return the trend of one figure; nothing if no release knows it, or if the owner has no part in it."""
    recorded = [recording for recording in recordings if figure in recording.figures]
    if not recorded or (owner is not None and not any(owner in r.parts.get(figure, {}) for r in recorded)):
        return

    def value(recording: Recording) -> int | None:
        if figure not in recording.figures:
            return None
        return recording.figures[figure] if owner is None else recording.parts.get(figure, {}).get(owner, 0)

    steps = [
        _step(before, after, figure, owner, (value(after) or 0) - (value(before) or 0))
        for before, after in pairwise(recorded)
    ]
    # Of equal steps take the last one: that one can still be mended.
    largest = max(reversed(steps), key=lambda step: abs(step.delta), default=None)
    values = tuple(value(recording) for recording in recordings)
    program = recordings[0].release.program
    yield Trend(program, figure, owner, values, largest if largest and largest.delta else None)


def _step(before: Recording, after: Recording, figure: str, owner: str | None, delta: int) -> TrendStep:
    versions = (before.release.version, after.release.version)
    if owner is not None or not delta:
        return TrendStep(*versions, delta, owner, delta)
    old, new = before.parts.get(figure, {}), after.parts.get(figure, {})
    sign = 1 if delta > 0 else -1
    deltas = {name: new.get(name, 0) - old.get(name, 0) for name in sorted({*old, *new})}
    # Of equal owners prefer a file: the memory of owners in brackets often follows from a file.
    most = max(deltas, key=lambda name: (sign * deltas[name], not name.startswith("[")), default=None)
    if most is None or deltas[most] * sign <= 0:
        return TrendStep(*versions, delta, None, 0)
    return TrendStep(*versions, delta, most, deltas[most])


def _notes(releases: Mapping[str, Sequence[Release]]) -> Iterator[Note]:
    for program, of_one in releases.items():
        sources = dict.fromkeys("prediction" if r.source == "prediction" else "measurement" for r in of_one)
        if len(sources) > 1:
            detail = "some releases are predicted from their files, others measured: such a step is no change"
            yield Note("history-mixed", program, detail)
