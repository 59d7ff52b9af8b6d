"""The metrics of an audit: of one process, of a projection, of a group."""

from footprint.formats.metrics import MetricFamily, MetricSample, finding_families, owner_families, total_family
from footprint.model.audit import Audit
from footprint.model.figures import FIGURES, total_figures
from footprint.model.group import Group
from footprint.model.projection import Projection

__all__ = ("audit_metrics", "group_metrics", "projection_metrics")


def audit_metrics(audit: Audit) -> list[MetricFamily]:
    """Return the figures of a process: the whole, its owners, what N cost, and the findings."""
    target = {"target": audit.target}
    families = [total_family(figure, total, target) for figure, total in total_figures(audit.totals)]
    mappings = MetricFamily(
        "mappings", FIGURES["mapping_count"].sentence, [MetricSample(target, audit.mapping_count)], ""
    )
    projection = projection_metrics(audit.projection, audit.target)
    return [
        *families,
        mappings,
        *owner_families(audit.ledger, target),
        *projection,
        *finding_families(audit.findings, target),
    ]


def projection_metrics(projection: Projection, target: str) -> list[MetricFamily]:
    """Return what N processes cost."""
    labels = {"target": target, "model": projection.model.value, "evidence": projection.evidence.value}
    return [
        MetricFamily(
            "projected", "The cost of all projected processes.", [MetricSample(labels, projection.total_bytes)]
        ),
        MetricFamily(
            "projected_processes", "The number of projected processes.", [MetricSample(labels, projection.count)], ""
        ),
    ]


def group_metrics(group: Group) -> list[MetricFamily]:
    """Return the figures of several processes as one."""
    names = ("per_group", "private", "kernel", "shared_between", "own_shared", "shared_once")
    return [
        *(total_family(FIGURES[f"{name}_bytes"], getattr(group, name), {}) for name in names),
        MetricFamily("processes", "Processes.", [MetricSample({}, len(group.audits))], ""),
        *owner_families(group.ledger, {}),
    ]
