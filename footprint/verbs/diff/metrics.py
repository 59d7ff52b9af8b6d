"""The metrics of a comparison."""

from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.release.compare import Comparison
from footprint.verbs.audit.metrics import audit_metrics

__all__ = ("diff_metrics",)


def diff_metrics(found: Comparison) -> list[MetricFamily]:
    """Return the figures of the newer side, and by how much each is larger."""
    totals = [
        MetricSample({"figure": one.name}, delta_bytes)
        for one in found.totals
        if (delta_bytes := one.delta_bytes) is not None
    ]
    owners = [MetricSample({"owner": one.owner}, one.delta_bytes) for one in found.owners]
    return [
        *audit_metrics(found.new),
        MetricFamily("change", "The growth of a figure of the whole process.", totals),
        MetricFamily("owner_change", "The growth of an owner.", owners),
    ]
