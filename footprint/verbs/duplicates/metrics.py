"""The metrics of copies."""

from collections import Counter

from footprint.formats.metrics import MetricFamily, MetricSample, finding_families
from footprint.verbs.duplicates.call import Duplicates

__all__ = ("duplicates_metrics",)


def duplicates_metrics(found: Duplicates) -> list[MetricFamily]:
    """Return what copies take beyond one of each."""
    wastes: Counter[tuple[str, str]] = Counter()
    for file in found.files:
        for one in filter(lambda each: each.is_counted, file.copies):
            for cost, waste_bytes in one.waste.items():
                wastes[file.file, cost.value] += waste_bytes
    samples = [MetricSample({"file": file, "cost": cost}, waste_bytes) for (file, cost), waste_bytes in wastes.items()]
    waste = MetricFamily(
        "duplicate_waste", "The size of all copies but one of data that headers define (proof and high).", samples
    )
    return [waste, *finding_families(found.findings, {})]
