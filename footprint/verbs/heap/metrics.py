"""The metrics of heap profiles."""

from collections.abc import Iterable

from footprint.attribution.heap_usage import HeapUsage
from footprint.formats.metrics import MetricFamily, MetricSample

__all__ = ("heap_metrics",)


def heap_metrics(usages: Iterable[HeapUsage]) -> list[MetricFamily]:
    """Return what heap profiles say about their moment, by object."""
    live, extra, stacks, owners = [], [], [], []
    for usage in usages:
        file = {"file": usage.file}
        if (snapshot := usage.snapshot) is not None:
            labels = file | {"evidence": usage.evidence.value}
            live.append(MetricSample(labels, snapshot.live_bytes))
            if snapshot.extra_bytes is not None:
                extra.append(MetricSample(labels, snapshot.extra_bytes))
            if snapshot.stack_bytes is not None:
                stacks.append(MetricSample(labels, snapshot.stack_bytes))
        if usage.attribution is not None:
            owners += [MetricSample(file | {"owner": one.owner}, one.size_bytes) for one in usage.attribution.owners]
    return [
        MetricFamily("heap_live", "Memory that the program asked for and has not freed.", live),
        MetricFamily("heap_overhead", "Memory that the allocator uses in addition.", extra),
        MetricFamily("heap_stacks", "The stacks.", stacks),
        MetricFamily("heap_owner", "By the object that asked for it.", owners),
    ]
