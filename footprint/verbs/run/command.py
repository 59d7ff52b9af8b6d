"""`footprint run`: a program started, taken at a moment, ended, and audited."""

from typing import Annotated

import typer

from footprint.verbs import options

__all__ = ("run",)

ORDER = 20
HAS_COMMAND = True


def run(
    command: options.Words,
    when: options.When = "exit",
    when_output: options.WhenOutput = None,
    timeout: options.Timeout = 60,
    starts: options.Starts = 1,
    follow: Annotated[bool, typer.Option("--follow", help="Its child processes, too.")] = False,
    massif: Annotated[
        bool, typer.Option("--massif", help="Run it once more under Valgrind's massif, to find who asked for its heap.")
    ] = False,
    massif_out: Annotated[
        str | None, typer.Option("--massif-out", help="Where to keep massif's profile.", metavar="FILE")
    ] = None,
    massif_timeout: Annotated[
        float, typer.Option("--massif-timeout", help="The longest time for that run.", metavar="SECONDS")
    ] = 600,
    count: options.Count = 1,
    by: Annotated[options.By, typer.Option("--by", help="What to group the ledger by.")] = options.By.OWNER,
    top: options.Top = 20,
    output: options.Output = "-",
    format_: options.FormatOption = None,
    table: options.Table = None,
    json: options.Json = False,
    color: options.ColorOption = options.Color.AUTO,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    strict: options.Strict = False,
) -> None:
    """Start a program, take it at a moment, end it, and show where its memory went.

    Its output goes to standard error; its exit code is part of the answer.

    \b
    footprint run -- ls -l
    footprint run --when settled --starts 5 -n 10000 -- ./server --port 8080
    footprint run --massif --massif-out massif.out -- ./program
    footprint run --when-output 'listening on' --follow -- ./server
    """
    from footprint.verbs.output import ViewOptions, exit_code, output_options, write
    from footprint.verbs.run.answer import RunAnswer
    from footprint.verbs.run.call import run as run_program

    written = output_options(RunAnswer, format_, output, is_json=json, table=table, color=color, is_quiet=quiet)
    found = run_program(
        command,
        when=when,
        when_output=when_output,
        starts=starts,
        count=count,
        follow=follow,
        timeout_seconds=timeout,
        has_massif=massif or massif_out is not None,
        massif_out=massif_out,
        massif_seconds=massif_timeout,
    )
    write(RunAnswer(found, ViewOptions(by.value, top, verbose)), written)
    raise typer.Exit(exit_code(found.notes, is_strict=strict))
