"""`footprint diff`: what grew between two targets."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("diff",)

ORDER = 100


def diff(
    old: Annotated[str, typer.Argument(help="The one before: a saved audit, a PID, a program, a capture, a profile.")],
    new: Annotated[str, typer.Argument(help="The one now, of the same kind.")],
    count: options.OptionalCount = None,
    top: options.Top = 20,
    binaries: options.Binaries = None,
    root: options.Root = None,
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
    """Show what grew, per owner and variable, and what that is at N processes.

    What only a build numbers anew, or another folder, is no change.

    \b
    footprint diff before.json after.json -n 10000
    footprint diff ./old/server ./new/server
    footprint diff 4711 4712
    footprint diff massif.out.1 massif.out.2
    footprint diff before.json after.json --html change.html
    """
    from footprint.errors import UsageError
    from footprint.sources.debug_files import debug_search
    from footprint.sources.target import resolve
    from footprint.verbs.diff.answer import DiffAnswer
    from footprint.verbs.diff.call import diff as compare
    from footprint.verbs.diff.call import diff_profiles
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write

    written = output_options(
        DiffAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet, html=html
    )
    debug = debug_search(debug_dir or (), uses_servers=debuginfod, is_off=no_debug_files)
    has_report = written.has_report
    targets = resolve(old, root=root), resolve(new, root=root)
    profiles = diff_profiles(*targets, binaries=binaries or (), root=root, debug=debug, has_all_trees=has_report)
    if profiles is not None:
        from footprint.verbs.heap.answer import HeapComparisonAnswer, HeapViewOptions

        if count is not None:
            raise UsageError("-n goes with processes and programs: a profile is of one run")
        view = HeapViewOptions(top=top, has_whole_names=verbose)
        write(HeapComparisonAnswer(profiles, f"diff {old} {new}", view), written)
        raise typer.Exit(exit_code(profiles.notes, is_strict=strict))
    found = compare(*targets, count=count, root=root, debug=debug, has_page_maps=has_report)
    write(DiffAnswer(found, ViewOptions(top=top, has_whole_names=verbose)), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
