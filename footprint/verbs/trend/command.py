"""`footprint trend`: how the figures of a program went over its releases."""

from typing import TYPE_CHECKING, Annotated

import typer

from footprint import __version__
from footprint.verbs import options

if TYPE_CHECKING:
    from footprint.formats.document import Document
    from footprint.formats.json import Json

__all__ = ("trend",)


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
    from footprint.verbs.output import Answer, chosen, draws_blocks, exit_code, write
    from footprint.verbs.trend.call import trend as verb

    form = chosen("trend", format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = verb(history, programs=program or (), figures=figure or (), owner=owner, last=last)

    def document() -> "Document":
        from footprint.verbs.trend.text import trend_report

        return trend_report(found, has_blocks=draws_blocks(output))

    def members() -> "Json":
        from footprint.verbs.trend.json import trend_members

        return trend_members(found, __version__)

    write(Answer(f"trend {history}", document, members, "trends"), form)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
