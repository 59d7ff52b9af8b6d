"""The metrics of the variables of files."""

from collections.abc import Iterable

from footprint.elf.origins import Origins
from footprint.formats.metrics import MetricFamily, MetricSample

__all__ = ("symbols_metrics",)


def symbols_metrics(files: Iterable[Origins]) -> list[MetricFamily]:
    """Return the sizes of writable sections, and how much of each has a name."""
    sizes, named = [], []
    for known in files:
        for one in known.contents.sections:
            labels = {"file": known.contents.file, "section": one.section.name, "kind": one.kind.value}
            sizes.append(MetricSample(labels, one.size_bytes))
            named.append(MetricSample(labels, one.named_bytes))
    return [
        MetricFamily("section", "The size of a section in memory.", sizes),
        MetricFamily("section_named", "How much of it symbols name.", named),
    ]
