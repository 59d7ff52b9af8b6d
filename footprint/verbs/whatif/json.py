"""The JSON of `whatif`: what a program saves without some libraries, or what another build of it saves or costs."""

from typing import Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_of
from footprint.formats.audit_rows import process_target
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import LATER, NOT_EMPTY, Positive, Signed, dataclass
from footprint.model.audit import ProcessTarget
from footprint.model.costs import DailyStarts, Spread, StartMeasurement
from footprint.model.over_time import RunFailure
from footprint.process.launch.moment import When
from footprint.release.compare import CostChange, OwnerChange, RowChange
from footprint.verbs.diff.json import DiffTarget, FigureChange, figure_changes, named_changes
from footprint.verbs.whatif.result import BuildComparison, Compared, Leaving, OwnerSaving, TwoVariants, WhatIf


class Variants(NamedTuple):
    """A figure over all starts of both variants.

    Attributes:
        before: With the libraries, or of the program; null where it is not known.
        after: Without them, or of the other build; null where it is not known.
    """

    before: Spread | None
    after: Spread | None


class WhatIfFigures(NamedTuple):
    """The figures of all starts of both variants.

    Attributes:
        private_bytes: The private memory.
        per_process_bytes: The cost of one process.
    """

    private_bytes: Variants
    per_process_bytes: Variants


def figures_of(result: TwoVariants) -> WhatIfFigures:
    """Return the figures of all starts."""
    before, after = result.before, result.after
    return WhatIfFigures(Variants(before.private, after.private), Variants(before.per_process, after.per_process))


@answer_table
class WhatIfMembers:
    """What was left out, and how the variants were run."""

    command: Annotated[tuple[str, ...], NOT_EMPTY] = column("The program and its arguments.")
    dropped: Annotated[tuple[str, ...], NOT_EMPTY] = column(
        "The libraries that were left out, by the names that they are needed by."
    )
    users: tuple[str, ...] = column("The objects that needed them.")
    leaves: tuple[Leaving, ...] = column("The objects that leave the process.", "leaving")
    when: str = column("The moment that was asked for: `exit`, `settled`, `output`, or a time.", "before.when")
    moment: When = column("The moment at which the program was really read.", "before.start.moment")
    starts: Positive = column("The number of starts of each variant.", "before.start_count")
    is_alike: bool = column("Whether nothing that a user sees was seen to differ.")
    original_private_bytes: int | None = column(
        "The private memory of one start of the program itself; null where it is not known.",
        "original.audit.totals.private.bytes",
    )
    doubts: tuple[str, ...] = column("What may go wrong elsewhere.")
    figures: WhatIfFigures = column("The figures of all starts.", figures_of)
    start_cost: Annotated[StartMeasurement | None, LATER] = column(
        "What the starts with the libraries cost up to the entry point; null where that was not measured.",
        "before.start_cost",
    )
    start_cost_after: Annotated[StartMeasurement | None, LATER] = column("The same without them.", "after.start_cost")
    daily: Annotated[DailyStarts | None, LATER] = column(
        "What the starts of `--per` take each day with the libraries; null without it.", "before.daily"
    )
    daily_after: Annotated[DailyStarts | None, LATER] = column("The same without them.", "after.daily")


def _total_bytes(result: WhatIf) -> int | None:
    saving = result.per_process or result.private
    return None if saving is None else result.count * saving.bytes


@answer_table
class SavingMembers:
    """The difference between the two starts whose private memory is the median."""

    predicted_bytes: int = column(
        "The prediction: what the objects that leave write at start, and at the start of each thread."
    )
    private_bytes: Signed | None = column(
        "The private memory that is saved; null where it is not known.", "private.bytes"
    )
    kernel_bytes: Signed | None = column("The kernel memory that is saved; null where it is not known.")
    per_process_bytes: Signed | None = column("Both together; null where it is not known.", "per_process.bytes")
    count: Positive = column("The number of processes that were asked about.")
    total_bytes: Signed | None = column("What so many processes save; null where it is not known.", _total_bytes)


@dataclass(frozen=True, kw_only=True)
class WhatIfJson(Envelope):
    """What a program saves without some libraries; `before_bytes` less `after_bytes` add up to the private saving.

    Attributes:
        target: The program.
        whatif: What was left out, and how the variants were run.
        changes: The owners whose private memory differs, the largest saving first.
        behaviour: What a user sees of both variants: standard output, standard error, and the ending.
        saving: What is saved.
        notes: What the reader of the figures must know.
    """

    verb: Literal["whatif"] = "whatif"
    target: ProcessTarget
    whatif: WhatIfMembers
    changes: tuple[OwnerSaving, ...]
    behaviour: Annotated[tuple[Compared, ...], NOT_EMPTY]
    saving: SavingMembers
    notes: tuple[Note, ...]


def whatif_members(result: WhatIf, version: str) -> Json:
    """Return the members of the answer."""
    audit = result.before.audit
    return encode(
        WhatIfJson(
            tool=Tool("footprint", version),
            host=audit.host,
            target=process_target(audit),
            whatif=row_of(WhatIfMembers, result),
            changes=result.changes,
            behaviour=result.behaviour,
            saving=row_of(SavingMembers, result),
            notes=result.notes,
        )
    )


@answer_table
class BuildMembers:
    """How both builds were run."""

    command: Annotated[tuple[str, ...], NOT_EMPTY] = column("The program and its arguments.")
    build: str = column("The other build, as it was named; its argv is the same.")
    when: str = column("The moment that was asked for: `exit`, `settled`, `output`, or a time.", "before.when")
    moment: When = column("The moment at which the program was really read.", "before.start.moment")
    build_moment: When = column("The same of the other build.", "after.start.moment")
    starts: Positive = column("The number of starts of each build.", "before.start_count")
    is_alike: bool = column("Whether nothing that a user sees was seen to differ.")
    failures: tuple[RunFailure, ...] = column("How starts of the program failed.", lambda builds: builds.failures[0])
    build_failures: tuple[RunFailure, ...] = column(
        "How starts of the other build failed.", lambda builds: builds.failures[1]
    )
    figures: WhatIfFigures = column(
        "The figures of all starts; `before` of the program, `after` of the other build.", figures_of
    )
    start_cost: Annotated[StartMeasurement | None, LATER] = column(
        "What the starts of the program cost up to the entry point; null where that was not measured.",
        "before.start_cost",
    )
    start_cost_after: Annotated[StartMeasurement | None, LATER] = column(
        "The same of the other build.", "after.start_cost"
    )
    daily: Annotated[DailyStarts | None, LATER] = column(
        "What the starts of `--per` take each day of the program; null without it.", "before.daily"
    )
    daily_after: Annotated[DailyStarts | None, LATER] = column("The same of the other build.", "after.daily")


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


def builds_members(builds: BuildComparison, version: str) -> Json:
    """Return the members of the answer."""
    comparison = builds.comparison
    return encode(
        WhatIfBuildJson(
            tool=Tool("footprint", version),
            host=comparison.new.host,
            target=DiffTarget(process_target(builds.before.audit), process_target(builds.after.audit)),
            whatif=row_of(BuildMembers, builds),
            count=comparison.count,
            cost=comparison.cost,
            figures=figure_changes(comparison),
            changes=comparison.owners,
            diff=named_changes(comparison),
            same_count=comparison.same_count,
            behaviour=builds.behaviour,
            notes=builds.notes,
        )
    )
