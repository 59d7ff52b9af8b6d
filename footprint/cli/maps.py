"""`footprint maps`: every mapping of a process with its owner."""

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("maps",)


def maps(
    target: options.Target,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """List every mapping of a process with its owner.

    \b
    footprint maps 4711
    footprint maps smaps.txt --json
    """
    from footprint.cli.output import emit, emit_document, exit_code, wants_json
    from footprint.verbs import processes

    found = processes.maps(target, pid=pid, root=root)
    if wants_json(format_, output, is_asked=json):
        from footprint.report.json.maps import maps_json

        emit(maps_json(found, __version__), output)
    else:
        from footprint.report.views.maps import maps_report

        emit_document(maps_report(found, has_whole_names=verbose), output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
