"""The metrics of an audit, of one process or a group, and of a projection."""

from typing import TYPE_CHECKING

from footprint.formats.metrics import MetricFamily, MetricSample, finding_families, owner_families, total_family
from footprint.model.figures import FIGURES

if TYPE_CHECKING:
    from footprint.model.audited import Audited
    from footprint.model.group import GroupProjection
    from footprint.model.projection import Projection

__all__ = ("audit_metrics", "projection_metrics")


def audit_metrics(audit: "Audited") -> list[MetricFamily]:
    """Return the figures of a process or group: the whole, its owners, what N cost, and the findings."""
    target = {"target": audit.target}
    families = [total_family(FIGURES[name], total, target) for name, total in audit.figures.items()]
    counts = [
        MetricFamily(FIGURES[name].title, FIGURES[name].sentence, [MetricSample(target, value)], "")
        for name, value in audit.counts.items()
    ]
    projection = [] if audit.projection is None else projection_metrics(audit.projection, audit.target, audit.noun)
    return [
        *families,
        *counts,
        *owner_families(audit.ledger, target),
        *projection,
        *finding_families(audit.findings, target),
    ]


def projection_metrics(
    projection: "Projection | GroupProjection", target: str, noun: str = "process"
) -> list[MetricFamily]:
    """Return what N processes or groups cost."""
    labels = {"target": target, "model": projection.model.value, "evidence": projection.evidence.value}
    nouns = "groups" if noun == "group" else "processes"
    return [
        MetricFamily(
            "projected", f"The cost of all projected {nouns}.", [MetricSample(labels, projection.total_bytes)]
        ),
        MetricFamily(
            f"projected_{nouns}", f"The number of projected {nouns}.", [MetricSample(labels, projection.count)], ""
        ),
    ]
