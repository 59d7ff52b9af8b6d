"""`footprint project`: what N processes cost, or how many fit."""

from typing import TYPE_CHECKING

from footprint.verbs import options
from footprint.verbs.lazy import LazyModule, lazy_modules
from footprint.verbs.output import Answer, check_formats, write

if TYPE_CHECKING:
    from footprint.model.audit import Audit
    from footprint.verbs.audit import metrics, text
    from footprint.verbs.project import call, json
else:
    call, json = lazy_modules("footprint.verbs.project", "call json")
    metrics = LazyModule("footprint.verbs.audit.metrics")
    text = LazyModule("footprint.verbs.audit.text")

__all__ = ("project",)

ORDER = 90


@options.shared_options("output format_ table json color quiet strict")
def project(
    target: options.Target,
    count: options.OptionalCount = None,
    memory: options.Memory = None,
    model: options.ModelOption = None,
    pid: options.Pid = None,
    root: options.Root = None,
    *,
    output: options.OutputOptions,
) -> int:
    """Show what N processes cost, or how many fit.

    With every term, for started copies, for forked workers of one parent, or for threads.

    \b
    footprint project 4711 -n 10000
    footprint project smaps.txt --memory 32GiB
    footprint project 4711 -n 50 --model fork
    """
    from footprint.units import parse_bytes

    answer: Answer[Audit] = Answer(
        "project",
        "projection",
        document=text.projection_document,
        members=json.project_members,
        figures=lambda found: metrics.projection_metrics(found.projection, found.target),
    )
    check_formats(answer, output)
    memory_bytes = None if memory is None else parse_bytes(memory)
    found = call.project(
        target, count=count, memory_bytes=memory_bytes, model=None if model is None else model.value, pid=pid, root=root
    )
    return write(answer, found, f"project {target}", output, found.notes)
