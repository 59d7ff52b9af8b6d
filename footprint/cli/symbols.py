"""`footprint symbols`: what the writable memory of ELF files holds."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("symbols",)


def symbols(
    files: Annotated[list[str], typer.Argument(help="Programs, libraries, objects (.o) or archives (.a).")],
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
    """List the variables of ELF files, largest first.

    Those in writable and thread-local memory, with the sums of each section and what no symbol explains.

    \b
    footprint symbols /usr/bin/python3
    footprint symbols --top 0 --json libfoo.so
    """
    from footprint.cli.output import emit, emit_document, exit_code
    from footprint.verbs import symbols
    from footprint.verbs.debug_files import debug_search

    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = symbols.symbols(*files, debug=debug)
    if json or format_ is options.Format.JSON:
        from footprint.report.json.symbols import symbols_json

        emit(symbols_json(found.files, found.notes, __version__), output)
    else:
        from footprint.report.views.symbols import symbols_report

        document = symbols_report(found.files, found.notes, top=top, has_linker_names=verbose)
        emit_document(document, output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
