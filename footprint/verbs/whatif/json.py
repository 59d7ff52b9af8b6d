"""The JSON of `whatif`: what a program saves without some libraries, and whether it behaves as before."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from footprint.errors import Note
from footprint.formats.audit_json import ProcessTarget, process_target
from footprint.formats.codec import encode, like
from footprint.formats.json import Envelope, Json, Tool
from footprint.members import NOT_EMPTY, Positive, Signed
from footprint.model.spread import Spread
from footprint.process.launch.moment import When
from footprint.verbs.whatif.result import Compared, Leaving, WhatIf

__all__ = ("WhatIfJson", "whatif_members")


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


class WhatIfMembers(NamedTuple):
    """What was left out, and how the variants were run.

    Attributes:
        command: The program and its arguments.
        dropped: The libraries that were left out, by the names that they are needed by.
        users: The objects that needed them.
        leaves: The objects that leave the process.
        when: The moment that was asked for: `exit`, `settled`, `output`, or a time.
        moment: The moment at which the program was really read.
        starts: The number of starts of each variant.
        is_alike: Whether nothing that a user sees was seen to differ.
        original_private_bytes: The private memory of one start of the program itself; null where it is not known.
        doubts: What may go wrong elsewhere.
        figures: The figures of all starts.
    """

    command: Annotated[tuple[str, ...], NOT_EMPTY]
    dropped: Annotated[tuple[str, ...], NOT_EMPTY]
    users: tuple[str, ...]
    leaves: tuple[Leaving, ...]
    when: str
    moment: When
    starts: Positive
    is_alike: bool
    original_private_bytes: int | None
    doubts: tuple[str, ...]
    figures: WhatIfFigures


class OwnerSavingRow(NamedTuple):
    """An owner whose private memory differs between the median starts.

    Attributes:
        owner: The object, or a name in brackets.
        saved_bytes: What is saved of its private memory; negative where it takes more.
        before_bytes: Its private memory with the libraries.
        after_bytes: Its private memory without them.
        predicted_bytes: The prediction for an object that leaves; else null.
    """

    owner: str
    saved_bytes: Signed
    before_bytes: int
    after_bytes: int
    predicted_bytes: int | None


class SavingMembers(NamedTuple):
    """The difference between the two starts whose private memory is the median.

    Attributes:
        predicted_bytes: The prediction: what the objects that leave write at start, and at the start of each thread.
        private_bytes: The private memory that is saved; null where it is not known.
        kernel_bytes: The kernel memory that is saved; null where it is not known.
        per_process_bytes: Both together; null where it is not known.
        count: The number of processes that were asked about.
        total_bytes: What so many processes save; null where it is not known.
    """

    predicted_bytes: int
    private_bytes: Signed | None
    kernel_bytes: Signed | None
    per_process_bytes: Signed | None
    count: Positive  # type: ignore[assignment] # tuple.count is not missed
    total_bytes: Signed | None


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


def whatif_members(found: WhatIf, version: str) -> Json:
    """Return the members of the answer."""
    audit, saving = found.before.audit, found.per_process or found.private
    return encode(
        WhatIfJson(
            tool=Tool("footprint", version),
            host=audit.host,
            target=process_target(audit),
            whatif=_whatif(found),
            changes=tuple([like(OwnerSavingRow, one) for one in found.changes]),
            behaviour=found.behaviour,
            saving=SavingMembers(
                predicted_bytes=found.predicted_bytes,
                private_bytes=None if found.private is None else found.private.bytes,
                kernel_bytes=found.kernel_bytes,
                per_process_bytes=None if found.per_process is None else found.per_process.bytes,
                count=found.count,
                total_bytes=None if saving is None else found.count * saving.bytes,
            ),
            notes=found.notes,
        )
    )


def _whatif(found: WhatIf) -> WhatIfMembers:
    before, after = found.before, found.after
    return like(
        WhatIfMembers,
        found,
        leaves=found.leaving,
        when=before.when,
        moment=before.start.moment,
        starts=before.start_count,
        original_private_bytes=found.original.audit.totals.private.bytes,
        figures=WhatIfFigures(Variants(before.private, after.private), Variants(before.per_process, after.per_process)),
    )
