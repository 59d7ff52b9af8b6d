"""Metrics: named series with the figures of an answer, for programs that watch them over time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from footprint.model.figures import Figure
from footprint.model.finding import Finding
from footprint.model.row import Row
from footprint.model.totals import Total

__all__ = ("MetricFamily", "MetricSample", "finding_families", "owner_families", "total_family")


class MetricSample(NamedTuple):
    """One value of a series.

    Attributes:
        labels: The values of the labels, by their names.
        value: Bytes, or a number of things.
    """

    labels: dict[str, str]
    value: int


class MetricFamily(NamedTuple):
    """All values of one series.

    Attributes:
        name: The series, without the unit and without `footprint_`.
        text: What it means, as a sentence.
        samples: The values, the largest first if there are many.
        unit: `bytes`, or "" for a number of things.
    """

    name: str
    text: str
    samples: Sequence[MetricSample]
    unit: str = "bytes"


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
    found = tuple(findings)
    counts = Counter((one.rule, one.confidence.value) for one in found)
    savings: Counter[tuple[str, str]] = Counter()
    for one in found:
        savings[one.rule, one.confidence.value] += one.saving_bytes
    labels = {key: target | {"rule": key[0], "confidence": key[1]} for key in counts}
    return [
        MetricFamily("findings", "Findings.", [MetricSample(labels[key], count) for key, count in counts.items()], ""),
        MetricFamily(
            "findings_saving",
            "Private memory that each process saves with the remedies.",
            [MetricSample(labels[k], savings[k]) for k in counts],
        ),
    ]
