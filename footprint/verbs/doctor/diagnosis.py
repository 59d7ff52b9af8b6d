"""What a host lets us read, as `footprint doctor` finds it."""

from dataclasses import dataclass
from enum import StrEnum

from footprint.attribution.kernel import KernelConstants
from footprint.errors import Note

__all__ = ("Check", "Diagnosis", "State")


class State(StrEnum):
    """How a check went."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that decides what footprint can answer here.

    Attributes:
        name: What was looked at.
        state: How it is.
        meaning: What that means for the answers.
        cure: What to do about it; None where nothing needs to be done.
    """

    name: str
    state: State
    meaning: str
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What this host lets us read.

    Attributes:
        host: Kernel and machine.
        checks: What was looked at.
        constants: What a process costs the kernel here.
        notes: What was odd about looking.
    """

    host: dict[str, str]
    checks: tuple[Check, ...]
    constants: KernelConstants
    notes: tuple[Note, ...]
