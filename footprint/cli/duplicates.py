"""`footprint duplicates`: data that files hold several times over."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("duplicates",)


def duplicates(
    targets: Annotated[list[str], typer.Argument(help="Linked ELF files, or one PID: all files that it runs.")],
    count: options.Count = 1,
    top: options.Top = 20,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Find data that exists once per source file, and libraries that are linked in twice.

    What headers define, each source file that includes them has a copy of. Copies are told by their declaration,
    their contents and what they point to; the evidence is graded.

    \b
    footprint duplicates /usr/bin/node
    footprint duplicates 4711 -n 10000
    """
    from footprint.cli.output import emit, emit_document, exit_code
    from footprint.verbs import duplicates
    from footprint.verbs.debug_files import debug_search

    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = duplicates.duplicates(*targets, debug=debug)
    if json or format_ is options.Format.JSON:
        from footprint.report.json.duplicates import duplicates_json

        emit(duplicates_json(found, __version__, count), output)
    else:
        from footprint.report.views.duplicates import duplicates_report

        document = duplicates_report(found, count=count, top=top, has_linker_names=verbose)
        emit_document(document, output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
