"""The JSON of `whatif --with`: what another build of a program saves or costs, and whether it behaves as before."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.audit_json import process_target
from footprint.formats.codec import encode
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import NOT_EMPTY, Positive
from footprint.model.run_failure import RunFailure
from footprint.process.launch.moment import When
from footprint.release.compare import CostChange, OwnerChange, RowChange
from footprint.verbs.diff.json import DiffTarget, FigureChange, figure_changes, named_changes
from footprint.verbs.whatif.build_comparison import BuildComparison
from footprint.verbs.whatif.json import Variants, WhatIfFigures
from footprint.verbs.whatif.result import Compared

__all__ = ("WhatIfBuildJson", "builds_members")


class BuildMembers(NamedTuple):
    """How both builds were run.

    Attributes:
        command: The program and its arguments.
        build: The other build, as it was named; its argv is the same.
        when: The moment that was asked for: `exit`, `settled`, `output`, or a time.
        moment: The moment at which the program was really read.
        build_moment: The same of the other build.
        starts: The number of starts of each build.
        is_alike: Whether nothing that a user sees was seen to differ.
        failures: How starts of the program failed.
        build_failures: How starts of the other build failed.
        figures: The figures of all starts; `before` of the program, `after` of the other build.
    """

    command: Annotated[tuple[str, ...], NOT_EMPTY]
    build: str
    when: str
    moment: When
    build_moment: When
    starts: Positive
    is_alike: bool
    failures: tuple[RunFailure, ...]
    build_failures: tuple[RunFailure, ...]
    figures: WhatIfFigures


@dataclass(frozen=True, kw_only=True)
class WhatIfBuildJson(Envelope):
    """What another build of a program saves or costs.

    The `delta_bytes` of `changes`, and those of `diff`, add up to those of `private_bytes` and `kernel_bytes`.

    Attributes:
        target: The program, and the other build.
        whatif: How both were run.
        count: The number of processes that the changes are multiplied by.
        cost: The change of what so many cost together; null where one of both does not tell it.
        figures: The figures of the median starts.
        changes: The owners that differ, the largest change first.
        diff: The rows that differ.
        same_count: The number of rows that do not differ.
        behaviour: What a user sees of both: standard output, standard error, and the ending.
        notes: What the reader of the figures must know.
    """

    verb: Literal["whatif"] = "whatif"
    target: DiffTarget
    whatif: BuildMembers
    count: Positive
    cost: CostChange | None
    figures: tuple[FigureChange, ...]
    changes: tuple[OwnerChange, ...]
    diff: tuple[RowChange, ...]
    same_count: int
    behaviour: Annotated[tuple[Compared, ...], NOT_EMPTY]
    notes: tuple[Note, ...]


def builds_members(found: BuildComparison, version: str) -> Json:
    """Return the members of the answer."""
    comparison = found.comparison
    return encode(
        WhatIfBuildJson(
            tool=Tool("footprint", version),
            host=comparison.new.host,
            target=DiffTarget(process_target(found.before.audit), process_target(found.after.audit)),
            whatif=_runs(found),
            count=comparison.count,
            cost=comparison.cost,
            figures=figure_changes(comparison),
            changes=comparison.owners,
            diff=named_changes(comparison),
            same_count=comparison.same_count,
            behaviour=found.behaviour,
            notes=found.notes,
        )
    )


def _runs(found: BuildComparison) -> BuildMembers:
    before, after = found.before, found.after
    return BuildMembers(
        command=found.command,
        build=found.build,
        when=before.when,
        moment=before.start.moment,
        build_moment=after.start.moment,
        starts=before.start_count,
        is_alike=found.is_alike,
        failures=found.failures[0],
        build_failures=found.failures[1],
        figures=WhatIfFigures(Variants(before.private, after.private), Variants(before.per_process, after.per_process)),
    )
