"""The JSON of `whatif`: what a program saves without some libraries, and whether it behaves as before."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.answer_table import answer_table, column, row_of, rows_of
from footprint.formats.audit_rows import process_target
from footprint.json.answer import Envelope, Json, Tool
from footprint.json.codec import encode
from footprint.members import LATER, NOT_EMPTY, Positive, Signed
from footprint.model.audit import ProcessTarget, Spread
from footprint.model.costs import DailyStarts, StartMeasurement
from footprint.process.launch.moment import When
from footprint.verbs.whatif.result import Compared, Leaving, WhatIf

if TYPE_CHECKING:  # the other answer of the verb
    from footprint.verbs.whatif.build_comparison import BuildComparison


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


def figures_of(result: "WhatIf | BuildComparison") -> WhatIfFigures:
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
class OwnerSavingRow:
    """An owner whose private memory differs between the median starts."""

    owner: str = column("The object, or a name in brackets.")
    saved_bytes: Signed = column("What is saved of its private memory; negative where it takes more.")
    before_bytes: int = column("Its private memory with the libraries.")
    after_bytes: int = column("Its private memory without them.")
    predicted_bytes: int | None = column("The prediction for an object that leaves; else null.")


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
    changes: tuple[OwnerSavingRow, ...]
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
            changes=rows_of(OwnerSavingRow, result.changes),
            behaviour=result.behaviour,
            saving=row_of(SavingMembers, result),
            notes=result.notes,
        )
    )
