"""`footprint diff`: what grew between two targets."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("diff",)


def diff(
    old: Annotated[str, typer.Argument(help="The one before: a saved audit, a PID, a program, a capture or a text.")],
    new: Annotated[str, typer.Argument(help="The one now, of the same kind.")],
    count: options.OptionalCount = None,
    top: options.Top = 20,
    root: options.Root = None,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    html: options.Html = None,
    output: options.Output = "-",
    format_: options.FormatOption = options.Format.TEXT,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Show what grew, per owner and variable, and what that is at N processes.

    What only a build numbers anew, or another folder, is no change.

    \b
    footprint diff before.json after.json -n 10000
    footprint diff ./old/server ./new/server
    footprint diff 4711 4712
    footprint diff before.json after.json --html change.html
    """
    from footprint.cli.output import emit, emit_document, emit_page, exit_code, wants_json
    from footprint.verbs.debug_files import debug_search
    from footprint.verbs.diff import diff as compare

    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = compare(old, new, count=count, root=root, debug=debug, has_page_maps=html is not None)
    has_answer = True
    if html is not None:
        from footprint.report.html import diff_page

        has_answer = emit_page(diff_page(found, __version__), html, output)
    if has_answer and wants_json(format_, output, is_asked=json):
        from footprint.report.json.diff import diff_json

        emit(diff_json(found, __version__), output)
    elif has_answer:
        from footprint.report.views.diff import diff_report

        emit_document(diff_report(found, top=top, has_whole_names=verbose), output, color, is_quiet=quiet)
    raise typer.Exit(exit_code((*found.old.notes, *found.new.notes), is_strict=strict))
