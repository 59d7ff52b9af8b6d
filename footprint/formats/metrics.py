"""Metrics: named series with the figures of an answer, for programs that watch them over time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from footprint.formats.document import About
from footprint.members import NamedTuple
from footprint.model.audit import program_name
from footprint.model.figures import FIGURES, Figure
from footprint.model.finding import Finding
from footprint.model.row import Row, Total
from footprint.text.escape import printable

_PREFIX: Final = "footprint"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
# GitLab takes a `#` for the beginning of a comment, also inside quotes, and splits the rest like a shell.
_FOR_GITLAB: Final = str.maketrans({"#": "\\x23", "\\": "/", "'": "\\x27"})
# A merge request shows each series on a line of its own.
_MOST_OF_A_FAMILY: Final = 20


class MetricSample(NamedTuple):
    """One value of a series.

    Attributes:
        labels: The values of the labels, by their names.
        value: Bytes, or a number of things.
    """

    labels: dict[str, str]
    value: float


class MetricFamily(NamedTuple):
    """All values of one series.

    Attributes:
        name: The series, without the unit and without `footprint_`.
        text: What it means, as a sentence.
        samples: The values, the largest first if there are many.
        unit: `bytes`, `seconds`, or "" for a number of things.
    """

    name: str
    text: str
    samples: Sequence[MetricSample]
    unit: str = "bytes"


def target_labels(target: str, program: str) -> dict[str, str]:
    """Return the label of what is measured; for a process ID its program, whose series go on after a restart."""
    return {"target": program if program and target.isdecimal() else target}


def total_family(figure: Figure, total: Total, target: dict[str, str]) -> MetricFamily:
    """Return one figure of the whole; without samples if the input cannot tell it."""
    samples = [] if total.bytes is None else [MetricSample(target | {"evidence": total.evidence.value}, total.bytes)]
    return MetricFamily(figure.name.removesuffix("_bytes"), figure.sentence, samples)


def owner_families(ledger: Iterable[Row], target: dict[str, str]) -> list[MetricFamily]:
    """Add up the private and mapped bytes of each owner and kind."""
    private: Counter[tuple[str, str]] = Counter()
    mapped: Counter[tuple[str, str]] = Counter()
    for row in ledger:
        key = (row.owner, row.kind.value)
        if row.bytes is not None:
            private[key] += row.bytes
        if row.mapped_bytes:
            mapped[key] += row.mapped_bytes
    return [
        MetricFamily(
            f"owner_{name}",
            text,
            [
                MetricSample(target | {"owner": owner, "kind": kind}, value)
                for (owner, kind), value in sums.most_common()
            ],
        )
        for name, text, sums in (
            ("private", "Private memory by owner; the kernel's own is that of kind kernel.", private),
            ("mapped", "Virtual size by owner.", mapped),
        )
    ]


def finding_families(findings: Iterable[Finding], target: dict[str, str]) -> list[MetricFamily]:
    """Count findings and add up what they save, by rule and confidence."""
    listed = tuple(findings)
    counts = Counter((item.rule, item.confidence.value) for item in listed)
    savings: Counter[tuple[str, str]] = Counter()
    for item in listed:
        savings[item.rule, item.confidence.value] += item.saving_bytes
    labels = {key: target | {"rule": key[0], "confidence": key[1]} for key in counts}
    return [
        MetricFamily("findings", "Findings.", [MetricSample(labels[key], count) for key, count in counts.items()], ""),
        MetricFamily(
            "findings_saving",
            "Private memory that each process saves with the remedies.",
            [MetricSample(labels[k], savings[k]) for k in counts],
        ),
    ]


def openmetrics(families: Sequence[MetricFamily], _about: About) -> str:
    """Write gauges, each with its unit and its meaning, and the end mark."""
    return _text(families, ())


def gitlab_metrics(families: Sequence[MetricFamily], _about: About) -> str:
    """Write the largest series of each family under stable names: GitLab compares branches by name."""
    few = [family._replace(samples=family.samples[:_MOST_OF_A_FAMILY]) for family in families]
    targets = {sample.labels.get("target") for family in families for sample in family.samples}
    # The target may be a PID, and the evidence may change: neither makes a different series.
    dropped = ("evidence", "target") if len(targets - {None}) <= 1 else ("evidence",)
    return _text(few, dropped, is_for_gitlab=True)


def _text(families: Iterable[MetricFamily], dropped: Sequence[str], *, is_for_gitlab: bool = False) -> str:
    lines = []
    for family in families:
        if not family.samples:
            continue
        name = "_".join(filter(None, (_PREFIX, family.name, family.unit)))
        lines.append(f"# TYPE {name} gauge")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}")
        lines.append(f"# HELP {name} {family.text.translate(_ESCAPES)}")
        sums: dict[str, float] = {}
        for sample in family.samples:
            # Names may become equal when they are escaped: add up their values, because no series may appear twice.
            labels = _labels(sample, dropped, is_for_gitlab=is_for_gitlab)
            sums[labels] = sums.get(labels, 0) + sample.value
        lines.extend(f"{name}{labels} {value}" for labels, value in sums.items())
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(sample: MetricSample, dropped: Sequence[str], *, is_for_gitlab: bool) -> str:
    parts = []
    for name, value in sample.labels.items():
        if name in dropped:
            continue
        shown = printable(value)
        if is_for_gitlab:
            shown = shown.translate(_FOR_GITLAB)
        parts.append(f'{name}="{shown.translate(_ESCAPES)}"')
    return "{" + ",".join(parts) + "}" if parts else ""


if TYPE_CHECKING:
    from footprint.model.audit import Audit


def audit_metrics(audit: "Audit") -> list[MetricFamily]:
    """Return the figures of a process or group: the whole, its owners, what N cost, and the findings."""
    target = target_labels(audit.target, program_name(audit))
    families = [total_family(FIGURES[name], total, target) for name, total in audit.figures.items()]
    counts = [
        MetricFamily(FIGURES[name].title, FIGURES[name].sentence, [MetricSample(target, value)], "")
        for name, value in audit.counts.items()
    ]
    projection = []
    if (cost := audit.projection).terms:
        labels = target | {"model": cost.model.value, "evidence": cost.evidence.value}
        many, total = [MetricSample(labels, cost.count)], [MetricSample(labels, cost.total_bytes)]
        nouns = "groups" if audit.noun == "group" else "processes"
        projection = [
            MetricFamily("projected", f"The cost of all projected {nouns}.", total),
            MetricFamily(f"projected_{nouns}", f"The number of projected {nouns}.", many, ""),
        ]
    return [
        *families,
        *counts,
        *owner_families(audit.ledger, target),
        *projection,
        *finding_families(audit.findings, target),
    ]
