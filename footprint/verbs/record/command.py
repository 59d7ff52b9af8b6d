"""`footprint record`: the figures of a release, kept in a history."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("record",)

ORDER = 120


def record(
    target: Annotated[str, typer.Argument(help="A saved audit; or a PID, a program, a capture or a text.")],
    history: Annotated[
        str, typer.Option("--history", help="The file of the history; made where there is none.", metavar="FILE")
    ],
    version: Annotated[
        str | None, typer.Option("--version", help="What the release is called.", metavar="VERSION")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="Or the commit that was built.", metavar="COMMIT")
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", help="What the program is called; else as its file.", metavar="NAME")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="A date, or seconds since 1970; else the time of the file.", metavar="TIME"),
    ] = None,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Keep the figures of a release in a history, for trend.

    A release that is recorded again takes the place of the first.

    \b
    footprint record audit.json --history footprint.sqlite --version 1.4.0
    footprint record ./server --history footprint.sqlite --commit "$(git rev-parse HEAD)"
    """
    from footprint.verbs.output import exit_code, output_options, write
    from footprint.verbs.record.answer import RecordAnswer
    from footprint.verbs.record.call import record as record_release

    written = output_options(RecordAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    made = record_release(target, history, version=version, commit=commit, program=program, time=time)
    write(RecordAnswer(made, f"record {target}", history), written)
    raise typer.Exit(exit_code(made.notes, is_strict=strict))
