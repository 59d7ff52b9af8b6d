"""Metrics as the text of OpenMetrics 1.0, and as the subset of it that GitLab's metrics reports read."""

from collections.abc import Iterable, Sequence
from typing import Final

from footprint.formats.document import About
from footprint.formats.escape import printable
from footprint.formats.metrics import MetricFamily, MetricSample

__all__ = ("gitlab_metrics", "openmetrics")

_PREFIX: Final = "footprint"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
# GitLab takes a `#` for the beginning of a comment, also inside quotes, and splits the rest like a shell.
_FOR_GITLAB: Final = str.maketrans({"#": "\\x23", "\\": "/", "'": "\\x27"})
# A merge request shows each series on a line of its own.
_MOST_OF_A_FAMILY: Final = 20


def openmetrics(families: Sequence[MetricFamily], _about: About) -> str:
    """Write gauges, each with its unit and its meaning, and the end mark."""
    return _text(families, ())


def gitlab_metrics(families: Sequence[MetricFamily], _about: About) -> str:
    """Write the largest series of each family under stable names: GitLab compares branches by name."""
    few = [family._replace(samples=family.samples[:_MOST_OF_A_FAMILY]) for family in families]
    targets = {sample.labels.get("target") for family in families for sample in family.samples}
    # The target may be a PID, and the evidence may change: neither makes a different series.
    dropped = ("evidence", "target") if len(targets - {None}) <= 1 else ("evidence",)
    return _text(few, dropped, is_for_gitlab=True)


def _text(families: Iterable[MetricFamily], dropped: Sequence[str], *, is_for_gitlab: bool = False) -> str:
    lines = []
    for family in families:
        if not family.samples:
            continue
        name = "_".join(filter(None, (_PREFIX, family.name, family.unit)))
        lines.append(f"# TYPE {name} gauge")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}")
        lines.append(f"# HELP {name} {family.text.translate(_ESCAPES)}")
        sums: dict[str, int] = {}
        for sample in family.samples:
            # Names may become equal when they are escaped: add up their values, because no series may appear twice.
            labels = _labels(sample, dropped, is_for_gitlab=is_for_gitlab)
            sums[labels] = sums.get(labels, 0) + sample.value
        lines.extend(f"{name}{labels} {value}" for labels, value in sums.items())
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(sample: MetricSample, dropped: Sequence[str], *, is_for_gitlab: bool) -> str:
    parts = []
    for name, value in sample.labels.items():
        if name in dropped:
            continue
        shown = printable(value)
        if is_for_gitlab:
            shown = shown.translate(_FOR_GITLAB)
        parts.append(f'{name}="{shown.translate(_ESCAPES)}"')
    return "{" + ",".join(parts) + "}" if parts else ""
