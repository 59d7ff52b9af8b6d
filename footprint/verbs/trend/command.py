"""`footprint trend`: how the figures of a program went over its releases."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("trend",)

ORDER = 130


def trend(
    history: Annotated[str, typer.Option("--history", help="The file that record writes.", metavar="FILE")],
    program: Annotated[
        list[str] | None, typer.Option("--program", help="Only this program; repeatable.", metavar="NAME")
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Only this figure, such as per_process_bytes; repeatable.", metavar="FIGURE"),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option("--owner", help="The part of one owner: a file name, or such as [heap].", metavar="OWNER"),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only the newest releases.", metavar="N")] = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Show how the figures of each program went over its releases, and which owner changed them most.

    \b
    footprint trend --history footprint.sqlite
    footprint trend --history footprint.sqlite --figure private_bytes --last 20
    footprint trend --history footprint.sqlite --owner libssl.so.3 --json
    """
    from footprint.verbs.output import draws_blocks, exit_code, output_options, write
    from footprint.verbs.trend.answer import TrendAnswer
    from footprint.verbs.trend.call import trend as read_trend

    written = output_options(TrendAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = read_trend(history, programs=program or (), figures=figure or (), owner=owner, last=last)
    write(TrendAnswer(found, f"trend {history}", draws_blocks(output)), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
