"""`footprint symbols`: what the writable memory of ELF files holds."""

from typing import Annotated

import typer

from footprint import __version__
from footprint.cli import options

__all__ = ("symbols",)


def symbols(
    files: Annotated[list[str], typer.Argument(help="Programs, libraries, objects (.o) or archives (.a).")],
    map_: Annotated[
        str | None,
        typer.Option("--map", help="The map of the link (-Wl,-Map=FILE): bfd, gold, lld, mold.", metavar="FILE"),
    ] = None,
    by: Annotated[options.SymbolsBy, typer.Option("--by", help="What to add up by.")] = options.SymbolsBy.SYMBOL,
    kind: Annotated[list[options.Kind] | None, typer.Option("--kind", help="Only such memory; repeatable.")] = None,
    is_local: Annotated[bool | None, typer.Option("--local/--global", help="Only variables that are so.")] = None,
    min_size: Annotated[
        str | None,
        typer.Option("--min-size", help="Only variables of this size or more, such as 4KiB.", metavar="SIZE"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Only variables whose name matches, mangled or not.", metavar="REGEX")
    ] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Tell where each is declared, and its type, as debug information has it.")
    ] = False,
    sort: Annotated[options.Sort, typer.Option("--sort", help="The order of the variables.")] = options.Sort.SIZE,
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
    footprint symbols --map foo.map --by file foo
    footprint symbols --kind bss --min-size 1MiB libfoo.so
    footprint symbols --source /lib/x86_64-linux-gnu/libc.so.6
    """
    from footprint.cli.output import emit, emit_document, exit_code
    from footprint.cli.selections import selection, tables
    from footprint.verbs import symbols
    from footprint.verbs.debug_files import debug_search

    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    chosen = selection(kind, is_local, min_size, name)
    found = symbols.symbols(*files, map=map_, selection=chosen, debug=debug, source=source)
    if json or format_ is options.Format.JSON:
        from footprint.report.json.symbols import symbols_json

        emit(symbols_json(found.origins, found.notes, __version__, found.sources), output)
    else:
        from footprint.report.views.symbols import symbols_report

        kinds, listed = found.selection.kinds, tables(found, by, sort, is_whole=verbose)
        namers = "Symbols and debug information" if any(one.named for one in found.sources or ()) else "Symbols"
        document = symbols_report(
            found.files,
            found.notes,
            top=top,
            has_linker_names=verbose,
            kinds=kinds,
            tables=listed,
            namers=namers,
        )
        emit_document(document, output, color, is_quiet=quiet)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
