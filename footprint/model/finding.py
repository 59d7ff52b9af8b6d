"""A finding: what costs memory, how sure that is, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from footprint.members import NamedTuple


class Confidence(StrEnum):
    """How sure a finding is, from the surest; `blocked` means that something prevents the remedy."""

    PROOF = "proof"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    BLOCKED = "blocked"

    @property
    def is_sure(self) -> bool:
        """Whether the remedy leaves what the program does as it is: sums of copies and constants count only this."""
        return self in {Confidence.PROOF, Confidence.HIGH}

    @property
    def is_counted(self) -> bool:
        """Whether sums of savings count a finding: what is `low` or `blocked` is shown beside them."""
        return self in {Confidence.PROOF, Confidence.HIGH, Confidence.MEDIUM}


CONFIDENCES: Final = tuple(Confidence)
"""From the surest to the weakest."""


class SearchedRule(NamedTuple):
    """A rule that was run for an audit.

    Attributes:
        rule: Its name.
        left_out_count: How many doubtful findings it made that the audit leaves out.
    """

    rule: str
    left_out_count: int = 0


class SourceLocation(NamedTuple):
    """A place in the source code.

    Attributes:
        file: The file.
        line: The line; None where it is not known.
    """

    file: str
    line: int | None


_MOST_PLACES: Final = 3
# Rules whose findings change what a program does where they are wrong.
_SURE_ONLY: Final = frozenset({"duplicate-static", "linked-twice", "mutable-constant"})


def listed_places(places: Sequence[SourceLocation], word: str) -> str:
    """Return the first of some places, as `a.c:1, b.c:2 and c.c:3`, with `word` before the last one."""
    shown = [place.file if place.line is None else f"{place.file}:{place.line}" for place in places[:_MOST_PLACES]]
    if rest := len(places) - len(shown):
        shown.append(f"{rest} more lines")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that costs memory and could go.

    Attributes:
        rule: The name of its rule, such as `unused-library`.
        kind: One of the kinds of the rule.
        subject: The name of the library, variable or object.
        message: The finding in one sentence.
        saving_bytes: The private memory that each process saves with the remedy; in a group, that of all members that
            have it; 0 if it saves nothing by itself.
        confidence: How sure it is.
        reasons: Why it is that sure.
        remedy: What to do.
        leaves: The objects that leave the process with it.
        location: The place in the sources, where known.
        is_per_thread: Whether the saving is per thread; a process has at least one.
        private_bytes: The private bytes of the subject in a live process; None where that is not known.
        object_path: The path of the object to build differently; "" for none or several.
        size_bytes: The size of a variable that may be smaller, or of its copies; None where the finding is about none.
        member_count: The number of processes of a group that have it; None for a finding of one process.
        thread_bytes: The private memory that each further thread of a process saves, in addition to `saving_bytes`.
        saving_us: The processor time that each start saves, estimated, in microseconds.
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
    size_bytes: int | None = None
    member_count: int | None = None
    thread_bytes: int = 0
    saving_us: int = 0

    @property
    def is_counted(self) -> bool:
        """Return whether sums of savings count it: of copies and constants only what is sure."""
        return self.confidence.is_sure if self.rule in _SURE_ONLY else self.confidence.is_counted

    @property
    def about_bytes(self) -> int:
        """Return what it saves; if it saves nothing by itself, the size that it is about."""
        return self.saving_bytes or self.size_bytes or 0

    @property
    def saving_verb(self) -> str:
        """What the remedy does with `saving_bytes`: only what sums count is a promise."""
        if self.confidence is Confidence.BLOCKED:
            return "would save"
        return "saves" if self.is_counted else "saves up to"

    @property
    def noun(self) -> str:
        """What saves `saving_bytes` with the remedy."""
        if self.member_count is not None:
            return "group"
        return "thread" if self.is_per_thread else "process"
