"""`footprint symbols`: what the writable memory of ELF files holds."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("symbols",)

ORDER = 40


def symbols(
    files: Annotated[list[str], typer.Argument(help="Programs, libraries, objects (.o) or archives (.a).")],
    map_: Annotated[
        str | None,
        typer.Option("--map", help="The map of the link (-Wl,-Map=FILE): bfd, gold, lld, mold.", metavar="FILE"),
    ] = None,
    by: Annotated[options.SymbolsBy, typer.Option("--by", help="What to add up by.")] = options.SymbolsBy.SYMBOL,
    kind: Annotated[
        list[options.VariableKind] | None, typer.Option("--kind", help="Only such memory; repeatable.")
    ] = None,
    is_local: Annotated[bool, typer.Option("--local", help="Only variables that one source file knows.")] = False,
    is_global: Annotated[bool, typer.Option("--global", help="Only the others.")] = False,
    min_size: Annotated[
        str | None,
        typer.Option("--min-size", help="Only variables of this size or more, such as 4KiB.", metavar="SIZE"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Only variables whose name matches, mangled or not.", metavar="REGEX")
    ] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Show where each is declared, and its type, from debug information.")
    ] = False,
    sort: Annotated[options.Sort | None, typer.Option("--sort", help="The order of the variables; size.")] = None,
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
    """List the variables of ELF files, largest first.

    Those in writable and thread-local memory, with the sums of each section and what no symbol explains.

    \b
    footprint symbols /usr/bin/python3
    footprint symbols --top 0 --json libfoo.so
    footprint symbols --map foo.map --by file foo
    footprint symbols --kind bss --min-size 1MiB libfoo.so
    footprint symbols --source /lib/x86_64-linux-gnu/libc.so.6
    """
    from footprint.sources.debug_files import debug_search
    from footprint.verbs.output import exit_code, output_options, write
    from footprint.verbs.symbols.answer import SymbolsAnswer
    from footprint.verbs.symbols.call import symbols as read_symbols
    from footprint.verbs.symbols.selections import selection, sort_order

    written = output_options(SymbolsAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    wanted = selection(kind, min_size, name, is_local=is_local, is_global=is_global)
    order = sort_order(by, sort)
    found = read_symbols(*files, map=map_, selection=wanted, debug=debug, source=source)
    write(SymbolsAnswer(found, f"symbols {' '.join(files)}", by, order, top, verbose), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
