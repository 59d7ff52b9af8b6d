"""The metrics of a survey."""

from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.verbs.survey.result import Survey

__all__ = ("survey_metrics",)


def survey_metrics(survey: Survey) -> list[MetricFamily]:
    """Return what a process of each program costs."""

    def each(name: str, text: str, attribute: str) -> MetricFamily:
        samples = [MetricSample({"path": one.path}, getattr(one, attribute)) for one in survey.programs]
        return MetricFamily(name, text, samples)

    return [
        each("program_floor", "What the objects of a program have written at start.", "startup_min_bytes"),
        each("program_ceiling", "What can ever be written of them.", "startup_max_bytes"),
        each("program_start", "What a process has at start beside them.", "start_bytes"),
        each("program_unused", "What libraries cost that nobody uses.", "unused_bytes"),
    ]
