"""What to do first: findings joined by their remedy, each byte in one of them, what the user builds before the rest."""

import re
from collections.abc import Sequence
from typing import Final

from footprint.members import NamedTuple
from footprint.model.finding import CONFIDENCES, Confidence, Finding

# Only a package puts files there; who builds a program has it elsewhere.
_PACKAGED: Final = re.compile(r"/(?:usr/)?(?:lib\w*|bin|sbin|libexec)/|/(?:nix|gnu)/store/")

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
