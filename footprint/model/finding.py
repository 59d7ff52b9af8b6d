"""A finding: what costs memory, how sure that is, and what to do about it. Advice: what to do first.

Findings are joined by their remedy, each byte in one of them, what the user builds before the rest.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from footprint.members import LATER, Later, NamedTuple, Pattern, dataclass, field, json_members, lazy_pattern


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


# Only a package puts files there; who builds a program has it elsewhere.
_PACKAGED: Final = lazy_pattern(r"/(?:usr/)?(?:lib\w*|bin|sbin|libexec)/|/(?:nix|gnu)/store/")
_MOST_SAVINGS: Final = 3


class Remedy(NamedTuple):
    """What one remedy saves.

    Attributes:
        rule: The rule that found it.
        step: What to do.
        subjects: What it is done to, the largest saving first.
        saving_bytes: What a process, or the group, saves.
        confidence: That of the weakest finding.
    """

    rule: str
    step: str
    subjects: tuple[str, ...]
    saving_bytes: int
    confidence: Confidence


class Advice(NamedTuple):
    """The savings of an audit.

    Attributes:
        savings: The largest ones in what the user builds or starts, the largest first.
        rest_bytes: What the others there save.
        rest_count: The number of their remedies.
        packaged_bytes: What those in files of packages save beside them.
        packaged_count: The number of these files.
    """

    savings: tuple[Remedy, ...]
    rest_bytes: int
    rest_count: int
    packaged_bytes: int
    packaged_count: int


def is_packaged(path: str) -> bool:
    """Return whether only a package puts a file there."""
    return _PACKAGED.match(path) is not None


def advice_of(findings: Sequence[Finding], program: str = "", least_bytes: float = 0) -> Advice:
    """Join findings by what to do, without what another one of them saves already.

    What leaves with a library is counted there, and a variable in the largest finding about it.

    Args:
        findings: The findings of an audit, in any order.
        program: The path of the audited program, which counts as the user's wherever it is.
        least_bytes: What a saving must have to be one of the largest.
    """
    chosen = _apart([finding for finding in findings if finding.saving_bytes and finding.is_counted])
    packaged: list[Finding] = []
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in chosen:
        if is_packaged(finding.object_path) and finding.object_path != program:
            packaged.append(finding)
        else:
            alike.setdefault((finding.rule, finding.remedy), []).append(finding)
    savings = [
        Remedy(
            rule,
            remedy,
            tuple(dict.fromkeys(finding.subject for finding in some)),
            sum(finding.saving_bytes for finding in some),
            max((finding.confidence for finding in some), key=CONFIDENCES.index),
        )
        for (rule, remedy), some in alike.items()
    ]
    savings.sort(key=lambda saving: -saving.saving_bytes)
    first = [saving for saving in savings[:_MOST_SAVINGS] if saving.saving_bytes >= least_bytes]
    rest = savings[len(first) :]
    return Advice(
        tuple(first),
        sum(saving.saving_bytes for saving in rest),
        len(rest),
        sum(finding.saving_bytes for finding in packaged),
        len({finding.object_path for finding in packaged}),
    )


def _apart(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what another finding saves too; the largest saving comes first, and removals before all others."""
    leaving: set[str] = set()
    variables: set[tuple[str, str]] = set()
    chosen: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: (not finding.leaves, -finding.saving_bytes)):
        variable = (finding.object_path, finding.subject)
        is_counted = leaving.issuperset(finding.leaves) if finding.leaves else finding.object_path in leaving
        if is_counted or (finding.object_path and variable in variables):
            continue
        leaving.update(finding.leaves)
        variables.add(variable)
        chosen.append(finding)
    return chosen
