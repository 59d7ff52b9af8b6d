"""`footprint maps`: every mapping of a process with its owner."""

from typing import TYPE_CHECKING

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("maps",)


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
    from footprint.verbs.maps.call import maps as verb
    from footprint.verbs.output import Answer, chosen, exit_code, write

    form = chosen("maps", format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = verb(target, pid=pid, root=root)

    def document() -> "Document":
        from footprint.verbs.maps.text import maps_report

        return maps_report(found, has_whole_names=verbose)

    def members() -> "Json":
        from footprint.verbs.maps.json import maps_members

        return maps_members(found, __version__)

    write(Answer(f"maps {target}", document, members, "mappings"), form)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
