"""The metrics of a check."""

from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.release.budget import Checked
from footprint.verbs.audit.metrics import audit_metrics

__all__ = ("check_metrics",)


def check_metrics(checked: Checked) -> list[MetricFamily]:
    """Return the figures of what was checked, and the budgets beside what is measured."""
    families = []
    for unit in ("bytes", ""):
        results = [one for one in checked.results if one.is_count is not bool(unit)]
        keys = [{"budget": one.key, "limit": "absolute" if one.grew_from is None else "growth"} for one in results]
        values = [MetricSample(key, one.value) for key, one in zip(keys, results, strict=True)]
        limits = [MetricSample(key, one.limit) for key, one in zip(keys, results, strict=True)]
        what = "budget" if unit else "budget_count"
        families.append(MetricFamily(f"{what}_used", "The measured value of what a budget limits.", values, unit))
        families.append(MetricFamily(f"{what}_limit", "The most that passes.", limits, unit))
    failed = MetricFamily(
        "budgets_exceeded", "Limits that are exceeded.", [MetricSample({}, len(checked.failures))], ""
    )
    return [*audit_metrics(checked.audit), *families, failed]
