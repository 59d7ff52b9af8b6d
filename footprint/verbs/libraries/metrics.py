"""The metrics of the objects of a program."""

from typing import Final

from footprint.formats.metrics import MetricFamily, MetricSample, finding_families
from footprint.verbs.libraries.call import Libraries

__all__ = ("libraries_metrics",)


def libraries_metrics(found: Libraries) -> list[MetricFamily]:
    """Return what each object of a program costs."""
    graph = found.graph
    series: dict[str, list[MetricSample]] = {name: [] for name in _OBJECTS}
    for number, linked in enumerate(graph.objects):
        labels = {"object": linked.path}
        prediction = graph.predictions[number]
        values = {
            "private": None if graph.private_bytes is None else graph.private_bytes[number],
            "floor": None if prediction is None else prediction.startup_min_bytes,
            "ceiling": None if prediction is None else prediction.startup_max_bytes,
            "mapped": None if prediction is None else prediction.mapped_bytes,
            "retained": graph.cost_bytes(graph.retained[number]),
        }
        for name, value in values.items():
            if value is not None:
                series[name].append(MetricSample(labels, value))
    families = [MetricFamily(f"object_{name}", text, series[name]) for name, text in _OBJECTS.items()]
    return [*families, *finding_families(found.findings, {"target": found.target})]


_OBJECTS: Final = {
    "private": "Private memory of an object in the live process.",
    "floor": "Startup minimum: pages of the object that are surely written at start.",
    "ceiling": "Startup maximum: pages of the object that can ever be written.",
    "mapped": "Its address space.",
    "retained": "The cost of the object and of all objects that only it brings in.",
}
