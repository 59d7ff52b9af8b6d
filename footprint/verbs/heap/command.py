"""`footprint heap`: what allocator profiles say, by object and function."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("heap",)

ORDER = 80


def heap(
    files: Annotated[
        list[str],
        typer.Argument(help="Profiles of massif, DHAT, heaptrack, gperftools or jemalloc.", metavar="FILE..."),
    ],
    at: Annotated[
        str | None,
        typer.Option("--at", help="The number of a snapshot, a time such as 1.5s, end, or peak.", metavar="MOMENT"),
    ] = None,
    by: Annotated[options.HeapBy, typer.Option("--by", help="What to add up by.")] = options.HeapBy.FUNCTION,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=100, help="Leave smaller calls out of a tree.", metavar="PERCENT"),
    ] = 1.0,
    allocators: options.AllocFns = None,
    binaries: options.Binaries = None,
    root: options.Root = None,
    top: options.Top = 20,
    debug_dir: options.DebugDirs = None,
    debuginfod: options.Debuginfod = False,
    no_debug_files: options.NoDebugFiles = False,
    html: options.Html = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Show how much heap a program had over time, and which objects and functions asked for it.

    Several profiles are compared with the first.

    \b
    footprint heap massif.out
    footprint heap massif.out --at 63 --by callers
    footprint heap dhat.out --binary ./program
    footprint heap before.out after.out
    footprint heap massif.out --html report.html
    """
    from footprint.sources.debug_files import debug_search
    from footprint.verbs.heap.answer import HeapAnswer, HeapComparisonAnswer, HeapViewOptions
    from footprint.verbs.heap.call import heap_profile
    from footprint.verbs.output import exit_code, output_options, write

    is_one = len(files) == 1
    written = output_options(
        HeapAnswer if is_one else HeapComparisonAnswer,
        format_,
        output,
        is_json=json,
        table=table,
        color=color,
        is_quiet=quiet,
        html=html,
    )
    _check(by, threshold, is_one=is_one)
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = heap_profile(
        *files,
        at=at,
        allocators=allocators or (),
        binaries=binaries or (),
        root=root,
        debug=debug,
        has_all_trees=written.has_report,
    )
    name, view = f"heap {' '.join(files)}", HeapViewOptions(by.value, threshold, top, verbose)
    if is_one:
        write(HeapAnswer(found, name, view, (binaries or [""])[0]), written)
    else:
        write(HeapComparisonAnswer(found, name, view), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))


def _check(by: options.HeapBy, threshold: float, *, is_one: bool) -> None:
    """Check that the options go together.

    Raises:
        UsageError: If they do not.
    """
    from footprint.errors import UsageError

    # The bounds of the option let "nan" pass.
    if not 0 <= threshold <= 100:
        raise UsageError("--threshold is a number of percent")
    if not is_one and by in {options.HeapBy.TREE, options.HeapBy.CALLERS}:
        raise UsageError(f"--by {by.value} shows one profile: compare several by owner or function")
