"""A finding: what costs memory, how sure that is, and what to do about it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from footprint.members import LATER, Later, NamedTuple, Pattern, dataclass, field, json_members


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


@json_members(
    "rule kind subject message saving_bytes saving_at_count_bytes added_bytes thread_bytes saving_us saving_per"
    " size_bytes private_bytes confidence reasons remedy leaves object location member_count"
)
@dataclass(frozen=True)
class Finding:
    """One thing that costs memory and could go.

    Attributes:
        rule: The rule that found it, such as `unused-library`.
        kind: The kind of finding, among those of the rule.
        subject: The object, variable or function that the finding is about.
        message: What was found, in one sentence.
        saving_bytes: The private memory that each process saves, of a group all members together; 0 where the remedy
            alone saves nothing.
        saving_at_count_bytes: The same for as many processes or groups as were asked about.
        added_bytes: The part of `saving_bytes` that no other finding of the table frees; 0 where the remedy is blocked.
            These parts add up to the most that all remedies save together.
        thread_bytes: The private memory that each further thread of a process saves, in addition to `saving_bytes`.
        saving_us: The processor time that each start saves, estimated, in microseconds.
        saving_per: Whether each process saves it, or each thread, of which a process has at least one.
        size_bytes: The size of a variable that may be smaller, or of its copies; null where the finding is about none.
        private_bytes: The part of the subject that is private in the live process; null where that is not known.
        confidence: How sure the finding is; `blocked` means that the remedy is not available as things are.
        reasons: Why the finding is as sure as it is.
        remedy: What to do.
        leaves: The paths of the objects that leave the process with it.
        object: The path of the object to build in another way; null where there is none, or several.
        location: The place in the source code; null where it is not known.
        member_count: The number of processes of a group that have it; null for a finding of one process.
    """

    rule: str
    kind: Annotated[str, Pattern("^[a-z]+(-[a-z]+)*$")]
    subject: str
    message: str
    saving_bytes: int
    confidence: Confidence
    reasons: tuple[str, ...]
    remedy: str
    leaves: tuple[str, ...] = ()
    location: SourceLocation | None = None
    saving_per: Annotated[Literal["process", "thread"], Later("process")] = "process"
    private_bytes: Annotated[int | None, LATER] = None
    object: Annotated[str | None, LATER] = None
    size_bytes: Annotated[int | None, LATER] = None
    member_count: Annotated[int | None, LATER] = None
    thread_bytes: Annotated[int, Later(0)] = 0
    saving_us: Annotated[int, Later(0)] = 0
    # An answer sets these, in its table.
    saving_at_count_bytes: int = field(default=0, compare=False)
    added_bytes: Annotated[int, Later(0)] = field(default=0, compare=False)

    @property
    def object_path(self) -> str:
        """The path of the object to build in another way; "" where there is none, or several."""
        return self.object or ""

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
        return self.saving_per
