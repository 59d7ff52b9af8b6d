"""`footprint heap`: what allocator profiles say, by object and function."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.verbs.output import Form

__all__ = ("heap",)


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
    """Say how much heap a program had over time, and which objects and functions asked for it.

    Several profiles are compared with the first.

    \b
    footprint heap massif.out
    footprint heap massif.out --at 63 --by callers
    footprint heap dhat.out --binary ./program
    footprint heap before.out after.out
    footprint heap massif.out --html report.html
    """
    from footprint.sources.debug_files import debug_search
    from footprint.verbs.answers import HeapLooks, about_heap
    from footprint.verbs.heap.call import heap_profile
    from footprint.verbs.output import chosen, exit_code, write

    form = chosen("heap", format_, output, is_json=json, table=table, color=color, is_quiet=quiet, html=html)
    _check(len(files), by, form, threshold)
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    found = heap_profile(
        *files,
        at=at,
        allocators=allocators or (),
        binaries=binaries or (),
        root=root,
        debug=debug,
        has_all_trees=form.has_report,
    )

    looks = HeapLooks(by.value, threshold, top, verbose)
    answer = about_heap(found, f"heap {' '.join(files)}", looks, binary=(binaries or [""])[0])
    write(answer, form)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))


def _check(file_count: int, by: options.HeapBy, form: "Form", threshold: float) -> None:
    """Refuse what does not go together.

    Raises:
        UsageError: With the cause.
    """
    from footprint.errors import UsageError

    # What is no number passes the bounds of the option.
    if not 0 <= threshold <= 100:
        raise UsageError("--threshold is a number of percent")
    if file_count > 1 and by in {options.HeapBy.TREE, options.HeapBy.CALLERS}:
        raise UsageError(f"--by {by.value} shows one profile: compare several by owner or function")
    if file_count > 1 and form.member in {"stacks", "issues"}:
        raise UsageError(f"{form.format} holds one profile: name one file")
