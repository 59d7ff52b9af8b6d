"""The metrics of a program that was run: those of its audit, and the peak."""

from footprint.formats.metrics import MetricFamily, total_family
from footprint.model.figures import FIGURES
from footprint.model.totals import Total
from footprint.verbs.audit.metrics import audit_metrics
from footprint.verbs.run.result import RunResult

__all__ = ("run_metrics",)


def run_metrics(ran: RunResult) -> list[MetricFamily]:
    """Return the figures of the median start, and the peak."""
    families, peak = audit_metrics(ran.audit), ran.peak
    if peak is None:
        return families
    labels = {"target": ran.audit.target, "source": peak.source}
    return [*families, total_family(FIGURES["peak_bytes"], Total(peak.peak_bytes, peak.evidence), labels)]
