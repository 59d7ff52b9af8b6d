"""`footprint maps`: every mapping of a process with its owner."""

import typer

from footprint.verbs import options

__all__ = ("maps",)

ORDER = 70


def maps(
    target: options.Target,
    pid: options.Pid = None,
    root: options.Root = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
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
    from footprint.verbs.maps.answer import MapsAnswer
    from footprint.verbs.maps.call import maps as list_mappings
    from footprint.verbs.output import exit_code, output_options, write

    written = output_options(MapsAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = list_mappings(target, pid=pid, root=root)
    write(MapsAnswer(found, f"maps {target}", verbose), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
