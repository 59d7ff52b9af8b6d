"""What was found: who wastes what, how sure that is, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

__all__ = ("Confidence", "Finding", "SourceLocation")


class Confidence(StrEnum):
    """How sure a finding is, from the surest; `blocked` means that the remedy is not to be had as things are."""

    PROOF = "proof"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    BLOCKED = "blocked"


class SourceLocation(NamedTuple):
    """Where in the sources it is."""

    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that costs memory and could go.

    Attributes:
        rule: The rule that found it, such as `unused-library`.
        kind: Which of the rule's kinds it is.
        subject: What it is about.
        message: What was found, in one sentence.
        saving_bytes: Private memory that each process is spared; 0 where nothing is gained by itself.
        confidence: How sure it is.
        reasons: Why it is not surer, or why it is sure.
        remedy: What to do.
        leaves: The objects that leave the process with it.
        location: Where in the sources it is, where known.
        is_per_thread: Whether each thread is spared the saving: a process at least once.
        private_bytes: Of a live process, how much of what it is about is private now; None where that is not known.
        object_path: The path of the object that would be built otherwise; "" where that is none, or several.
    """

    rule: str
    kind: str
    subject: str
    message: str
    saving_bytes: int
    confidence: Confidence
    reasons: tuple[str, ...]
    remedy: str
    leaves: tuple[str, ...] = ()
    location: SourceLocation | None = None
    is_per_thread: bool = False
    private_bytes: int | None = None
    object_path: str = ""
