"""`footprint duplicates`: data that files hold several times over."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("duplicates",)

ORDER = 60


def duplicates(
    targets: Annotated[list[str], typer.Argument(help="Linked ELF files, or one PID: all files that it runs.")],
    count: options.Count = 1,
    top: options.Top = 20,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
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
    from footprint.sources.debug_files import debug_search
    from footprint.verbs.duplicates.answer import DuplicatesAnswer
    from footprint.verbs.duplicates.call import duplicates as find_duplicates
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write

    written = output_options(DuplicatesAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = find_duplicates(*targets, debug=debug)
    write(DuplicatesAnswer(found, count, ViewOptions(top=top, has_whole_names=verbose)), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
