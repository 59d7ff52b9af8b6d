"""`footprint project`: what N processes cost, or how many fit."""

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("project",)


def project(
    target: options.Target,
    count: options.OptionalCount = None,
    memory: options.Memory = None,
    model: options.ModelOption = options.Model.EXEC,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Say what N processes cost, or how many fit.

    With every term, for started copies, for forked workers of one parent, or for threads.

    \b
    footprint project 4711 -n 10000
    footprint project smaps.txt --memory 32GiB
    footprint project 4711 -n 50 --model fork
    """
    from footprint.cli.output import emit, emit_document, exit_code, wants_json
    from footprint.units import parse_bytes
    from footprint.verbs import processes

    memory_bytes = None if memory is None else parse_bytes(memory)
    found = processes.project(target, count=count, memory_bytes=memory_bytes, model=model.value, pid=pid, root=root)
    if wants_json(format_, output, is_asked=json):
        from footprint.report.json.audit import projection_json

        emit(projection_json(found, __version__), output)
    else:
        from footprint.report.views.audit import projection_report

        emit_document(projection_report(found), output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
