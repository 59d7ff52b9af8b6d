"""The metrics of a survey."""

from footprint.formats.metrics import MetricFamily, MetricSample
from footprint.verbs.survey.call import Survey

__all__ = ("survey_metrics",)


def survey_metrics(survey: Survey) -> list[MetricFamily]:
    """Return what a process of each program costs."""

    def each(name: str, text: str, attribute: str) -> MetricFamily:
        samples = [MetricSample({"path": one.path}, getattr(one, attribute)) for one in survey.programs]
        return MetricFamily(name, text, samples)

    return [
        each("program_floor", "Startup minimum of the objects of a program.", "startup_min_bytes"),
        each("program_ceiling", "Startup maximum of the objects of a program.", "startup_max_bytes"),
        each("program_start", "Memory of a process at start besides its objects.", "start_bytes"),
        each("program_unused", "The cost of libraries that nobody uses.", "unused_bytes"),
    ]
