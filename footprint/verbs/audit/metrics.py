"""The metrics of an audit, of one process or a group."""

from typing import TYPE_CHECKING

from footprint.formats.metrics import (
    MetricFamily,
    MetricSample,
    finding_families,
    owner_families,
    target_labels,
    total_family,
)
from footprint.model.audit import program_name
from footprint.model.figures import FIGURES

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
