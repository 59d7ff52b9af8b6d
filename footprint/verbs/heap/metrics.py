"""The metrics of heap profiles."""

from collections.abc import Iterable
from typing import Final

from footprint.attribution.heap_usage import HeapUsage
from footprint.formats.metrics import MetricFamily, MetricSample

__all__ = ("heap_metrics",)

_OF_RUN: Final = frozenset({"allocated", "freed", "temporary", "read", "written"})


def heap_metrics(usages: Iterable[HeapUsage]) -> list[MetricFamily]:
    """Return what heap profiles say about their moment, by object."""
    live, extra, stacks, owners, counts = [], [], [], [], []
    for usage in usages:
        file = {"file": usage.file}
        if (snapshot := usage.snapshot) is not None:
            labels = file | {"evidence": usage.evidence.value}
            live.append(MetricSample(labels, snapshot.live_bytes))
            if snapshot.extra_bytes is not None:
                extra.append(MetricSample(labels, snapshot.extra_bytes))
            if snapshot.stack_bytes is not None:
                stacks.append(MetricSample(labels, snapshot.stack_bytes))
        counts += [
            MetricSample(file | {"counted": one.name}, one.tree.total_bytes)
            for one in usage.profile.tallies
            if one.name in _OF_RUN
        ]
        if usage.attribution is not None:
            owners += [MetricSample(file | {"owner": one.owner}, one.size_bytes) for one in usage.attribution.owners]
    return [
        MetricFamily("heap_live", "Memory that the program asked for and has not freed.", live),
        MetricFamily("heap_overhead", "Memory that the allocator uses in addition.", extra),
        MetricFamily("heap_stacks", "The stacks.", stacks),
        MetricFamily("heap_counted", "What was counted over the whole run.", counts),
        MetricFamily("heap_owner", "By the object that asked for it.", owners),
    ]
