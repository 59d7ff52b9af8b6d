"""`footprint project`: what N processes cost, or how many fit."""

import typer

from footprint.model.projection import Model
from footprint.verbs import options

__all__ = ("project",)

ORDER = 90


def project(
    target: options.Target,
    count: options.OptionalCount = None,
    memory: options.Memory = None,
    model: options.ModelOption = Model.EXEC,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Show what N processes cost, or how many fit.

    With every term, for started copies, for forked workers of one parent, or for threads.

    \b
    footprint project 4711 -n 10000
    footprint project smaps.txt --memory 32GiB
    footprint project 4711 -n 50 --model fork
    """
    from footprint.units import parse_bytes
    from footprint.verbs.output import exit_code, output_options, write
    from footprint.verbs.project.answer import ProjectAnswer
    from footprint.verbs.project.call import project as project_process

    written = output_options(ProjectAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    memory_bytes = None if memory is None else parse_bytes(memory)
    found = project_process(target, count=count, memory_bytes=memory_bytes, model=model.value, pid=pid, root=root)
    write(ProjectAnswer(found, f"project {target}"), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
