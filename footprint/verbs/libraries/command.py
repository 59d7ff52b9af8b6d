"""`footprint libraries`: the objects of a program or process."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("libraries",)

ORDER = 50


def libraries(
    target: Annotated[str, typer.Argument(help="A program or library, which is not run, or a PID.")],
    tree: Annotated[bool, typer.Option("--tree", help="Who brings whom in, instead of the load order.")] = False,
    why: Annotated[str | None, typer.Option("--why", help="By which chains this one comes in.", metavar="LIB")] = None,
    count: options.Count = 1,
    root: Annotated[
        str | None, typer.Option("--root", help="The directory that the program takes for /.", metavar="DIR")
    ] = None,
    page_size: options.PageSize = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Rows of the table; 0 is all.")] = 0,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Show the objects of a program in load order: what each costs, who uses it, what leaves with it.

    \b
    footprint libraries /usr/bin/gdb
    footprint libraries --why libz.so.1 /usr/bin/gdb
    """
    from footprint.errors import UsageError
    from footprint.units import parse_bytes
    from footprint.verbs.libraries.answer import LibrariesAnswer
    from footprint.verbs.libraries.call import libraries as find_libraries
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write

    page_bytes = None if page_size is None else parse_bytes(page_size)
    written = output_options(LibrariesAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    if tree and why is not None:
        raise UsageError("--tree and --why are two answers: ask for one of them")
    if why is not None and written.member != "document":
        raise UsageError("--why is for the text; the JSON has every relation")
    found = find_libraries(target, count=count, root=root, page_bytes=page_bytes)
    write(LibrariesAnswer(found, ViewOptions(top=top, has_whole_names=verbose), tree, why), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
